"""What Prometheus is told of the service."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

#: Upper ends of the ranges that times (in seconds) and batches (in requests) are counted in.
SECONDS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60)
REQUESTS = (1, 2, 4, 8, 16, 32, 64, 128)


class Metrics:
    """Counters of one service."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        self.requests = Counter(
            "lookhops_requests",
            "Requests by what was asked and the status.",
            ("path", "status"),
            registry=registry,
        )
        self.seconds = Histogram(
            "lookhops_request_seconds",
            "Time from a request to its answer.",
            ("path",),
            buckets=SECONDS,
            registry=registry,
        )
        self.batches = Histogram(
            "lookhops_batch_requests",
            "Requests that were answered together.",
            buckets=REQUESTS,
            registry=registry,
        )
        self.graphs = Counter("lookhops_graphs", "Graphs that were answered.", registry=registry)
        self.under_way = Gauge(
            "lookhops_requests_under_way", "Requests without an answer yet.", registry=registry
        )
        self.jobs = Gauge("lookhops_jobs_under_way", "Jobs that are not done.", registry=registry)

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
