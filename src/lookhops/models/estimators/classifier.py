"""The network as scikit-learn's classifiers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils.validation import check_is_fitted

from lookhops.core.arrays import Array
from lookhops.encoding.inputs import Packer, own_targets
from lookhops.graphs import Target
from lookhops.models.estimators.base import GraphEstimator, with_options
from lookhops.models.estimators.columns import (
    classes_of,
    columns_of,
    mean_score,
    names_of,
    own_classes,
    refuse_numbers,
)
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
            refuse_numbers(column)
        found = [classes_of(column) for column in columns]
        targets = [
            (Target(name, tuple(str(one) for one in classes)), codes)
            for name, (classes, codes) in zip(names_of(columns), found, strict=True)
        ]
        self._fit(packer, graphs, targets, by_class=len(columns) == 1)
        classes = [own for own, _ in found]
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
            mixed = len({own.dtype.kind for own in each}) > 1  # numbers stay numbers beside text
            return np.stack([own.astype(object) if mixed else own for own in each], axis=1)
        return self.classes_[probabilities.argmax(1)]

    def predict_set(self, X: Any, coverage: float = COVERAGE, features: Any = None) -> Any:
        """Which classes may be the true one, shape (graphs, classes), booleans.

        Conformal: the sets hold the true class with the probability ``coverage``, whatever the
        network, as long as graphs come from where those of ``fit`` came; with fewer than nine
        held-out graphs a set of 90 % has all classes in it. Of several targets, a list with one
        such table for each.
        """
        each = list(self._regions(X, coverage, features).values())
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
        return own_classes(own_targets(X)) if y is None else columns_of(y, count)
