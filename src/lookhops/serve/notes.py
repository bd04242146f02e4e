"""Warnings as sentences of an answer: each thread collects its own.

``warnings.catch_warnings`` changes what all threads do, so that a service cannot use it.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import local
from typing import Any

#: What Python itself does with a warning.
_show_otherwise = warnings.showwarning
#: Where our own warnings come from; those of libraries are left out.
OURS = str(Path(__file__).parents[1])
_thread = local()


@contextmanager
def notes() -> Iterator[list[str]]:
    """The warnings of this thread within the block, as they come."""
    warnings.simplefilter("always", UserWarning)
    warnings.showwarning = _show
    said: list[str] = []
    _thread.said = said
    try:
        yield said
    finally:
        del _thread.said


def _show(
    message: Warning | str, category: type[Warning], filename: str, *rest: Any, **more: Any
) -> None:
    said = getattr(_thread, "said", None)
    if said is None:
        _show_otherwise(message, category, filename, *rest, **more)
    elif issubclass(category, UserWarning) and filename.startswith(OURS):
        said.append(str(message))
