"""The models as scikit-learn's estimators: of classes, of numbers, of both at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.multiclass import check_classification_targets

from lookhops.core.arrays import Array
from lookhops.core.errors import LookHopsError
from lookhops.encoding.inputs import Packer, own_targets
from lookhops.graphs.targets import is_blank
from lookhops.models.estimator_base import GraphEstimator, columns_of, own_columns, with_options
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
    score = GraphEstimator.score

    def fit(self, X: Any, y: Any = None, features: Any = None) -> LookHopsClassifier:
        """Train on graphs ``X`` with labels ``y``, shape (graphs) or (graphs, targets)."""
        packer, graphs = Packer.fit(X, features)
        columns = self._columns(X, y, len(graphs))
        for column in columns.values():
            _refuse_numbers(column)
        self._fit(packer, graphs, columns, {}, by_class=len(columns) == 1)
        self.classes_ = _only([*self._labels.values()])
        if len(columns) == 1:
            self.temperature_ = self.calibration_["temperature"]
        return self

    def predict_proba(self, X: Any, features: Any = None) -> Any:
        """Calibrated probabilities, shape (graphs, classes), columns as in ``classes_``.

        Of several targets, a list with one such table for each, as scikit-learn has it.
        """
        return _only([*self._answers(X, features).values()])

    def predict(self, X: Any, features: Any = None) -> Array:
        """The likeliest label of each graph, shape (graphs), or (graphs, targets)."""
        return _side_by_side(self._likeliest(X, features))

    def predict_set(self, X: Any, coverage: float = COVERAGE, features: Any = None) -> Any:
        """Which classes may be the true one, shape (graphs, classes), booleans.

        Conformal: the sets hold the true class with the probability ``coverage``, whatever the
        network, as long as graphs come from where those of ``fit`` came; with fewer than nine
        held-out graphs a set of 90 % has all classes in it. Of several targets, a list with one
        such table for each.
        """
        return _only([*self._answers(X, features, coverage).values()])

    def _columns(self, X: Any, y: Any, count: int) -> dict[str, Array]:
        return own_columns(X, "classes") if y is None else columns_of(y, count)


@with_options
@dataclass(eq=False, repr=False)
class LookHopsRegressor(RegressorMixin, GraphEstimator):
    """Tell a number, or several, of whole graphs, as scikit-learn's regressors do.

    ``X`` and ``features`` are those of :class:`~lookhops.LookHopsClassifier`; ``y`` is one number a
    graph, or a row of several. Graphs whose number is blank are left out of training on it, and of
    :meth:`score`. Where ``y`` is left out, the graphs' own numbers are used, whole ones among them.

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
    score = GraphEstimator.score

    def fit(self, X: Any, y: Any = None, features: Any = None) -> LookHopsRegressor:
        """Train on graphs ``X`` with numbers ``y``, shape (graphs) or (graphs, targets)."""
        packer, graphs = Packer.fit(X, features)
        columns = self._columns(X, y, len(graphs))
        self._fit(packer, graphs, columns, dict.fromkeys(columns, "numbers"))
        return self

    def predict(self, X: Any, features: Any = None) -> Array:
        """The number of each graph, shape (graphs), or (graphs, targets)."""
        return _side_by_side(self._likeliest(X, features))

    def predict_interval(self, X: Any, coverage: float = COVERAGE, features: Any = None) -> Array:
        """Lower and upper ends, shape (graphs, 2), or of several targets (graphs, targets, 2).

        Conformal: the intervals hold the number with the probability ``coverage``, whatever the
        network, as long as graphs come from where those of ``fit`` came; with fewer than nine
        held-out graphs the ends of 90 % are infinite.
        """
        return _side_by_side(self._answers(X, features, coverage))

    def _columns(self, X: Any, y: Any, count: int) -> dict[str, Array]:
        return own_columns(X, "numbers") if y is None else columns_of(y, count)


@with_options
@dataclass(eq=False, repr=False)
class LookHopsMultitask(GraphEstimator):
    """Tell several things of whole graphs with one network: classes and numbers, with blanks.

    ``X`` and ``features`` are those of :class:`~lookhops.LookHopsClassifier`; ``y`` is a frame, a
    mapping of names to columns, or an array with a column for each target. Graphs whose value is
    blank are left out of training on that target, and of :meth:`score`. Where ``y`` is left out,
    the graphs' own targets are used. Targets of one kind go to the classifier or to
    :class:`~lookhops.LookHopsRegressor` as well, which answer as scikit-learn's own do.

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
        columns = self._columns(X, y, len(graphs))
        asked = parse_task(self.task)
        if strange := [name for name in asked if name and name not in columns]:
            raise LookHopsError(f"task names {strange[0]!r}, which is no column of y.")
        carried = {} if y is not None else {one.name: one.kind for one in own_targets(X)}
        kinds = {}
        for name in columns:
            kind = asked.get(name, asked[""])
            kinds[name] = carried.get(name, kind) if kind == "auto" else kind
        self._fit(packer, graphs, columns, kinds)
        self.classes_ = self._labels
        return self

    def predict(self, X: Any, features: Any = None) -> pd.DataFrame:
        """The likeliest label, or the number, of each graph: a column for each target."""
        return pd.DataFrame(self._likeliest(X, features))

    def predict_proba(self, X: Any, features: Any = None) -> dict[str, Array]:
        """Of each target of classes, calibrated probabilities, shape (graphs, classes)."""
        return self._of_kind(True, self._answers(X, features))

    def predict_set(
        self, X: Any, coverage: float = COVERAGE, features: Any = None
    ) -> dict[str, Array]:
        """Of each target of classes, which may be true, shape (graphs, classes), booleans.

        As :meth:`LookHopsClassifier.predict_set` has them.
        """
        return self._of_kind(True, self._answers(X, features, coverage))

    def predict_interval(
        self, X: Any, coverage: float = COVERAGE, features: Any = None
    ) -> dict[str, Array]:
        """Of each target of numbers, lower and upper ends, shape (graphs, 2).

        As :meth:`LookHopsRegressor.predict_interval` has them.
        """
        return self._of_kind(False, self._answers(X, features, coverage))

    def _of_kind(self, classes: bool, answers: dict[str, Array]) -> dict[str, Array]:
        kept = [name for name, labels in self.classes_.items() if (labels is not None) == classes]
        return {name: answers[name] for name in kept}

    def _columns(self, X: Any, y: Any, count: int) -> dict[str, Array]:
        if y is None:
            return own_columns(X, "targets")
        if not hasattr(y, "columns") and not isinstance(y, Mapping):
            return columns_of(y, count)
        names = getattr(y, "columns", y)  # of a frame of pandas or polars
        table = {str(name): np.asarray(y[name], dtype=object) for name in names}
        if strange := [name for name, column in table.items() if len(column) != count]:
            length = len(table[strange[0]])
            raise LookHopsError(f"There are {count} graphs but {length} values of {strange[0]!r}.")
        if not table:
            raise LookHopsError("y has no column: there is nothing to learn.")
        return table

    def _true(self, X: Any, y: Any, count: int) -> list[Array]:
        true = self._columns(X, y, count)
        if missing := [name for name in self.classes_ if name not in true]:
            raise LookHopsError(f"y has no column {missing[0]!r}, which was learnt.")
        return [true[name] for name in self.classes_]


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


def _only(each: list[Any]) -> Any:
    """That of the only target, or those of several."""
    return each[0] if len(each) == 1 else each


def _side_by_side(columns: Mapping[str, Array]) -> Array:
    """The only column, or several beside each other; numbers stay numbers beside text."""
    each = list(columns.values())
    if len(each) == 1:
        return each[0]
    mixed = len({one.dtype.kind for one in each}) > 1
    return np.stack([one.astype(object) if mixed else one for one in each], axis=1)
