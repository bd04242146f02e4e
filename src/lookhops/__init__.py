"""LookHops: classify whole graphs with light models that look several hops at once."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lookhops.datasets import load
    from lookhops.errors import LookHopsError
    from lookhops.graphs import Graphs
    from lookhops.information import look

# Public names and where they live. They are imported when first used, so that `lookhops --help`
# does not wait for PyTorch.
_HOMES = {
    "Graphs": "lookhops.graphs",
    "LookHopsError": "lookhops.errors",
    "load": "lookhops.datasets",
    "look": "lookhops.information",
}

__all__ = ["Graphs", "LookHopsError", "load", "look"]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'lookhops' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
