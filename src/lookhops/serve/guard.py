"""The outermost layer: token, host and origin of a request, headers of an answer, metrics."""

from __future__ import annotations

import time
from collections.abc import Collection
from functools import partial
from hmac import compare_digest
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lookhops.serve.bodies import Refused

#: What a page may load and do: its own files, and questions to this service.
POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src-elem 'self'",
        "style-src-attr 'unsafe-inline'",  # of pictures: the widths of lines
        "img-src 'self' data: blob:",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
}
#: Names of this machine that no other machine can take.
LOOPBACK = ("127.0.0.1", "localhost", "::1")
#: Answered without a token: the page itself holds no data.
OPEN = ("/", "/health")


#: Upper ends of the ranges that times (in seconds) and batches (in requests) are counted in.
SECONDS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60)
REQUESTS = (1, 2, 4, 8, 16, 32, 64, 128)


class Guard:
    """The outermost layer of the service.

    Args:
        app: What it guards.
        token: What requests must carry; none is needed where it is empty.
        hosts: Names that the service may be called by; any where there are none. A page elsewhere
            whose name suddenly leads to this machine is refused.
        metrics: Count each request.
    """

    def __init__(self, app: ASGIApp, token: str, hosts: Collection[str], metrics: Metrics) -> None:
        self._app, self._token, self._hosts, self._metrics = app, token, hosts, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, status = time.perf_counter(), 500

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                headers.update(HEADERS)
                headers.setdefault("cache-control", "no-store")
            await send(message)

        with self._metrics.under_way.track_inprogress():
            try:
                refusal = self._refusal(scope["path"], scope["scheme"], Headers(scope=scope))
                app = self._app if refusal is None else answer_refused(refusal)
                await app(scope, receive, send_with_headers)
            finally:
                route: Any = scope.get("route")
                path = getattr(route, "path", "other")
                self._metrics.answered(path, status, time.perf_counter() - began)

    def _refusal(self, path: str, scheme: str, headers: Headers) -> Refused | None:
        """Why a request is not even looked at."""
        host = headers.get("host", "")
        if self._hosts and _name_of(host) not in self._hosts:
            known = ", ".join(self._hosts)
            sentence = f"This service is called {known}, not {_name_of(host)!r}."
            return Refused(HTTPStatus.MISDIRECTED_REQUEST, sentence)
        origin = headers.get("origin")
        # A proxy that speaks HTTPS need not say so.
        if origin not in (None, f"{scheme}://{host}", f"https://{host}"):
            return Refused(HTTPStatus.FORBIDDEN, "Pages of other sites may not ask here.")
        kind, _, given = headers.get("authorization", "").partition(" ")
        sent = given if kind.lower() == "bearer" else ""
        is_open = not self._token or path in OPEN or path.startswith("/static/")
        if not is_open and not compare_digest(sent.encode(), self._token.encode()):
            sentence = "A token is needed: send the header `Authorization: Bearer TOKEN`."
            return Refused(HTTPStatus.UNAUTHORIZED, sentence)
        return None


def answer_refused(refusal: Refused) -> JSONResponse:
    """The answer to a request that is refused."""
    headers = {"www-authenticate": "Bearer"} if refusal.status == 401 else None
    return JSONResponse({"error": str(refusal)}, int(refusal.status), headers)


def _name_of(host: str) -> str:
    """A host without its port."""
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return host


class Metrics:
    """Counters of one service."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        counter = partial(Counter, registry=self.registry)
        gauge = partial(Gauge, registry=self.registry)
        histogram = partial(Histogram, registry=self.registry)
        by_status = "Requests by what was asked and the status.", ("path", "status")
        self.requests = counter("lookhops_requests", *by_status)
        times = "Time from a request to its answer.", ("path",)
        self.seconds = histogram("lookhops_request_seconds", *times, buckets=SECONDS)
        together = "Requests that were answered together."
        self.batches = histogram("lookhops_batch_requests", together, buckets=REQUESTS)
        self.graphs = counter("lookhops_graphs", "Graphs that were answered.")
        self.under_way = gauge("lookhops_requests_under_way", "Requests without an answer yet.")
        self.jobs = gauge("lookhops_jobs_under_way", "Jobs that are not done.")

    def batch(self, requests: int, graphs: int) -> None:
        """Count a batch."""
        self.batches.observe(requests)
        self.graphs.inc(graphs)

    def answered(self, path: str, status: int, seconds: float) -> None:
        """Count a request."""
        self.requests.labels(path, str(status)).inc()
        self.seconds.labels(path).observe(seconds)

    def text(self) -> bytes:
        """All of it, as Prometheus reads it."""
        return generate_latest(self.registry)
