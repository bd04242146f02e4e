"""The network as scikit-learn's regressors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils.validation import check_is_fitted

from lookhops.core.arrays import Array
from lookhops.core.errors import LookHopsError
from lookhops.encoding.inputs import Packer, own_targets
from lookhops.graphs import Target
from lookhops.graphs.targets import read_target
from lookhops.models.estimators.base import GraphEstimator, with_options
from lookhops.models.estimators.columns import columns_of, mean_score, names_of, own_numbers
from lookhops.tasks.conformal import COVERAGE


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
        targets = [(Target(n), own) for n, own in zip(names_of(columns), columns, strict=True)]
        known = int((~np.isnan(np.stack(columns)).all(0)).sum())
        if known < 2:
            raise LookHopsError(f"At least two graphs need a number (n_samples={known}).")
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
        each = list(self._regions(X, coverage, features).values())
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
            return own_numbers(own_targets(X))
        return [read_target("y", own.tolist(), "numbers")[1] for own in columns_of(y, count)]
