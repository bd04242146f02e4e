"""What needs no structure: totals of a graph, the mean, Morgan fingerprints of molecules.

RDKit is imported when it is used.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np

from lookhops.core.errors import LookHopsError
from lookhops.graphs import Graphs
from lookhops.learners.outputs import (
    Answers,
    Array,
    Outputs,
    Question,
    answer_each,
    answer_mean,
    best_of,
    check_targets,
    fit_and_answer,
)
from lookhops.neighbourhoods import graph_totals
from lookhops.sources.splits import Split


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
    """Answer the training part's mean, or its share of each class; nothing here is random."""
    return answer_each(graphs, split, answer_mean)


TREES = 500
RADIUS, BITS = 2, 2048
#: Penalties of the linear model that the validation part chooses from.
PENALTIES = (1.0, 10.0, 100.0, 1000.0)


def morgan_counts(smiles: Iterable[str]) -> Array:
    """Folded counts of atom environments up to radius 2, uint8, shape (molecules, 2048)."""
    from rdkit import Chem, rdBase
    from rdkit.Chem import rdFingerprintGenerator

    generator = rdFingerprintGenerator.GetMorganGenerator(radius=RADIUS, fpSize=BITS)
    rows = []
    for number, text in enumerate(smiles, 1):
        with rdBase.BlockLogs():
            molecule = Chem.MolFromSmiles(str(text))
        if molecule is None:
            raise LookHopsError(f"Molecule {number}: {str(text)!r} is not a SMILES.")
        rows.append(generator.GetCountFingerprintAsNumPy(molecule).clip(max=255).astype(np.uint8))
    return np.stack(rows) if rows else np.zeros((0, BITS), np.uint8)


def check_molecules(graphs: Graphs, name: str = "morgan-forest") -> None:
    """Refuse graphs that are not molecules, and say where RDKit is not installed."""
    check_targets(graphs)
    if "smiles" not in graphs.columns:
        raise LookHopsError(
            f"{name} is for molecules, and {graphs.name} has no SMILES: choose another."
        )
    if find_spec("rdkit") is None:
        raise LookHopsError(f"{name} reads molecules with RDKit: pip install rdkit.")


def fit_morgan_forest(graphs: Graphs, split: Split, seed: int = 0) -> Outputs:
    """Fit a random forest of 500 trees on Morgan fingerprints.

    Args:
        graphs: Molecules: graphs with a column ``smiles``.
        split: The parts; the forest is fitted on the training part alone.
        seed: Of the forest.
    """
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

    check_molecules(graphs)
    prints = morgan_counts(graphs.columns["smiles"])

    def answer(question: Question) -> Answers:
        kind = RandomForestClassifier if question.classes else RandomForestRegressor
        return *fit_and_answer(question, kind(TREES, random_state=seed), prints), {}

    return answer_each(graphs, split, answer)


def fit_morgan_ridge(graphs: Graphs, split: Split, seed: int = 0) -> Outputs:
    """Fit a linear model with a squared penalty on Morgan fingerprints.

    Ridge regression for numbers, logistic regression for classes; of the penalties 1, 10, 100 and
    1000 the validation part chooses, of equal ones the smallest.

    Args:
        graphs: Molecules: graphs with a column ``smiles``.
        split: The parts; the model is fitted on the training part alone.
        seed: Not used: nothing here is random.
    """
    from sklearn.linear_model import LogisticRegression, Ridge

    check_molecules(graphs, "morgan-ridge")
    prints = morgan_counts(graphs.columns["smiles"]).astype(np.float64)

    def answer(question: Question) -> Answers:
        answers = {}
        for penalty in PENALTIES:
            linear = LogisticRegression(C=1 / penalty, max_iter=2000)
            model = linear if question.classes else Ridge(alpha=penalty)
            answers[penalty] = fit_and_answer(question, model, prints)
        best = best_of(question, answers)
        return *answers[best], {"penalty": best}

    return answer_each(graphs, split, answer)


check_ridge = partial(check_molecules, name="morgan-ridge")
