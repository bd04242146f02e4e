"""Learners that read each graph as a row of numbers: descriptors, totals, fingerprints, nothing.

RDKit is imported when it is used.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from typing import Any, ClassVar, Self

import numpy as np
import torch
from torch import Tensor

from lookhops.core.arrays import Array
from lookhops.core.errors import LookHopsError
from lookhops.encoding import Encoding
from lookhops.graphs import Graphs
from lookhops.learners.learner import Fitted, Learner
from lookhops.learners.scorers import (
    NAMES,
    SCORERS,
    Constant,
    Linear,
    Scorer,
    fit_boosting,
    fit_forest,
)
from lookhops.learners.targets import (
    Question,
    classes_of,
    fit_each,
    log_probabilities,
    side_by_side,
)
from lookhops.neighbourhoods import graph_totals
from lookhops.sources.rdkit.descriptors import FAST
from lookhops.sources.splits import Split
from lookhops.tasks import Task

#: Trees of a forest.
TREES = 500
#: Of Morgan fingerprints.
RADIUS, BITS = 2, 2048
#: Penalties of the linear model that the validation part chooses from.
PENALTIES = (1.0, 10.0, 100.0, 1000.0)
#: A candidate: what is said of it where it is chosen, and what was fitted.
Candidate = tuple[Mapping[str, Any], Scorer]
#: Fits candidates for a target on rows, shape (g, d), with a seed.
Candidates = Callable[[Question, Array, int], Iterator[Candidate]]


@dataclass(frozen=True, eq=False)
class FittedRows(Fitted):
    """What a :class:`RowLearner` has fitted: a scorer for each target."""

    learner: RowLearner
    task: Task
    encoding: Encoding
    scorers: tuple[Scorer, ...]
    chosen: Mapping[str, Any] = field(default_factory=dict)

    def outputs(self, graphs: Graphs) -> Tensor:
        rows, classes = self.learner.rows(graphs, self.encoding), classes_of(self.task)
        each = []
        for scorer, count in zip(self.scorers, classes, strict=True):
            answers = scorer.answers(rows, count)
            each.append(log_probabilities(answers) if count else answers)
        return side_by_side(each, self.task)

    def tensors(self) -> dict[str, Tensor]:
        """The arrays of each target's scorer: ``0.linear.weight``."""
        return {
            f"{number}.{NAMES[type(scorer)]}.{name}": value
            for number, scorer in enumerate(self.scorers)
            for name, value in scorer.tensors().items()
        }

    @classmethod
    def from_tensors(
        cls, learner: Any, task: Task, encoding: Encoding, tensors: Mapping[str, Tensor]
    ) -> Self:
        found: dict[tuple[int, str], dict[str, Tensor]] = {}
        for key, value in tensors.items():
            number, _, rest = key.partition(".")
            kind, _, name = rest.partition(".")
            if number.isdecimal() and kind in SCORERS:
                found.setdefault((int(number), kind), {})[name] = value
        if sorted(number for number, _ in found) != list(range(len(task.heads))):
            raise LookHopsError(f"it has not one model for each of {len(task.heads)} targets")
        scorers = tuple(SCORERS[kind].from_tensors(own) for (_, kind), own in sorted(found.items()))
        return cls(learner, task, encoding, scorers)


class RowLearner(Learner):
    """Learners that fit candidates for each target on rows, of which the validation part chooses.

    Of equal ones it is the first. A target of which the training part has one class alone is
    answered by that class.
    """

    fitted: ClassVar[type[Fitted]] = FittedRows
    #: What is fitted for a target on the training rows.
    candidates: Candidates

    @abstractmethod
    def rows(self, graphs: Graphs, encoding: Encoding) -> Array:
        """The features of graphs, in columns that mean the same for all graphs, shape (g, d)."""

    def fit(self, graphs: Graphs, task: Task, split: Split, seed: int) -> FittedRows:
        self.check(graphs, task)
        encoding = self.encoding(graphs)
        rows = self.rows(graphs, encoding)
        scorers, chosen = fit_each(graphs, task, split, lambda one: self._best(one, rows, seed))
        return FittedRows(self, task, encoding, tuple(scorers), chosen)

    def _best(self, question: Question, rows: Array, seed: int) -> Candidate:
        if question.has_one_class:
            return {}, Constant.of(question)
        candidates = list(type(self).candidates(question, rows, seed))
        if len(candidates) == 1:
            return candidates[0]
        val = rows[question.val]
        return max(
            candidates, key=lambda one: question.goodness(one[1].answers(val, question.classes))
        )


# -------------------------------------------------------------------- candidates


def _constant(question: Question, rows: Array, seed: int) -> Iterator[Candidate]:
    yield {}, Constant.of(question)


def _linear_and_boosting(question: Question, rows: Array, seed: int) -> Iterator[Candidate]:
    from sklearn.linear_model import LogisticRegression, Ridge

    linear = LogisticRegression(max_iter=2000) if question.classes else Ridge()
    yield {"model": "linear"}, Linear.fit(question, rows, linear, standardise=True)
    yield {"model": "trees"}, fit_boosting(question, rows, seed)


def _boosting(question: Question, rows: Array, seed: int) -> Iterator[Candidate]:
    yield {}, fit_boosting(question, rows, seed)


def _forest(question: Question, rows: Array, seed: int) -> Iterator[Candidate]:
    yield {}, fit_forest(question, rows, TREES, seed)


def _penalised(
    question: Question, rows: Array, seed: int, standardise: bool = False
) -> Iterator[Candidate]:
    """A linear model with a squared penalty, once for each of :data:`PENALTIES`."""
    from sklearn.linear_model import LogisticRegression, Ridge

    for penalty in PENALTIES:
        linear = LogisticRegression(C=1 / penalty, max_iter=2000)
        model = linear if question.classes else Ridge(alpha=penalty)
        yield {"penalty": penalty}, Linear.fit(question, rows, model, standardise)


# -------------------------------------------------------------------- learners


@dataclass(frozen=True)
class Mean(RowLearner):
    """The training part's mean, or its share of each class, whatever the graph."""

    name: ClassVar[str] = "mean"
    candidates = staticmethod(_constant)

    def rows(self, graphs: Graphs, encoding: Encoding) -> Array:
        return np.zeros((len(graphs), 0))


@dataclass(frozen=True)
class Baseline(RowLearner):
    """A linear model and boosted trees on :func:`~lookhops.neighbourhoods.graph_totals`.

    The linear model is logistic regression for classes and ridge regression for numbers. The model
    that is better on the validation part answers; of equal ones, the linear one.
    """

    name: ClassVar[str] = "baseline"
    candidates = staticmethod(_linear_and_boosting)

    def rows(self, graphs: Graphs, encoding: Encoding) -> Array:
        totals: Array = _totals(graphs, encoding).cpu().numpy()
        return totals


def _totals(graphs: Graphs, encoding: Encoding) -> Tensor:
    edge_sizes = None if encoding.edges is None else encoding.edges.sizes
    return graph_totals(graphs, encoding.nodes.sizes, edge_sizes)


class DescriptorLearner(RowLearner):
    """Learners that read the features of whole graphs: descriptors of molecules, other columns.

    Graphs without descriptors are read by their totals too. Blanks are NaN.
    """

    @property
    def reads_whole(self) -> bool:
        return True

    def rows(self, graphs: Graphs, encoding: Encoding) -> Array:
        columns = encoding.encode_whole(graphs)
        parts = [] if columns is None else [columns.double()]
        if encoding.whole is None or not {*FAST} & {*encoding.whole.numbers}:
            parts.insert(0, _totals(graphs, encoding))
        # Rounded to single precision, in which scikit-learn's forests read them.
        largest = torch.finfo(torch.float32).max
        rows: Array = torch.cat(parts, 1).clamp(-largest, largest).float().double().cpu().numpy()
        return rows


@dataclass(frozen=True)
class DescriptorsBoosting(DescriptorLearner):
    """Gradient-boosted trees on descriptors, with the options that scikit-learn has by default."""

    name: ClassVar[str] = "descriptors-boosting"
    candidates = staticmethod(_boosting)


@dataclass(frozen=True)
class DescriptorsForest(DescriptorLearner):
    """A random forest of 500 trees on descriptors."""

    name: ClassVar[str] = "descriptors-forest"
    candidates = staticmethod(_forest)


@dataclass(frozen=True)
class DescriptorsRidge(DescriptorLearner):
    """A linear model with a squared penalty on standardised descriptors.

    As for :class:`MorganRidge`, the validation part chooses the penalty.
    """

    name: ClassVar[str] = "descriptors-ridge"
    candidates = staticmethod(partial(_penalised, standardise=True))


class MorganLearner(RowLearner):
    """Learners that read molecules as folded counts of atom environments, up to radius 2."""

    def check(self, graphs: Graphs, task: Task) -> None:
        _check_smiles(self.name, graphs)

    def rows(self, graphs: Graphs, encoding: Encoding) -> Array:
        _check_smiles(self.name, graphs)
        return morgan_counts(graphs.columns["smiles"]).astype(np.float64)


def _check_smiles(name: str, graphs: Graphs) -> None:
    if "smiles" not in graphs.columns:
        raise LookHopsError(
            f"{name} reads the SMILES of molecules, and {graphs.name} has none: give a table with "
            "SMILES, or choose another model."
        )
    if find_spec("rdkit") is None:
        raise LookHopsError(f"{name} reads molecules with RDKit: pip install rdkit.")


@dataclass(frozen=True)
class MorganForest(MorganLearner):
    """A random forest of 500 trees on Morgan fingerprints."""

    name: ClassVar[str] = "morgan-forest"
    candidates = staticmethod(_forest)


@dataclass(frozen=True)
class MorganRidge(MorganLearner):
    """A linear model with a squared penalty on Morgan fingerprints.

    Ridge regression for numbers, logistic regression for classes; of the penalties 1, 10, 100 and
    1000 the validation part chooses, of equal ones the smallest.
    """

    name: ClassVar[str] = "morgan-ridge"
    candidates = staticmethod(_penalised)


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
