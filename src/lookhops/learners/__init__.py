"""Everything that can be fitted and asked: networks, kernels, fingerprints, baselines.

A learner is a file of this package that follows :mod:`~lookhops.learners.learner`, and an entry of
:data:`~lookhops.learners.registry.LEARNERS`.
"""

from lookhops.learners.learner import Fitted, Learner, fitted_of
from lookhops.learners.network import FittedNetwork, Network
from lookhops.learners.registry import (
    LEARNERS,
    Model,
    Recommendation,
    learner_from_dict,
    learner_of,
    parse_model,
    recommend,
)

__all__ = [
    "LEARNERS",
    "Fitted",
    "FittedNetwork",
    "Learner",
    "Model",
    "Network",
    "Recommendation",
    "fitted_of",
    "learner_from_dict",
    "learner_of",
    "parse_model",
    "recommend",
]
