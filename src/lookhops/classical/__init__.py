"""Models without a network: what a person should try first, and what a network has to beat.

Each one is a function ``fit(graphs, split, seed)`` that answers with
:class:`~lookhops.classical.outputs.Outputs`: log-probabilities of the validation and test parts.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from lookhops.classical.baseline import fit_baseline
from lookhops.classical.fingerprint import fit_fingerprint
from lookhops.classical.morgan_forest import fit_morgan_forest
from lookhops.classical.outputs import Outputs
from lookhops.classical.wl import fit_wl
from lookhops.datasets.splits import Split
from lookhops.graphs import Graphs

MODELS: dict[str, Callable[[Graphs, Split, int], Outputs]] = {
    "fingerprint": fit_fingerprint,
    "wl": partial(fit_wl, kind="subtree"),
    "wl-oa": partial(fit_wl, kind="optimal-assignment"),
    "baseline": fit_baseline,
    "morgan-forest": fit_morgan_forest,
}

__all__ = ["MODELS", "Outputs"]
