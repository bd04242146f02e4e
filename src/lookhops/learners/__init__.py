"""Models without a network: what a person should try first, and what a network has to beat.

Each one is a function ``fit(graphs, split, seed)`` that answers with
:class:`~lookhops.learners.outputs.Outputs` for the validation and test parts: log-probabilities of
classes, numbers, side by side where there are several targets.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from lookhops.graphs import Graphs
from lookhops.learners.baseline import (
    check_molecules,
    check_ridge,
    fit_baseline,
    fit_mean,
    fit_morgan_forest,
    fit_morgan_ridge,
)
from lookhops.learners.outputs import Outputs, check_targets
from lookhops.learners.wl import check_number, fit_wl
from lookhops.sources.splits import Split

MODELS: dict[str, Callable[[Graphs, Split, int], Outputs]] = {
    "wl": partial(fit_wl, kind="subtree"),
    "wl-oa": partial(fit_wl, kind="optimal-assignment"),
    "baseline": fit_baseline,
    "morgan-forest": fit_morgan_forest,
    "morgan-ridge": fit_morgan_ridge,
    "mean": fit_mean,
}
#: Raise a sentence where a model cannot be fitted to graphs, whatever the split.
CHECKS: dict[str, Callable[[Graphs], object]] = {
    "wl": check_number,
    "wl-oa": check_number,
    "baseline": check_targets,
    "morgan-forest": check_molecules,
    "morgan-ridge": check_ridge,
    "mean": check_targets,
}

__all__ = ["CHECKS", "MODELS", "Outputs"]
