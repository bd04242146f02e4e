"""Numbers of whole graphs as a Gaussian process reads them, group by group."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from lookhops.core.tensors import Saved, numbers, positive, saved
from lookhops.encoding import Encoding
from lookhops.encoding.columns import Columns
from lookhops.graphs import Graphs
from lookhops.learners.kernels import squared_distances
from lookhops.sources.rdkit.descriptors import is_descriptor

#: Standardised columns are cut here.
CUT = 4.0
#: Values of columns are cut here before they are standardised.
LARGEST = 1e4
#: Pairs of this many graphs give the median distance.
MEDIAN_OF = 1000


@dataclass(frozen=True, eq=False)
class Group(Saved):
    r"""Columns that share their kernels: :math:`(x - \mu) / \sigma` of a training part, up to ±4.

    Blanks are 0, the mean. Columns that do not vary in the training part, whose spread is 0, are
    left out. The median is that of squared distances of training graphs, never 0.
    """

    mean: Tensor = saved(numbers("columns"))
    spread: Tensor = saved(numbers("columns", low=0))
    median: Tensor = saved(positive())

    @classmethod
    def fit(cls, values: Tensor, order: Tensor) -> Group:
        """The scale of columns, shape (g, c), NaN where blank; the first in order give a median."""
        is_known = values.isfinite()
        count = is_known.sum(0).clamp(min=1)
        cut = torch.where(is_known, values, 0).clamp(-LARGEST, LARGEST)
        mean = cut.sum(0) / count
        apart = torch.where(is_known, cut - mean, 0)
        spread = (apart.square().sum(0) / count).sqrt()
        found = cls(mean, torch.where(spread > 1e-9, spread, 0), torch.ones(()).double())
        z = found(values)[order[:MEDIAN_OF]].double()
        distances = squared_distances(z, z, z @ z.T)
        median = float(distances.median()) or float(distances.mean()) or 1.0
        return replace(found, median=torch.tensor(median, dtype=torch.float64))

    @property
    def varies(self) -> Tensor:
        """Which columns vary in the training part."""
        return self.spread > 0

    def __call__(self, values: Tensor) -> Tensor:
        """The columns that vary, float32, shape (g, varying)."""
        cut = values[:, self.varies].clamp(-LARGEST, LARGEST)
        scaled = (cut - self.mean[self.varies]) / self.spread[self.varies]
        return scaled.clamp(-CUT, CUT).nan_to_num(0.0, CUT, -CUT).float()


@dataclass(frozen=True, eq=False)
class GraphColumns:
    """The groups of columns: ``descriptors`` of molecules, else ``totals``; the user's ``columns``.

    Groups have kernels of their own, so that a single column counts beside 200 descriptors.
    """

    encoding: Encoding
    groups: Mapping[str, Group]  # those in which any column varies

    @classmethod
    def fit(cls, encoding: Encoding, training: Graphs, order: Tensor) -> GraphColumns:
        """The columns and their scale; ``order`` is a random one of the training graphs."""
        each = cls(encoding, {}).values(training)
        groups = {name: Group.fit(values, order) for name, values in each.items()}
        return cls(encoding, {name: one for name, one in groups.items() if one.varies.any()})

    @cached_property
    def features(self) -> Columns:
        """The features of whole graphs."""
        return self.encoding.whole or Columns()

    @cached_property
    def members(self) -> dict[str, Tensor]:
        """Which encoded columns of whole graphs each group has, booleans; none for totals."""
        names, owners = self.features.features, self.features.owners
        described = torch.tensor([is_descriptor(names[owner]) for owner in owners]).bool()
        found = {"descriptors": described, "columns": ~described}
        return {name: mine for name, mine in found.items() if mine.any()}

    @property
    def widths(self) -> dict[str, int]:
        """How many columns each group may have, in their order."""
        found = {name: int(mine.sum()) for name, mine in self.members.items()}
        totals = {} if "descriptors" in found else {"totals": self.encoding.num_totals}
        return found | totals

    @property
    def medians(self) -> dict[str, float]:
        """The median squared distance of each group."""
        return {name: float(group.median) for name, group in self.groups.items()}

    def __call__(self, graphs: Graphs) -> dict[str, Tensor]:
        """Standardised columns of each group, shape (g, c)."""
        values = self.values(graphs)
        return {name: group(values[name]) for name, group in self.groups.items()}

    def values(self, graphs: Graphs) -> dict[str, Tensor]:
        """The columns of all groups, float64, NaN where blank."""
        found: dict[str, Tensor] = {}
        if (encoded := self.encoding.encode_whole(graphs)) is not None:
            found = {name: encoded.cpu()[:, mine] for name, mine in self.members.items()}
        if "descriptors" not in found:
            found["totals"] = self.encoding.totals(graphs).cpu()
        return found

    def by_feature(self, each: Mapping[str, Tensor], like: Tensor) -> tuple[Tensor | None, Tensor]:
        """What the varying columns of each group have, (g, varying, c), by total and by feature.

        Shapes (g, q, c) and (g, f, c), as many as ``like`` of shape (g, c) has.
        """
        totals, owners = None, torch.tensor(self.features.owners, dtype=torch.long)
        features = like.new_zeros(len(like), len(self.features.features), like.shape[1])
        for name, values in each.items():
            varies = self.groups[name].varies
            every = like.new_zeros(len(like), len(varies), like.shape[1])
            every[:, varies] = values
            if name == "totals":
                totals = every
            else:
                features.index_add_(1, owners[self.members[name]], every)
        return totals, features

    @property
    def mean_features(self) -> Tensor:
        """The mean of each feature of whole graphs in the training part, 0 of labels, (f)."""
        encoded = torch.zeros(len(self.features.owners), dtype=torch.float64)
        for name, mine in self.members.items():
            if name in self.groups:
                encoded[mine] = self.groups[name].mean
        found, count = encoded.new_zeros(len(self.features.features)), len(self.features.numbers)
        found[:count] = encoded[:count]  # blanks and labels follow
        return found
