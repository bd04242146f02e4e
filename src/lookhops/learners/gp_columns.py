"""Numbers of whole graphs as a Gaussian process reads them, group by group."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from lookhops.encoding import Encoding
from lookhops.encoding.columns import Columns
from lookhops.graphs import Graphs
from lookhops.learners.kernels import Standardised, median_distance
from lookhops.neighbourhoods import graph_totals
from lookhops.sources.rdkit.descriptors import is_descriptor


@dataclass(frozen=True, eq=False)
class Group:
    """Columns that share their kernels.

    Args:
        scale: Mean and spread of each column in the training part.
        median: The median squared distance of training graphs.
    """

    scale: Standardised
    median: float

    @property
    def width(self) -> int:
        """Columns that vary in the training part: the others are left out."""
        return int((self.scale.spread > 0).sum())


@dataclass(frozen=True, eq=False)
class GraphColumns:
    """The groups of columns: ``descriptors`` of molecules, else ``totals``; the user's ``columns``.

    Groups have kernels of their own, so that a single column counts beside 200 descriptors.

    Args:
        label_sizes: How many values of each label of nodes, and of edges, are counted in totals.
        whole: The features of whole graphs, if there are any.
        groups: The groups in which any column varies.
    """

    label_sizes: tuple[tuple[int, ...], tuple[int, ...]]
    whole: Columns | None
    groups: Mapping[str, Group]

    @classmethod
    def fit(cls, graphs: Graphs, training: Graphs, order: Tensor) -> GraphColumns:
        """The columns of a set and their scale in its training part.

        Args:
            graphs: All graphs: they say which features there are.
            training: The training graphs.
            order: Numbers of the training graphs in random order: the first give the median.
        """
        whole = Columns.fit(graphs.whole) if graphs.whole.width else None
        found = cls((graphs.nodes.label_sizes, graphs.edges.label_sizes), whole, {})
        groups = {}
        for name, values in found.values(training).items():
            scale = Standardised.fit(values)
            group = Group(scale, median_distance(scale(values)[order]))
            if group.width:
                groups[name] = group
        return cls(found.label_sizes, whole, groups)

    @staticmethod
    def widths(encoding: Encoding) -> dict[str, int]:
        """How many columns each group has of graphs that the encoding reads, in their order."""
        whole = encoding.whole or Columns()
        described = [is_descriptor(whole.features[owner]) for owner in whole.owners]
        found = {"descriptors": sum(described), "columns": len(described) - sum(described)}
        if not any(described):
            found["totals"] = encoding.num_totals
        return {name: width for name, width in found.items() if width}

    @property
    def medians(self) -> dict[str, float]:
        """The median squared distance of each group."""
        return {name: group.median for name, group in self.groups.items()}

    def __call__(self, graphs: Graphs) -> dict[str, Tensor]:
        """Standardised columns of each group, shape (g, c)."""
        values = self.values(graphs)
        return {name: group.scale(values[name]) for name, group in self.groups.items()}

    def values(self, graphs: Graphs) -> dict[str, Tensor]:
        """The columns of all groups, float64, NaN where blank."""
        found: dict[str, Tensor] = {}
        if self.whole is not None:
            encoded = self.whole.encode(graphs.whole, dtype=torch.float64).cpu()
            each = {name: encoded[:, mine] for name, mine in self._members.items()}
            found = {name: values for name, values in each.items() if values.shape[1]}
        if "descriptors" not in found:
            found["totals"] = graph_totals(graphs, *self.label_sizes).cpu()
        return found

    def by_feature(self, each: Mapping[str, Tensor], like: Tensor) -> tuple[Tensor | None, Tensor]:
        """What the columns of each group have, by total, (g, q, c), and by feature, (g, f, c).

        Args:
            each: For each group what those of its columns have that vary, shape (g, varying, c).
            like: Of the shape (g, c).
        """
        totals = None
        features = like.new_zeros(len(like), len(self._names), like.shape[1])
        for name, values in each.items():
            varies = self.groups[name].scale.spread > 0
            every = like.new_zeros(len(like), len(varies), like.shape[1])
            every[:, varies] = values
            if name == "totals":
                totals = every
            else:
                features.index_add_(1, self._owners[self._members[name]], every)
        return totals, features

    @property
    def mean_features(self) -> Tensor:
        """The mean of each feature of whole graphs in the training part, 0 of labels, (f)."""
        encoded = torch.zeros(len(self._owners), dtype=torch.float64)
        for name, mine in self._members.items():
            if name in self.groups:
                encoded[mine] = self.groups[name].scale.mean.double()
        numbers = 0 if self.whole is None else len(self.whole.numbers)
        found = torch.zeros(len(self._names), dtype=torch.float64)
        found[:numbers] = encoded[:numbers]  # blanks and labels follow
        return found

    @property
    def _names(self) -> tuple[str, ...]:
        return () if self.whole is None else self.whole.features

    @property
    def _owners(self) -> Tensor:
        """The feature of each encoded column."""
        return torch.tensor([] if self.whole is None else self.whole.owners, dtype=torch.long)

    @property
    def _members(self) -> dict[str, Tensor]:
        """Which encoded columns are of each group of features, booleans."""
        described = torch.tensor([is_descriptor(self._names[owner]) for owner in self._owners])
        return {"descriptors": described.bool(), "columns": ~described.bool()}

    def tensors(self) -> dict[str, Tensor]:
        """All of it as named tensors."""
        found = {}
        for name, group in self.groups.items():
            found[f"{name}.mean"] = group.scale.mean
            found[f"{name}.spread"] = group.scale.spread
            found[f"{name}.median"] = torch.tensor(group.median, dtype=torch.float64)
        return found

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Tensor], encoding: Encoding) -> GraphColumns:
        """The columns that :meth:`tensors` gave, of graphs that the encoding reads."""
        groups = {}
        for name in cls.widths(encoding):
            if f"{name}.median" in tensors:
                scale = Standardised(tensors[f"{name}.mean"], tensors[f"{name}.spread"])
                groups[name] = Group(scale, float(tensors[f"{name}.median"]))
        sizes = encoding.nodes.sizes, () if encoding.edges is None else encoding.edges.sizes
        return cls(sizes, encoding.whole, groups)
