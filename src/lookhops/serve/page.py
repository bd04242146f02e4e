"""The page for people, and the files that it is made of; all of them lie in this package."""

from __future__ import annotations

import os
from importlib.resources import files
from pathlib import Path
from typing import Any

from fastapi import APIRouter
from starlette.responses import FileResponse, Response
from starlette.staticfiles import StaticFiles

from lookhops.report.look import stylesheet

#: The page, its script and style, and the molecule editor.
STATIC = Path(str(files("lookhops.serve") / "static"))
#: How long a browser keeps the files before it asks again whether they are the same.
HEADERS = {"cache-control": "no-cache"}
COMPRESSED = ".gz"


def page_routes() -> APIRouter:
    """The page, and the style that it shares with reports."""
    router = APIRouter(include_in_schema=False)
    style = stylesheet()

    @router.get("/")
    async def page() -> Response:
        return FileResponse(STATIC / "page.html", media_type="text/html", headers=HEADERS)

    @router.get("/static/look.css")
    async def look() -> Response:
        return Response(style, media_type="text/css", headers=HEADERS)

    return router


class Files(StaticFiles):
    """The other files, which a browser may keep as long as they are the same.

    A large one is stored compressed, under its name and ``.gz``, and sent so to every browser.
    """

    def lookup_path(self, path: str) -> tuple[str, os.stat_result | None]:
        """Where a file is, and what is known of it."""
        found = super().lookup_path(path)
        return found if found[1] else super().lookup_path(f"{path}{COMPRESSED}")

    def file_response(self, full_path: Any, *given: Any, **more: Any) -> Response:
        """A file of the package."""
        answer = super().file_response(full_path, *given, **more)
        answer.headers.update(HEADERS)
        if str(full_path).endswith(COMPRESSED):
            answer.headers["content-encoding"] = "gzip"
        return answer
