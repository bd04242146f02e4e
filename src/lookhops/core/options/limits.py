"""What may be asked of the service at once."""

from __future__ import annotations

from dataclasses import dataclass, fields

from lookhops.core.errors import LookHopsError


@dataclass(frozen=True)
class Limits:
    """What one request may ask for; what is larger is a job, or refused.

    Args:
        max_body: Largest body of a request, in MB.
        max_file: Largest file of a job, in MB.
        max_graphs: Most graphs of a request.
        max_explained: Most graphs that a request may have explained.
        max_nodes: Most nodes of a request, all its graphs together; of a job, of one graph.
        max_seconds: A request that takes longer is given up. A job may take as long as it needs.
        max_jobs: Jobs that are kept, done or not, each for an hour at most.
    """

    max_body: float = 10.0
    max_file: float = 500.0
    max_graphs: int = 1000
    max_explained: int = 24
    max_nodes: int = 100_000
    max_seconds: float = 60.0
    max_jobs: int = 16

    def __post_init__(self) -> None:
        for own in fields(self):
            if not getattr(self, own.name) > 0:
                raise LookHopsError(f"{own.name} must be more than 0.")


#: Where nothing else is chosen.
DEFAULT_LIMITS = Limits()
