"""Models without a network: what a person should try first, and what a network has to beat.

Each one is a function ``fit(graphs, split, seed)`` that answers with
:class:`~lookhops.classical.outputs.Outputs`: log-probabilities of the validation and test parts.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from lookhops.classical.baseline import fit_baseline
from lookhops.classical.morgan_forest import check_molecules, fit_morgan_forest
from lookhops.classical.outputs import Outputs, classes_of
from lookhops.classical.wl import check_number, fit_wl
from lookhops.datasets.splits import Split
from lookhops.graphs import Graphs

MODELS: dict[str, Callable[[Graphs, Split, int], Outputs]] = {
    "wl": partial(fit_wl, kind="subtree"),
    "wl-oa": partial(fit_wl, kind="optimal-assignment"),
    "baseline": fit_baseline,
    "morgan-forest": fit_morgan_forest,
}
#: Raise a sentence where a model cannot be fitted to graphs, whatever the split.
CHECKS: dict[str, Callable[[Graphs], object]] = {
    "wl": check_number,
    "wl-oa": check_number,
    "baseline": classes_of,
    "morgan-forest": check_molecules,
}

__all__ = ["CHECKS", "MODELS", "Outputs"]
