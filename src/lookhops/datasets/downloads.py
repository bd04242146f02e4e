"""Downloads that end: within limits on connecting, on standing still and on what may come."""

from __future__ import annotations

import http.client
import io
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

#: Seconds to connect, and between two pieces.
TIMEOUT = 30.0
#: In every so many seconds at least so many bytes must come.
PERIOD, LEAST = 30.0, 30_000
#: Bytes that a download may have.
MOST = 4 << 30


def download(url: str, name: str) -> bytes:
    """What lies at an address, with a progress bar on a terminal.

    Raises:
        OSError, http.client.HTTPException: It cannot be had, or not within the limits above.
    """
    request = urllib.request.Request(url, headers={"User-Agent": "lookhops"})
    opener = urllib.request.build_opener(_StaysEncrypted)
    content = io.BytesIO()
    with opener.open(request, timeout=TIMEOUT) as answer:
        total = _length(answer.headers.get("Content-Length"))
        with _progress(name, total) as advance:
            for piece in _pieces(answer):
                advance(content.write(piece))
                if content.tell() > min(total or MOST, MOST):
                    raise http.client.HTTPException("more came than was announced, or than may be")
    if total not in (None, content.tell()):
        raise http.client.HTTPException(f"it broke off after {content.tell():,} bytes of {total:,}")
    return content.getvalue()


class _StaysEncrypted(urllib.request.HTTPRedirectHandler):
    """Follows no redirect from https to anything else."""

    def redirect_request(self, req: Any, fp: Any, code: Any, msg: Any, headers: Any, newurl: str):  # type: ignore[no-untyped-def]
        if req.full_url.startswith("https:") and not newurl.startswith("https:"):
            raise http.client.HTTPException(f"it leads to {newurl}, which is not encrypted")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _length(given: str | None) -> int | None:
    if given is None:
        return None
    if not (given.isascii() and given.isdecimal()):
        raise http.client.HTTPException(f"its size is given as {given!r}")
    if int(given) > MOST:
        raise http.client.HTTPException(f"it is larger than {MOST >> 30} GiB")
    return int(given)


def _pieces(answer: http.client.HTTPResponse) -> Iterator[bytes]:
    """What comes, as it comes; too little in a period is an error."""
    came, since = 0, time.monotonic()
    while piece := answer.read1(1 << 16):
        yield piece
        came += len(piece)
        if time.monotonic() - since > PERIOD:
            if came < LEAST:
                raise http.client.HTTPException(f"only {came} bytes came in {PERIOD:g} seconds")
            came, since = 0, time.monotonic()


@contextmanager
def _progress(name: str, total: int | None) -> Iterator[Any]:
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn

    console = Console(stderr=True)
    parts = (TextColumn("{task.description}"), BarColumn(), DownloadColumn())
    with Progress(*parts, console=console, disable=not console.is_terminal) as progress:
        task = progress.add_task(name, total=total)
        yield lambda size: progress.advance(task, size)
