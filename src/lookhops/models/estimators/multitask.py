"""One network for several targets of any kind, in the manner of scikit-learn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import r2_score
from sklearn.utils.validation import check_is_fitted

from lookhops.core.arrays import Array
from lookhops.core.errors import LookHopsError
from lookhops.encoding.inputs import Packer, own_targets
from lookhops.graphs import Target
from lookhops.graphs.targets import read_target
from lookhops.models.estimators.base import GraphEstimator, with_options
from lookhops.models.estimators.columns import (
    ONE,
    accuracy,
    classes_of,
    columns_of,
    own_column,
    score_of,
)
from lookhops.sources.targets import parse_task
from lookhops.tasks.conformal import COVERAGE


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
        table, own = _table(X, y, len(graphs))
        kinds = parse_task(self.task)
        if strange := [name for name in kinds if name and name not in table]:
            raise LookHopsError(f"task names {strange[0]!r}, which is no column of y.")
        self.classes_: dict[str, Array | None] = {}
        targets = []
        for name, column in table.items():
            kind = kinds.get(name, kinds[""])
            kind = own.get(name, kind) if kind == "auto" else kind
            target, values = read_target(name, column.tolist(), kind)
            classes = None
            if target.classes:
                classes, values = classes_of(column)
                target = Target(name, tuple(map(str, classes)))
            self.classes_[name] = classes
            targets.append((target, values))
        self._fit(packer, graphs, targets)
        return self

    def predict(self, X: Any, features: Any = None) -> pd.DataFrame:
        """The likeliest label, or the number, of each graph: a column for each target."""
        return pd.DataFrame(
            {
                name: p[:, 0] if (classes := self.classes_[name]) is None else classes[p.argmax(1)]
                for name, p in self._by_target(X, features).items()
            }
        )

    def predict_proba(self, X: Any, features: Any = None) -> dict[str, Array]:
        """Of each target of classes, calibrated probabilities, shape (graphs, classes)."""
        return {
            n: p for n, p in self._by_target(X, features).items() if self.classes_[n] is not None
        }

    def predict_set(
        self, X: Any, coverage: float = COVERAGE, features: Any = None
    ) -> dict[str, Array]:
        """Of each target of classes, which may be true, shape (graphs, classes), booleans.

        As :meth:`LookHopsClassifier.predict_set` has them.
        """
        found = self._by_target(X, features, coverage)
        return {name: own for name, own in found.items() if self.classes_[name] is not None}

    def predict_interval(
        self, X: Any, coverage: float = COVERAGE, features: Any = None
    ) -> dict[str, Array]:
        """Of each target of numbers, lower and upper ends, shape (graphs, 2).

        As :meth:`LookHopsRegressor.predict_interval` has them.
        """
        found = self._by_target(X, features, coverage)
        return {name: own for name, own in found.items() if self.classes_[name] is None}

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
        scores = [
            score_of(
                r2_score if classes is None else accuracy,
                true[name],
                answers[name].to_numpy(),
                sample_weight,
            )
            for name, classes in self.classes_.items()
        ]
        return float(np.mean(scores))

    def _by_target(self, X: Any, features: Any, coverage: float | None = None) -> dict[str, Array]:
        """Answers, or with a coverage regions, of each target under the name that it was given."""
        check_is_fitted(self)
        found = (
            self._answers(X, features) if coverage is None else self._regions(X, coverage, features)
        )
        return {name: found[ONE if len(found) == 1 else name] for name in self.classes_}


def _table(X: Any, y: Any, count: int) -> tuple[dict[str, Array], dict[str, str]]:
    """The targets by name, by default those of the graphs, and the kinds that are known of them."""
    if y is not None:
        return named_columns(y, count), {}
    own = own_targets(X)
    if not own:
        raise LookHopsError("requires y to be passed: the graphs carry no targets themselves.")
    return {one.name: own_column(one) for one in own}, {one.name: one.kind for one in own}


def named_columns(y: Any, count: int) -> dict[str, Array]:
    """The columns of a frame, a mapping or an array, by name; of an array ``y0``, ``y1``, ..."""
    if hasattr(y, "columns") or isinstance(y, Mapping):  # a frame of pandas or polars
        names = getattr(y, "columns", y)
        named = {str(name): np.asarray(y[name], dtype=object) for name in names}
        if strange := [name for name, column in named.items() if len(column) != count]:
            length = len(named[strange[0]])
            raise LookHopsError(f"There are {count} graphs but {length} values of {strange[0]!r}.")
    else:
        named = {f"y{number}": own for number, own in enumerate(columns_of(y, count))}
    if not named:
        raise LookHopsError("y has no column: there is nothing to learn.")
    return named
