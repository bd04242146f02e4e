"""The service on a port: it begins to listen when the models are read, and ends in order."""

from __future__ import annotations

import signal
import socket
from collections.abc import Callable

import uvicorn
from starlette.types import ASGIApp

from lookhops.core.errors import LookHopsError

#: Connections at a time; more are answered with 503.
CONNECTIONS = 1000


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

    Args:
        app: The service.
        bound: Where it listens.
        ready: Is called when it does.
    """
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        server_header=False,
        limit_concurrency=CONNECTIONS,
        lifespan="on",
    )
    server = _Server(config, ready)
    # uvicorn raises the signal again that ended it: that has done its work by then.
    before = {number: signal.signal(number, signal.SIG_IGN) for number in _SIGNALS}
    try:
        server.run(sockets=[bound])
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class _Server(uvicorn.Server):
    """uvicorn's server that says when it listens."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._ready()
