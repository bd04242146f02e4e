"""Learners that read each graph as a row of numbers: descriptors, totals, fingerprints, nothing.

RDKit is imported when it is used.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from typing import Any, ClassVar, Self

import numpy as np
import torch
from torch import Tensor

from lookhops.core.arrays import Array
from lookhops.core.errors import LookHopsError
from lookhops.core.tensors import named_parts
from lookhops.encoding import Encoding
from lookhops.graphs import Graphs
from lookhops.learners.learner import Fitted, Learner, in_parts
from lookhops.learners.scorers import (
    Candidate,
    Constant,
    Linear,
    Question,
    Scorer,
    classes_of,
    fit_each,
    log_probabilities,
    side_by_side,
)
from lookhops.learners.trees import Boosting, Forest
from lookhops.sources.rdkit.descriptors import FAST
from lookhops.sources.splits import Split
from lookhops.tasks import Task

#: Of Morgan fingerprints.
RADIUS, BITS = 2, 2048
#: Every kind of scorer by its name in a model folder.
SCORERS: Mapping[str, type[Scorer]] = {
    scorer.kind: scorer for scorer in (Constant, Linear, Forest, Boosting)
}
#: What fits a scorer to a question, by the rows of all graphs and a seed.
Fit = Callable[[Question, Array, int], Scorer]


def _penalised(standardise: bool) -> tuple[Candidate[Fit], ...]:
    """A linear model with each of the squared penalties that the validation part chooses from."""
    return tuple(
        ({"penalty": penalty}, partial(Linear.fit, penalty=penalty, standardise=standardise))
        for penalty in (1.0, 10.0, 100.0, 1000.0)
    )


@dataclass(frozen=True, eq=False)
class FittedRows(Fitted):
    """What a :class:`RowLearner` has fitted: a scorer for each target."""

    scorers: tuple[Scorer, ...]

    def outputs(self, graphs: Graphs) -> Tensor:
        rows, each = self.learner.rows(graphs, self.encoding), []
        for scorer, count in zip(self.scorers, classes_of(self.task), strict=True):
            answers = scorer.answers(rows, count)
            each.append(log_probabilities(answers) if count else answers)
        return side_by_side(each, self.task)

    def tensors(self) -> dict[str, Tensor]:
        """The arrays of each target's scorer: ``0.linear.weight``."""
        each = enumerate(self.scorers)
        return named_parts({f"{n}.{one.kind}": one.tensors() for n, one in each})

    @classmethod
    def from_tensors(
        cls, learner: Any, task: Task, encoding: Encoding, tensors: Mapping[str, Tensor]
    ) -> Self:
        columns, scorers = learner.width(encoding), []
        each = in_parts(tensors, map(str, range(len(task.heads))))
        for head, of_target in zip(task.heads, each, strict=True):
            name = next(iter(of_target), "").partition(".")[0]
            if name not in SCORERS:
                raise LookHopsError(f"it has not one model for each of {len(task.heads)} targets")
            [of_scorer] = in_parts(of_target, [name])
            sizes = {"columns": columns, "channels": head.task.out_channels}
            scorers.append(SCORERS[name].from_tensors(of_scorer, **sizes))
        return cls(learner, task, encoding, tuple(scorers))


@dataclass(frozen=True)
class RowLearner(Learner):
    """Learners that fit candidates for each target on rows, of which the validation part chooses.

    Of equal ones it is the first. A target of which the training part has one class alone is
    answered by that class.
    """

    fitted: ClassVar[type[Fitted]] = FittedRows
    #: What is said of each candidate where it is chosen, and what fits it.
    candidates: ClassVar[tuple[Candidate[Fit], ...]]

    @abstractmethod
    def rows(self, graphs: Graphs, encoding: Encoding) -> Array:
        """The features of graphs, in columns that mean the same for all graphs, shape (g, d)."""

    @abstractmethod
    def width(self, encoding: Encoding) -> int:
        """The :math:`d` of :meth:`rows`."""

    def fit(self, graphs: Graphs, task: Task, split: Split, seed: int) -> FittedRows:
        encoding = self.encoding(graphs)
        rows = self.rows(graphs, encoding)

        def fit(question: Question) -> Candidate[Scorer]:
            fits = (({}, Constant.fit),) if question.has_one_class else self.candidates
            fitted = ((about, fit(question, rows, seed)) for about, fit in fits)
            val, classes = rows[question.val], question.classes
            return question.best((one, one[1].answers(val, classes)) for one in fitted)[0]

        scorers, chosen = fit_each(graphs, task, split, fit)
        return FittedRows(self, task, encoding, scorers, chosen=chosen)


class Mean(RowLearner):
    """The training part's mean, or its share of each class, whatever the graph."""

    name: ClassVar[str] = "mean"
    candidates = (({}, Constant.fit),)

    def rows(self, graphs: Graphs, encoding: Encoding) -> Array:
        return np.zeros((len(graphs), 0))

    def width(self, encoding: Encoding) -> int:
        return 0


class Baseline(RowLearner):
    """A linear model and boosted trees on :func:`~lookhops.neighbourhoods.graph_totals`.

    The linear model is logistic regression for classes and ridge regression for numbers. The model
    that is better on the validation part answers; of equal ones, the linear one.
    """

    name: ClassVar[str] = "baseline"
    candidates = (
        ({"model": "linear"}, partial(Linear.fit, penalty=1.0, standardise=True)),
        ({"model": "trees"}, Boosting.fit),
    )

    def rows(self, graphs: Graphs, encoding: Encoding) -> Array:
        totals: Array = encoding.totals(graphs).cpu().numpy()
        return totals

    def width(self, encoding: Encoding) -> int:
        return encoding.num_totals


class DescriptorLearner(RowLearner):
    """Learners that read the features of whole graphs: descriptors of molecules, other columns.

    Graphs without descriptors are read by their totals too. Blanks are NaN.
    """

    reads_whole = True

    def rows(self, graphs: Graphs, encoding: Encoding) -> Array:
        columns = encoding.encode_whole(graphs)
        parts = [] if columns is None else [columns.double()]
        if self._reads_totals(encoding):
            parts.insert(0, encoding.totals(graphs))
        # Rounded to single precision, in which scikit-learn's forests read them.
        largest = torch.finfo(torch.float32).max
        rows: Array = torch.cat(parts, 1).clamp(-largest, largest).float().double().cpu().numpy()
        return rows

    def width(self, encoding: Encoding) -> int:
        columns = encoding.sizes["num_graph_features"]
        return columns + (encoding.num_totals if self._reads_totals(encoding) else 0)

    def _reads_totals(self, encoding: Encoding) -> bool:
        return encoding.whole is None or not {*FAST} & {*encoding.whole.numbers}


class DescriptorsBoosting(DescriptorLearner):
    """Gradient-boosted trees on descriptors, with the options that scikit-learn has by default."""

    name: ClassVar[str] = "descriptors-boosting"
    candidates = (({}, Boosting.fit),)


class DescriptorsForest(DescriptorLearner):
    """A random forest of 500 trees on descriptors."""

    name: ClassVar[str] = "descriptors-forest"
    candidates = (({}, Forest.fit),)


class DescriptorsRidge(DescriptorLearner):
    """A linear model with a squared penalty on standardised descriptors.

    As for :class:`MorganRidge`, the validation part chooses the penalty.
    """

    name: ClassVar[str] = "descriptors-ridge"
    candidates = _penalised(standardise=True)


class MorganLearner(RowLearner):
    """Learners that read molecules as folded counts of atom environments, up to radius 2."""

    def check(self, graphs: Graphs, task: Task | None = None) -> None:
        if "smiles" not in graphs.columns:
            raise LookHopsError(
                f"{self.name} reads the SMILES of molecules, and {graphs.name} has none: give a "
                "table with SMILES, or choose another model."
            )
        if find_spec("rdkit") is None:
            raise LookHopsError(f"{self.name} reads molecules with RDKit: pip install rdkit.")

    def rows(self, graphs: Graphs, encoding: Encoding) -> Array:
        self.check(graphs)
        return morgan_counts(graphs.columns["smiles"]).astype(np.float64)

    def width(self, encoding: Encoding) -> int:
        return BITS


class MorganForest(MorganLearner):
    """A random forest of 500 trees on Morgan fingerprints."""

    name: ClassVar[str] = "morgan-forest"
    candidates = (({}, Forest.fit),)


class MorganRidge(MorganLearner):
    """A linear model with a squared penalty on Morgan fingerprints.

    Ridge regression for numbers, logistic regression for classes; of the penalties 1, 10, 100 and
    1000 the validation part chooses, of equal ones the smallest.
    """

    name: ClassVar[str] = "morgan-ridge"
    candidates = _penalised(standardise=False)


#: What reads rows, in the order in which tables list it.
TABULAR: tuple[type[RowLearner], ...] = (
    Baseline,
    DescriptorsBoosting,
    DescriptorsRidge,
    DescriptorsForest,
    MorganForest,
    MorganRidge,
    Mean,
)


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
