"""Exact neighbourhoods as features for scikit-learn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from lookhops.core.errors import LookHopsError
from lookhops.encoding import Encoding
from lookhops.encoding.inputs import Packer, kind_of
from lookhops.graphs import Graphs
from lookhops.neighbourhoods import Bins, Vocabulary, identities, unary_codes


@dataclass(eq=False, repr=False)
class HopFingerprint(TransformerMixin, BaseEstimator):
    """Graphs as sparse rows: what exactly lies within ``h`` hops of their nodes, counted in unary.

    ``X`` is a :class:`~lookhops.Graphs`, or a list of PyG ``Data``, of NetworkX graphs or of
    SMILES. A column stands for a neighbourhood and a number t: whether at least t nodes of the
    graph have that neighbourhood. Inner products of rows that are not normalised are the
    Weisfeiler-Lehman optimal-assignment kernel, so any linear model will do.

    Args:
        h: How many hops to look.
        min_graphs: A column is in at least this many of the graphs of ``fit``.
        max_features: No more columns than this: those in most graphs. By default no limit.
        bins: Bins of each numeric attribute, learnt by ``fit``; 0 leaves attributes out.
        edge_labels: Whether labels of edges count.
        normalize: Whether rows are divided by their length.

    Attributes:
        vocabulary_: The columns, a :class:`~lookhops.neighbourhoods.Vocabulary`.
        bins_: The bins of the attributes, or none.
        n_features_in_: Features of a node.

    Example:
        >>> from lookhops import HopFingerprint
        >>> HopFingerprint(h=1, min_graphs=1).fit_transform(["CCO", "CCN"]).shape
        (2, 9)
    """

    h: int = 5
    min_graphs: int = 2
    max_features: int | None = None
    bins: int = 0
    edge_labels: bool = True
    normalize: bool = True

    def fit(self, X: Any, y: Any = None) -> HopFingerprint:
        """Choose the columns, and learn the bins, on graphs ``X``; ``y`` is not looked at."""
        packer = Packer(kind_of(X))
        graphs = packer.pack(X)
        if self.bins < 0:
            raise LookHopsError(f"bins is a whole number from 0, not {self.bins!r}.")
        self.bins_ = None
        if self.bins and graphs.nodes.numbers is not None:
            self.bins_ = Bins.learn(graphs.nodes.numbers, self.bins)
        self.vocabulary_ = Vocabulary.choose(
            graphs, self._codes(graphs), min_graphs=self.min_graphs, max_features=self.max_features
        )
        self.n_features_in_ = graphs.num_features
        self._packer, self._encoding = packer, Encoding.fit(graphs, whole=False)
        return self

    def transform(self, X: Any) -> Any:
        """The graphs as SciPy's sparse matrix of float32, shape (graphs, columns)."""
        check_is_fitted(self)
        graphs = self._encoding.read(self._packer.pack(X))
        return self.vocabulary_.rows(graphs, self._codes(graphs)).to_scipy(self.normalize)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """A name for each column: how far it looks, and its code. ``input_features``: not used."""
        check_is_fitted(self)
        return np.asarray(self.vocabulary_.names(), dtype=object)

    def _codes(self, graphs: Graphs) -> Tensor:
        bins = None
        if self.bins_ is not None and graphs.nodes.numbers is not None:
            bins = self.bins_(graphs.nodes.numbers)
        return unary_codes(graphs, identities(graphs, self.h, bins, self.edge_labels))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.string = True
        tags.transformer_tags.preserves_dtype = []
        return tags
