"""The models as scikit-learn's estimators: of classes, of numbers, of both at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from lookhops.core.arrays import Array
from lookhops.core.errors import LookHopsError
from lookhops.encoding.inputs import Packer, own_targets
from lookhops.graphs import Target
from lookhops.graphs.targets import is_blank, read_target
from lookhops.models.estimator_base import (
    GraphEstimator,
    as_objects,
    classes_of,
    columns_of,
    mean_score,
    own_columns,
    score_of,
    with_options,
)
from lookhops.sources.targets import parse_task
from lookhops.tasks.conformal import COVERAGE


@with_options
@dataclass(eq=False, repr=False)
class LookHopsClassifier(ClassifierMixin, GraphEstimator):
    """Classify whole graphs, as scikit-learn's classifiers do.

    ``X`` is a :class:`~lookhops.Graphs`, or a list of PyG ``Data``, of NetworkX graphs or of
    SMILES, or a frame with a column of them, whose other columns are features of whole graphs;
    ``y`` any labels, numbers or text, or a table with a column for each of several targets. None,
    NaN and the like are blanks: such a graph is left out of training on that target, and of
    :meth:`score`. Where ``y`` is left out, the graphs' own classes are used. More features of whole
    graphs are ``features``: a frame or a mapping of columns, a row a graph, or, for ``fit`` alone,
    names of what the graphs carry. Works in ``cross_val_score``, ``GridSearchCV`` and pipelines.

    A part of the training graphs is held out to stop by and to calibrate the probabilities.

    Args:
        {options}

    Attributes:
        classes_: The labels, sorted; of several targets, a list with those of each.
        {attributes}
        temperature_: Of one target: the temperature in ``calibration_``.

    Example:
        >>> from lookhops import LookHopsClassifier
        >>> LookHopsClassifier().fit(["CCO", "CCN", "CCC", "CCCC"], ["yes", "yes", "no", "no"])
        LookHopsClassifier()
    """

    class_weights: bool = False

    def fit(self, X: Any, y: Any = None, features: Any = None) -> LookHopsClassifier:
        """Train on graphs ``X`` with labels ``y``, shape (graphs) or (graphs, targets)."""
        packer, graphs = Packer.fit(X, features)
        columns = self._labels(X, y, len(graphs))
        for column in columns:
            _refuse_numbers(column)
        found = [classes_of(column) for column in columns]
        targets = [
            (Target(f"y{number}", tuple(map(str, classes))), codes)
            for number, (classes, codes) in enumerate(found)
        ]
        self._fit(packer, graphs, targets, by_class=len(columns) == 1)
        classes = [labels for labels, _ in found]
        self.classes_ = classes[0] if len(classes) == 1 else classes
        if len(classes) == 1:
            self.temperature_ = self.calibration_["temperature"]
        return self

    def predict_proba(self, X: Any, features: Any = None) -> Any:
        """Calibrated probabilities, shape (graphs, classes), columns as in ``classes_``.

        Of several targets, a list with one such table for each, as scikit-learn has it.
        """
        each = list(self._answers(X, features).values())
        return each[0] if len(each) == 1 else each

    def predict(self, X: Any, features: Any = None) -> Array:
        """The likeliest label of each graph, shape (graphs), or (graphs, targets)."""
        probabilities = self.predict_proba(X, features)  # first: it says when nothing was fitted
        if isinstance(probabilities, list):
            pairs = zip(self.classes_, probabilities, strict=True)
            each = [classes[p.argmax(1)] for classes, p in pairs]
            mixed = len({labels.dtype.kind for labels in each}) > 1
            # Numbers stay numbers beside text.
            return np.stack([one.astype(object) if mixed else one for one in each], axis=1)
        return self.classes_[probabilities.argmax(1)]

    def predict_set(self, X: Any, coverage: float = COVERAGE, features: Any = None) -> Any:
        """Which classes may be the true one, shape (graphs, classes), booleans.

        Conformal: the sets hold the true class with the probability ``coverage``, whatever the
        network, as long as graphs come from where those of ``fit`` came; with fewer than nine
        held-out graphs a set of 90 % has all classes in it. Of several targets, a list with one
        such table for each.
        """
        each = list(self._answers(X, features, coverage).values())
        return each[0] if len(each) == 1 else each

    def score(
        self, X: Any, y: Any = None, sample_weight: Any = None, features: Any = None
    ) -> float:
        """Accuracy on graphs ``X`` with labels ``y``, by default their own; the mean over targets.

        Graphs without a label are left out.
        """
        check_is_fitted(self)
        true = self._labels(X, y)
        return mean_score(accuracy_score, true, self.predict(X, features), sample_weight)

    def _labels(self, X: Any, y: Any, count: int | None = None) -> list[Array]:
        """The labels as given, a column for each target; by default those of the graphs."""
        return [*own_columns(X, "classes").values()] if y is None else columns_of(y, count)


@with_options
@dataclass(eq=False, repr=False)
class LookHopsRegressor(RegressorMixin, GraphEstimator):
    """Tell a number, or several, of whole graphs, as scikit-learn's regressors do.

    ``X`` is a :class:`~lookhops.Graphs`, or a list of PyG ``Data``, of NetworkX graphs or of
    SMILES, or a frame with a column of them, whose other columns are features of whole graphs;
    ``y`` one number a graph, or a row of several. None, NaN and the like are blanks: such a graph
    is left out of training on that number, and of :meth:`score`. Where ``y`` is left out, the
    graphs' own numbers are used, whole ones among them. More features of whole graphs are
    ``features``: a frame or a mapping of columns, a row a graph, or, for ``fit`` alone, names of
    what the graphs carry. Works in ``cross_val_score``, ``GridSearchCV`` and pipelines.

    A part of the training graphs is held out to stop by. Targets are standardised by the others.

    Args:
        {options}

    Attributes:
        {attributes}

    Example:
        >>> from lookhops import LookHopsRegressor
        >>> LookHopsRegressor().fit(["CCO", "CCN", "CCC", "CCCC"], [0.5, 0.25, 1.0, 2.0])
        LookHopsRegressor()
    """

    loss: str = "mse"

    def fit(self, X: Any, y: Any = None, features: Any = None) -> LookHopsRegressor:
        """Train on graphs ``X`` with numbers ``y``, shape (graphs) or (graphs, targets)."""
        packer, graphs = Packer.fit(X, features)
        columns = self._numbers(X, y, len(graphs))
        known = int((~np.isnan(np.stack(columns)).all(0)).sum())
        if known < 2:
            raise LookHopsError(f"At least two graphs need a number (n_samples={known}).")
        targets = [(Target(f"y{number}"), values) for number, values in enumerate(columns)]
        self._fit(packer, graphs, targets)
        return self

    def predict(self, X: Any, features: Any = None) -> Array:
        """The number of each graph, shape (graphs), or (graphs, targets)."""
        each = [answers[:, 0] for answers in self._answers(X, features).values()]
        return each[0] if len(each) == 1 else np.stack(each, axis=1)

    def predict_interval(self, X: Any, coverage: float = COVERAGE, features: Any = None) -> Array:
        """Lower and upper ends, shape (graphs, 2), or of several targets (graphs, targets, 2).

        Conformal: the intervals hold the number with the probability ``coverage``, whatever the
        network, as long as graphs come from where those of ``fit`` came; with fewer than nine
        held-out graphs the ends of 90 % are infinite.
        """
        each = list(self._answers(X, features, coverage).values())
        return each[0] if len(each) == 1 else np.stack(each, axis=1)

    def score(
        self, X: Any, y: Any = None, sample_weight: Any = None, features: Any = None
    ) -> float:
        """R² on graphs ``X`` with numbers ``y``, by default their own; the mean over targets.

        Graphs without a number are left out.
        """
        check_is_fitted(self)
        true = self._numbers(X, y)
        return mean_score(r2_score, true, self.predict(X, features), sample_weight)

    def _numbers(self, X: Any, y: Any, count: int | None = None) -> list[Array]:
        """The numbers, NaN where they are blank, a column for each target."""
        if y is None:
            columns = list(own_columns(X, "numbers").items())
        else:
            columns = [("y", column) for column in columns_of(y, count)]
        return [read_target(name, column.tolist(), "numbers")[1] for name, column in columns]


@with_options
@dataclass(eq=False, repr=False)
class LookHopsMultitask(GraphEstimator):
    """Tell several things of whole graphs with one network: classes and numbers, with blanks.

    ``X`` is a :class:`~lookhops.Graphs`, or a list of PyG ``Data``, of NetworkX graphs or of
    SMILES, or a frame with a column of them, whose other columns are features of whole graphs;
    ``y`` a frame, a mapping of names to columns, or an array with a column for each target. None,
    NaN and the like are blanks: such a graph is left out of training on that target, and of
    :meth:`score`. Where ``y`` is left out, the graphs' own targets are used. More features of whole
    graphs are ``features``, as of the others. Targets of one kind go to
    :class:`~lookhops.LookHopsClassifier` or :class:`~lookhops.LookHopsRegressor` as well, which
    answer as scikit-learn's own do.

    Args:
        {options}
        task: Whether targets are ``classes`` or ``numbers``; ``auto``: few different values are
            classes. For each by name: ``logS=numbers,active=classes``.

    Attributes:
        classes_: The labels of each target, sorted, by its name; none of a number.
        {attributes}

    Example:
        >>> from lookhops import LookHopsMultitask
        >>> y = {"logS": [0.5, 0.25, 1.0, 2.0], "active": ["yes", None, "no", "no"]}
        >>> LookHopsMultitask(task="logS=numbers").fit(["CCO", "CCN", "CCC", "CCCC"], y)
        LookHopsMultitask(task='logS=numbers')
    """

    class_weights: bool = False
    loss: str = "mse"
    task: str = "auto"

    def fit(self, X: Any, y: Any = None, features: Any = None) -> LookHopsMultitask:
        """Train on graphs ``X`` with a table ``y`` of targets."""
        packer, graphs = Packer.fit(X, features)
        table, known_kinds = _table(X, y, len(graphs))
        kinds = parse_task(self.task)
        if strange := [name for name in kinds if name and name not in table]:
            raise LookHopsError(f"task names {strange[0]!r}, which is no column of y.")
        labels: dict[str, Array | None] = {}
        targets = []
        for name, column in table.items():
            kind = kinds.get(name, kinds[""])
            kind = known_kinds.get(name, kind) if kind == "auto" else kind
            target, values = read_target(name, column.tolist(), kind)
            labels[name] = None
            if target.classes:
                classes, values = classes_of(column)
                target, labels[name] = Target(name, tuple(map(str, classes))), classes
            targets.append((target, values))
        self._fit(packer, graphs, targets)
        self.classes_ = labels
        return self

    def predict(self, X: Any, features: Any = None) -> pd.DataFrame:
        """The likeliest label, or the number, of each graph: a column for each target."""
        columns = {}
        for name, answers in self._answers(X, features).items():
            classes = self.classes_[name]
            columns[name] = answers[:, 0] if classes is None else classes[answers.argmax(1)]
        return pd.DataFrame(columns)

    def predict_proba(self, X: Any, features: Any = None) -> dict[str, Array]:
        """Of each target of classes, calibrated probabilities, shape (graphs, classes)."""
        found = self._answers(X, features)
        return {name: one for name, one in found.items() if self.classes_[name] is not None}

    def predict_set(
        self, X: Any, coverage: float = COVERAGE, features: Any = None
    ) -> dict[str, Array]:
        """Of each target of classes, which may be true, shape (graphs, classes), booleans.

        As :meth:`LookHopsClassifier.predict_set` has them.
        """
        found = self._answers(X, features, coverage)
        return {name: one for name, one in found.items() if self.classes_[name] is not None}

    def predict_interval(
        self, X: Any, coverage: float = COVERAGE, features: Any = None
    ) -> dict[str, Array]:
        """Of each target of numbers, lower and upper ends, shape (graphs, 2).

        As :meth:`LookHopsRegressor.predict_interval` has them.
        """
        found = self._answers(X, features, coverage)
        return {name: one for name, one in found.items() if self.classes_[name] is None}

    def score(
        self, X: Any, y: Any = None, sample_weight: Any = None, features: Any = None
    ) -> float:
        """The mean over targets of accuracy or R², on the graphs that have them.

        By default on the targets that the graphs carry.
        """
        answers = self.predict(X, features)
        true, _ = _table(X, y, len(answers))
        if missing := [name for name in self.classes_ if name not in true]:
            raise LookHopsError(f"y has no column {missing[0]!r}, which was learnt.")
        scores = []
        for name, classes in self.classes_.items():
            score = r2_score if classes is None else _accuracy
            scores.append(score_of(score, true[name], answers[name].to_numpy(), sample_weight))
        return float(np.mean(scores))


def _refuse_numbers(column: Array) -> None:
    """Refuse labels that are fractions, or that scikit-learn takes for no classes otherwise."""
    values = np.asarray([value for value in column.tolist() if not is_blank(value)])
    try:
        check_classification_targets(values)
    except ValueError as error:
        is_float = values.dtype.kind == "f"
        strange = values[np.isinf(values) | (values != np.rint(values))] if is_float else values
        raise LookHopsError(
            f"The labels in y are not classes, but such as {strange.tolist()[0]!r}: "
            "LookHopsRegressor learns numbers, LookHopsMultitask numbers and classes; write "
            f"classes as whole numbers or text ({str(error).split('. ')[0].rstrip('.')})."
        ) from error


def _accuracy(true: Array, answers: Array, sample_weight: Any = None) -> float:
    """The accuracy of classes, fractions among them, which scikit-learn's takes for no classes."""
    if true.dtype.kind in "biuf" and answers.dtype.kind in "biuf":
        _, positions = np.unique(np.concatenate([true, answers]), return_inverse=True)
        true, answers = np.split(positions, 2)
    return float(accuracy_score(true, answers, sample_weight=sample_weight))


def _table(X: Any, y: Any, count: int) -> tuple[dict[str, Array], dict[str, str]]:
    """The targets by name, by default those of the graphs, and the kinds that are known of them."""
    if y is None:
        carried = own_targets(X)
        if not carried:
            raise LookHopsError("requires y to be passed: the graphs carry no targets themselves.")
        return {one.name: as_objects(one) for one in carried}, {
            one.name: one.kind for one in carried
        }
    if hasattr(y, "columns") or isinstance(y, Mapping):  # a frame of pandas or polars
        names = getattr(y, "columns", y)
        table = {str(name): np.asarray(y[name], dtype=object) for name in names}
        if strange := [name for name, column in table.items() if len(column) != count]:
            length = len(table[strange[0]])
            raise LookHopsError(f"There are {count} graphs but {length} values of {strange[0]!r}.")
    else:
        table = {f"y{number}": column for number, column in enumerate(columns_of(y, count))}
    if not table:
        raise LookHopsError("y has no column: there is nothing to learn.")
    return table, {}
