"""What the service refuses, and how: one sentence, with the HTTP status that fits it."""

from __future__ import annotations

from http import HTTPStatus

from lookhops.core.errors import LookHopsError


class Refused(LookHopsError):
    """A request that is not answered.

    Args:
        status: The HTTP status.
        sentence: What was wrong, and what to do.
    """

    def __init__(self, status: HTTPStatus, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


def too_large(sentence: str) -> Refused:
    """A request over one of the limits."""
    return Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, sentence)


def fault() -> Refused:
    """A request that failed through no fault of its own."""
    said = "A fault of LookHops, which its log describes."
    return Refused(HTTPStatus.INTERNAL_SERVER_ERROR, said)
