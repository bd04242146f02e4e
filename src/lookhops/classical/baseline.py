"""What needs no structure: totals of nodes, edges, labels and attributes of a graph."""

from __future__ import annotations

from typing import Any

from lookhops.classical.outputs import (
    Outputs,
    accuracy,
    classes_of,
    log_probabilities,
    parts_of,
)
from lookhops.datasets.splits import Split
from lookhops.graphs import Graphs
from lookhops.neighbourhoods import graph_totals


def fit_baseline(graphs: Graphs, split: Split, seed: int = 0) -> Outputs:
    """Fit trees and a linear model on :func:`~lookhops.neighbourhoods.graph_totals`.

    The trees are gradient-boosted. The model with the higher validation accuracy answers; of equal
    ones, the linear one.

    Args:
        graphs: All graphs.
        split: The parts; the models are fitted on the training part alone.
        seed: Of the trees.
    """
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    y = classes_of(graphs)
    totals = graph_totals(graphs).cpu().numpy()
    train, val, test = parts_of(split)
    models: dict[str, Any] = {
        "linear": make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000)),
        "trees": HistGradientBoostingClassifier(random_state=seed),
    }
    answers = {}
    for name, model in models.items():
        model.fit(totals[train], y[train])
        answers[name] = tuple(
            log_probabilities(model, totals[part], graphs.num_classes) for part in (val, test)
        )
    best = max(answers, key=lambda name: accuracy(answers[name][0], y[val]))
    return Outputs.of_arrays(*answers[best], model=best)
