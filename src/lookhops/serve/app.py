"""The service as one ASGI application, and its port."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from http import HTTPStatus
from importlib.resources import files
from pathlib import Path
from typing import Any

import uvicorn
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp
from uvicorn.protocols.http.auto import AutoHTTPProtocol

from lookhops import __version__
from lookhops.core.errors import LookHopsError
from lookhops.core.options import DEFAULT_LIMITS, Limits
from lookhops.core.words import counted
from lookhops.encoding import FeatureMissing
from lookhops.report.page import stylesheet
from lookhops.serve.api import Service, routes
from lookhops.serve.bodies import Refused, fault, in_a_sentence
from lookhops.serve.guard import LOOPBACK, Guard, Metrics, answer_refused
from lookhops.serve.jobs import Jobs
from lookhops.serve.models import Models

log = logging.getLogger("lookhops.serve")

#: The page, its script and style, and the molecule editor.
STATIC = Path(str(files("lookhops.serve") / "static"))
#: How long a browser keeps the files before it asks again whether they are the same.
HEADERS = {"cache-control": "no-cache"}
COMPRESSED = ".gz"
#: Connections at a time; more are answered with 503.
CONNECTIONS = 1000
#: Seconds after which a client that has begun a request must have sent more of it.
SILENCE = 60.0


def create_app(
    folders: Sequence[Path],
    limits: Limits = DEFAULT_LIMITS,
    *,
    token: str = "",
    hosts: Collection[str] = LOOPBACK,
    device: str = "auto",
) -> FastAPI:
    """The service of some models: the page, the API, health and metrics.

    Args:
        folders: The models; the first answers where none is named.
        limits: What one request may ask for.
        token: What requests must carry; none is needed where it is empty.
        hosts: Names that the service may be called by; any where there are none.
        device: Where the models compute.
    """
    metrics = Metrics()
    service = Service(Models(folders, device, metrics.batch), limits, Jobs(limits))
    metrics.jobs.set_function(lambda: service.jobs.under_way)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        watching = asyncio.create_task(service.models.keep_fresh())
        models = service.models.by_name.values()
        if any(model.predictor.encoding.reads_molecules for model in models):
            service.readers.warm_up()
        yield
        watching.cancel()
        await service.close()

    app = FastAPI(
        title="LookHops",
        version=__version__,
        description=f"Answers of {counted(len(folders), 'model')} about whole graphs.",
        docs_url=None,  # they would load scripts from elsewhere
        redoc_url=None,
        lifespan=lifespan,
    )
    app.include_router(routes(service))
    _add_page(app)

    @app.get("/health", summary="Whether it answers")
    async def health() -> Response:
        return JSONResponse({"status": "ok", "models": len(service.models.by_name)})

    @app.get("/metrics", summary="Counters for Prometheus")
    async def counters() -> Response:
        return Response(metrics.text(), media_type=CONTENT_TYPE_LATEST)

    for kind in (LookHopsError, RequestValidationError, HTTPException, ClientDisconnect, Exception):
        app.add_exception_handler(kind, answer_error)
    app.add_middleware(Guard, token=token, hosts=tuple(hosts), metrics=metrics)
    return app


def _add_page(app: FastAPI) -> None:
    """The page and its files, among them the style that it shares with reports."""
    style = stylesheet()

    @app.get("/", include_in_schema=False)
    async def page() -> Response:
        return FileResponse(STATIC / "page.html", media_type="text/html", headers=HEADERS)

    @app.get("/static/look.css", include_in_schema=False)
    async def shared_style() -> Response:
        return Response(style, media_type="text/css", headers=HEADERS)

    app.mount("/static", Files(directory=STATIC))


async def answer_error(request: Request, error: Exception) -> Response:
    """An error as one sentence; one that no user can cause is logged too."""
    status, sentence = HTTPStatus.BAD_REQUEST, " ".join(str(error).split())
    match error:
        case Refused():
            return answer_refused(error)
        case FeatureMissing():
            status = HTTPStatus.UNPROCESSABLE_ENTITY
        case LookHopsError():
            pass
        case RequestValidationError():
            sentence = in_a_sentence(error.errors()[0])
        case HTTPException():
            status = HTTPStatus(error.status_code)
            sentence = f"{request.method} {request.url.path}: {error.detail}."
        case ClientDisconnect():
            sentence = "The body ended early."
        case _:
            return answer_refused(fault())
    return answer_refused(Refused(status, sentence))


class Files(StaticFiles):
    """The files of the page, which a browser may keep as long as they are the same.

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


# -------------------------------------------------------------------- the port


def bind(host: str, port: int) -> socket.socket:
    """A socket at an address of this machine; any free port for 0."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        made = socket.socket(family, kind, protocol)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(address)
    except OSError as error:
        raise LookHopsError(
            f"{host}, port {port}: cannot be listened at ({error.strerror or error}); choose "
            "another with --host and --port."
        ) from error
    return made


def address_of(bound: socket.socket) -> str:
    """Where the service is found: ``http://127.0.0.1:8000``."""
    host, port = bound.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def run(app: ASGIApp, bound: socket.socket, ready: Callable[[], None]) -> None:
    """Answer until SIGTERM or Ctrl-C; requests that are under way are answered before it ends.

    ``ready`` is called when it listens at the bound socket.
    """
    server = _Server(configured(app), ready)
    # uvicorn raises the signal again that ended it: that has done its work by then.
    before = {number: signal.signal(number, signal.SIG_IGN) for number in _SIGNALS}
    try:
        server.run(sockets=[bound])
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def configured(app: ASGIApp) -> uvicorn.Config:
    """How uvicorn serves an application."""
    return uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        server_header=False,
        limit_concurrency=CONNECTIONS,
        http=_Connection,
        lifespan="on",
    )


class _Connection(AutoHTTPProtocol):  # type: ignore[misc,valid-type]
    """uvicorn's connection, closed when a client begins a request and falls silent."""

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._received = self.loop.time()
        self._close_when_silent()

    def data_received(self, data: bytes) -> None:
        self._received = self.loop.time()
        super().data_received(data)

    def _close_when_silent(self) -> None:
        cycle = self.cycle
        waits = cycle is None or cycle.response_complete or cycle.more_body
        left = self._received + SILENCE - self.loop.time() if waits else SILENCE
        if left <= 0:
            self.transport.abort()
        elif not self.transport.is_closing():
            self.loop.call_later(left, self._close_when_silent)


class _Server(uvicorn.Server):
    """uvicorn's server that says when it listens."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._ready()
