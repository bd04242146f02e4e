"""Learners that read each graph as a row of numbers: descriptors, totals, fingerprints, nothing.

RDKit is imported when it is used.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping
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
from lookhops.learners.learner import Fitted, Learner, in_parts
from lookhops.learners.scorers import (
    BATCH,
    SCORERS,
    Boosting,
    Constant,
    Linear,
    Question,
    Scorer,
    Trees,
    classes_of,
    fit_each,
    log_probabilities,
    side_by_side,
    training_rows,
)
from lookhops.sources.rdkit.descriptors import FAST
from lookhops.sources.splits import Split
from lookhops.tasks import Task

#: Trees of a forest.
TREES = 500
#: Of Morgan fingerprints.
RADIUS, BITS = 2, 2048
#: Penalties of the linear model that the validation part chooses from.
PENALTIES = (1.0, 10.0, 100.0, 1000.0)
#: What scikit-learn's gradient boosting calls what :class:`~.scorers.Trees` has of nodes.
FIELDS = {
    "leaf": "is_leaf",
    "feature": "feature_idx",
    "threshold": "num_threshold",
    "left": "left",
    "right": "right",
    "blank_left": "missing_go_to_left",
}
#: A candidate: what is said of it where it is chosen, and what was fitted.
Candidate = tuple[Mapping[str, Any], Scorer]


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
            f"{number}.{scorer.kind}.{name}": value
            for number, scorer in enumerate(self.scorers)
            for name, value in scorer.tensors().items()
        }

    @classmethod
    def from_tensors(
        cls, learner: Any, task: Task, encoding: Encoding, tensors: Mapping[str, Tensor]
    ) -> Self:
        width, scorers = learner.width(encoding), []
        each = in_parts(tensors, map(str, range(len(task.heads))))
        for head, of_target in zip(task.heads, each, strict=True):
            name = next(iter(of_target), "").partition(".")[0]
            if name not in SCORERS:
                raise LookHopsError(f"it has not one model for each of {len(task.heads)} targets")
            [of_scorer] = in_parts(of_target, [name])
            table = SCORERS[name].table(width, head.task.out_channels)
            scorers.append(SCORERS[name].from_tensors(of_scorer, table))
        return cls(learner, task, encoding, tuple(scorers))


@dataclass(frozen=True)
class RowLearner(Learner):
    """Learners that fit candidates for each target on rows, of which the validation part chooses.

    Of equal ones it is the first. A target of which the training part has one class alone is
    answered by that class.
    """

    fitted: ClassVar[type[Fitted]] = FittedRows

    @staticmethod
    @abstractmethod
    def candidates(question: Question, rows: Array, seed: int) -> Iterator[Candidate]:
        """What is fitted for a target on the training rows, of all graphs' rows, shape (g, d)."""

    @abstractmethod
    def rows(self, graphs: Graphs, encoding: Encoding) -> Array:
        """The features of graphs, in columns that mean the same for all graphs, shape (g, d)."""

    @abstractmethod
    def width(self, encoding: Encoding) -> int:
        """The :math:`d` of :meth:`rows`."""

    def fit(self, graphs: Graphs, task: Task, split: Split, seed: int) -> FittedRows:
        self.check(graphs, task)
        encoding = self.encoding(graphs)
        rows = self.rows(graphs, encoding)
        scorers, chosen = fit_each(graphs, task, split, lambda one: self._best(one, rows, seed))
        return FittedRows(self, task, encoding, tuple(scorers), chosen)

    def _best(self, question: Question, rows: Array, seed: int) -> Candidate:
        if question.has_one_class:
            return {}, Constant.of(question)
        candidates = list(self.candidates(question, rows, seed))
        if len(candidates) == 1:
            return candidates[0]
        val = rows[question.val]
        return max(
            candidates, key=lambda one: question.goodness(one[1].answers(val, question.classes))
        )


# -------------------------------------------------------------------- candidates


def _constant(question: Question, rows: Array, seed: int) -> Iterator[Candidate]:
    yield {}, Constant.of(question)


def _boosting(question: Question, rows: Array, seed: int) -> Iterator[Candidate]:
    yield {}, fit_boosting(question, rows, seed)


def _forest(question: Question, rows: Array, seed: int) -> Iterator[Candidate]:
    yield {}, fit_forest(question, rows, TREES, seed)


def _linear_and_boosting(question: Question, rows: Array, seed: int) -> Iterator[Candidate]:
    yield {"model": "linear"}, Linear.fit(question, rows, penalty=1.0, standardise=True)
    yield {"model": "trees"}, fit_boosting(question, rows, seed)


def _penalised(
    question: Question, rows: Array, seed: int, standardise: bool = False
) -> Iterator[Candidate]:
    """A linear model with a squared penalty, once for each of :data:`PENALTIES`."""
    for penalty in PENALTIES:
        yield {"penalty": penalty}, Linear.fit(question, rows, penalty, standardise)


# -------------------------------------------------------------------- fitting trees


def fit_forest(question: Question, rows: Array, trees: int, seed: int) -> Trees:
    """A random forest of scikit-learn, fitted on the training rows."""
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

    make = RandomForestClassifier if question.classes else RandomForestRegressor
    model = make(trees, random_state=seed)
    model.fit(training_rows(question, rows), question.y[question.train])
    known = model.classes_ if question.classes else np.zeros(1, dtype=int)
    channels = question.classes or 1

    def nodes(tree: Any) -> dict[str, Array]:
        value = np.zeros((tree.node_count, channels))
        leaves = tree.value[:, 0]
        if question.classes:
            leaves = leaves / leaves.sum(1, keepdims=True)
        value[:, known] = leaves / trees
        return {
            "leaf": tree.children_left < 0,
            "feature": tree.feature,
            "threshold": tree.threshold,
            "left": tree.children_left,
            "right": tree.children_right,
            "blank_left": tree.missing_go_to_left,
            "value": value,
        }

    found = Trees.joined([nodes(one.tree_) for one in model.estimators_], np.zeros(channels))
    return _checked(found, model, question, rows)


def fit_boosting(question: Question, rows: Array, seed: int) -> Boosting:
    """Gradient-boosted trees of scikit-learn, fitted on the training rows.

    Their nodes are in private attributes, which are read here alone.
    """
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    make = HistGradientBoostingClassifier if question.classes else HistGradientBoostingRegressor
    model = make(random_state=seed).fit(training_rows(question, rows), question.y[question.train])
    known = model.classes_ if question.classes else np.zeros(1, dtype=int)
    base = np.full(question.classes or 1, -np.inf)
    base[known] = 0.0
    column_of = known[1:] if question.classes and len(known) == 2 else known
    base[column_of] = np.ravel(model._baseline_prediction)

    def nodes(tree: Any, column: int) -> dict[str, Array]:
        found = {name: tree.nodes[field] for name, field in FIELDS.items()}
        value = np.zeros((len(tree.nodes), len(base)))
        value[:, column] = tree.nodes["value"]
        return {**found, "value": value}

    trees = [
        nodes(tree, column)
        for iteration in model._predictors
        for tree, column in zip(iteration, column_of, strict=True)
    ]
    return _checked(Boosting.joined(trees, base), model, question, rows)


def _checked(found: Any, model: Any, question: Question, rows: Array) -> Any:
    """Refuse arrays that answer otherwise than the model of scikit-learn they are made from."""
    sample = rows[question.train[:BATCH]]
    answers = found.answers(sample, question.classes)
    if question.classes:
        expected, answers = model.predict_proba(sample), answers[:, model.classes_]
    else:
        expected = model.predict(sample)[:, None]
    if not np.allclose(answers, expected, rtol=1e-6, atol=1e-9):
        raise LookHopsError(
            "This version of scikit-learn keeps its trees otherwise than LookHops reads them; "
            "install scikit-learn 1.9 or the version that LookHops asks for."
        )
    return found


# -------------------------------------------------------------------- learners


class Mean(RowLearner):
    """The training part's mean, or its share of each class, whatever the graph."""

    name: ClassVar[str] = "mean"
    candidates = staticmethod(_constant)

    def rows(self, graphs: Graphs, encoding: Encoding) -> Array:
        return np.zeros((len(graphs), self.width(encoding)))

    def width(self, encoding: Encoding) -> int:
        return 0


class Baseline(RowLearner):
    """A linear model and boosted trees on :func:`~lookhops.neighbourhoods.graph_totals`.

    The linear model is logistic regression for classes and ridge regression for numbers. The model
    that is better on the validation part answers; of equal ones, the linear one.
    """

    name: ClassVar[str] = "baseline"
    candidates = staticmethod(_linear_and_boosting)

    def rows(self, graphs: Graphs, encoding: Encoding) -> Array:
        totals: Array = encoding.totals(graphs).cpu().numpy()
        return totals

    def width(self, encoding: Encoding) -> int:
        return encoding.num_totals


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
    candidates = staticmethod(_boosting)


class DescriptorsForest(DescriptorLearner):
    """A random forest of 500 trees on descriptors."""

    name: ClassVar[str] = "descriptors-forest"
    candidates = staticmethod(_forest)


class DescriptorsRidge(DescriptorLearner):
    """A linear model with a squared penalty on standardised descriptors.

    As for :class:`MorganRidge`, the validation part chooses the penalty.
    """

    name: ClassVar[str] = "descriptors-ridge"
    candidates = staticmethod(partial(_penalised, standardise=True))


class MorganLearner(RowLearner):
    """Learners that read molecules as folded counts of atom environments, up to radius 2."""

    def check(self, graphs: Graphs, task: Task) -> None:
        self._check_smiles(graphs)

    def rows(self, graphs: Graphs, encoding: Encoding) -> Array:
        self._check_smiles(graphs)
        return morgan_counts(graphs.columns["smiles"]).astype(np.float64)

    def width(self, encoding: Encoding) -> int:
        return BITS

    def _check_smiles(self, graphs: Graphs) -> None:
        if "smiles" not in graphs.columns:
            raise LookHopsError(
                f"{self.name} reads the SMILES of molecules, and {graphs.name} has none: give a "
                "table with SMILES, or choose another model."
            )
        if find_spec("rdkit") is None:
            raise LookHopsError(f"{self.name} reads molecules with RDKit: pip install rdkit.")


class MorganForest(MorganLearner):
    """A random forest of 500 trees on Morgan fingerprints."""

    name: ClassVar[str] = "morgan-forest"
    candidates = staticmethod(_forest)


class MorganRidge(MorganLearner):
    """A linear model with a squared penalty on Morgan fingerprints.

    Ridge regression for numbers, logistic regression for classes; of the penalties 1, 10, 100 and
    1000 the validation part chooses, of equal ones the smallest.
    """

    name: ClassVar[str] = "morgan-ridge"
    candidates = staticmethod(_penalised)


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
