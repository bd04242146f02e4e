"""LookHops: classify whole graphs with light models that look several hops at once."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from lookhops.core import __version__ as __version__

if TYPE_CHECKING:
    from lookhops.core.errors import LookHopsError
    from lookhops.graphs import Features, Graphs, Target
    from lookhops.learners.hop_fingerprint import HopFingerprint
    from lookhops.learners.hop_weights import look_weights
    from lookhops.models import Predictor, train_into
    from lookhops.models.estimators import (
        LookHopsClassifier,
        LookHopsMultitask,
        LookHopsRegressor,
    )
    from lookhops.neighbourhoods import look, look_labels
    from lookhops.nn import Architecture, GraphNetwork
    from lookhops.sources.loading import load
    from lookhops.training import Protocol, train

# Public names and where they live. They are imported when first used, so that `lookhops --help`
# does not wait for PyTorch.
_HOMES = {
    "Architecture": "lookhops.nn",
    "Features": "lookhops.graphs",
    "GraphNetwork": "lookhops.nn",
    "Graphs": "lookhops.graphs",
    "HopFingerprint": "lookhops.learners.hop_fingerprint",
    "LookHopsClassifier": "lookhops.models.estimators",
    "LookHopsError": "lookhops.core.errors",
    "LookHopsMultitask": "lookhops.models.estimators",
    "LookHopsRegressor": "lookhops.models.estimators",
    "Predictor": "lookhops.models",
    "Protocol": "lookhops.training",
    "Target": "lookhops.graphs",
    "load": "lookhops.sources.loading",
    "look": "lookhops.neighbourhoods",
    "look_labels": "lookhops.neighbourhoods",
    "look_weights": "lookhops.learners.hop_weights",
    "train": "lookhops.training",
    "train_into": "lookhops.models",
}

__all__ = [
    "Architecture",
    "Features",
    "GraphNetwork",
    "Graphs",
    "HopFingerprint",
    "LookHopsClassifier",
    "LookHopsError",
    "LookHopsMultitask",
    "LookHopsRegressor",
    "Predictor",
    "Protocol",
    "Target",
    "load",
    "look",
    "look_labels",
    "look_weights",
    "train",
    "train_into",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'lookhops' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
