"""What needs no structure: totals of nodes, edges, labels and attributes of a graph; the mean."""

from __future__ import annotations

from typing import Any

import numpy as np

from lookhops.classical.outputs import (
    Answers,
    Outputs,
    Question,
    answer_each,
    best_of,
    fit_and_answer,
)
from lookhops.datasets.splits import Split
from lookhops.graphs import Graphs
from lookhops.neighbourhoods import graph_totals


def fit_baseline(graphs: Graphs, split: Split, seed: int = 0) -> Outputs:
    """Fit trees and a linear model on :func:`~lookhops.neighbourhoods.graph_totals`.

    The trees are gradient-boosted; the linear model is logistic regression for classes and ridge
    regression for numbers. The model that is better on the validation part answers; of equal ones,
    the linear one.

    Args:
        graphs: All graphs.
        split: The parts; the models are fitted on the training part alone.
        seed: Of the trees.
    """
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
    from sklearn.linear_model import LogisticRegression, Ridge
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    totals = graph_totals(graphs).cpu().numpy()

    def answer(question: Question) -> Answers:
        classes = question.classes > 0
        linear: Any = LogisticRegression(max_iter=2000) if classes else Ridge()
        trees = HistGradientBoostingClassifier if classes else HistGradientBoostingRegressor
        models = {
            "linear": make_pipeline(StandardScaler(), linear),
            "trees": trees(random_state=seed),
        }
        answers = {name: fit_and_answer(question, m, totals) for name, m in models.items()}
        best = best_of(question, answers)
        return *answers[best], {"model": best}

    return answer_each(graphs, split, answer)


def fit_mean(graphs: Graphs, split: Split, seed: int = 0) -> Outputs:
    """Answer the training part's mean, or its share of each class, whatever the graph.

    Args:
        graphs: All graphs.
        split: The parts.
        seed: Not used: nothing here is random.
    """
    from sklearn.dummy import DummyClassifier, DummyRegressor

    nothing = np.zeros((len(graphs), 1))

    def answer(question: Question) -> Answers:
        model = DummyClassifier() if question.classes else DummyRegressor()
        return *fit_and_answer(question, model, nothing), {}

    return answer_each(graphs, split, answer)
