"""Every learner by its name: what a new one is added to, and what reads a saved one."""

from __future__ import annotations

from typing import Any

from lookhops.core.schema import AtLeast, located, read
from lookhops.learners.blend import Blend
from lookhops.learners.gp import GaussianProcess
from lookhops.learners.learner import Learner
from lookhops.learners.network import Network
from lookhops.learners.tabular import (
    Baseline,
    DescriptorsBoosting,
    DescriptorsForest,
    DescriptorsRidge,
    Mean,
    MorganForest,
    MorganRidge,
)
from lookhops.learners.wl import WL, WLOptimalAssignment
from lookhops.nn.registry import find

#: Every learner by its name. A new one is a file of this package and an entry here.
LEARNERS: dict[str, type[Learner]] = {
    kind.name: kind
    for kind in (
        Network,
        GaussianProcess,
        Blend,
        WL,
        WLOptimalAssignment,
        Baseline,
        DescriptorsBoosting,
        DescriptorsRidge,
        DescriptorsForest,
        MorganForest,
        MorganRidge,
        Mean,
    )
}
#: What ``Learner.to_dict`` gives.
SAVED = AtLeast({"name": str, "options": Any})


def learner_from_dict(values: Any, path: str = "learner") -> Learner:
    """The learner that :meth:`~lookhops.learners.Learner.to_dict` wrote, checked."""
    saved: Any = read(SAVED, values, path)
    with located(path):
        return find("learner", LEARNERS, saved["name"]).from_options(saved["options"])
