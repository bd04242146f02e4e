r"""Kernels of graphs: one for each hop of their exact neighbourhoods, and of columns of graphs.

A kernel is computed between any graphs and a set of *references* (training graphs), block by block,
so that no more than a few rows of it are ever in memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from lookhops.core.tensors import Saved, numbers, positive, saved
from lookhops.encoding import Encoding
from lookhops.encoding.columns import Columns
from lookhops.graphs import Graphs
from lookhops.graphs.indexing import elements_of
from lookhops.neighbourhoods import identities, unary_codes
from lookhops.neighbourhoods.counts import pair_codes
from lookhops.neighbourhoods.similarity import Postings
from lookhops.sources.rdkit.descriptors import is_descriptor

if TYPE_CHECKING:
    from scipy.sparse import csr_array

#: Entries of one kernel that are computed at a time: 16 MB each.
BLOCK = 2_000_000
#: Hops of the kernel that sums over the first hops.
FIRST_HOPS = 3
#: Values of columns are cut here before they are standardised, and after.
LARGEST, CUT = 1e4, 4.0
#: Pairs of this many graphs give the median distance.
MEDIAN_OF = 1000


@dataclass(frozen=True, eq=False)
class GraphRows:
    """What kernels read of graphs."""

    codes: Tensor  # :func:`~lookhops.neighbourhoods.unary_codes`, int64, shape (n, h + 1)
    node_ptr: Tensor  # where the nodes of each graph begin, and the end, int64, shape (g + 1)
    columns: Mapping[str, Tensor]  # standardised, of each group, float32, shape (g, c)
    #: :func:`~lookhops.neighbourhoods.counts.pair_codes`; none where pairs are not compared.
    pairs: tuple[Tensor, Tensor] | None = None

    def __len__(self) -> int:
        return self.node_ptr.numel() - 1

    @classmethod
    def of(
        cls, graphs: Graphs, hops: int, columns: Mapping[str, Tensor], pairs: int = 0
    ) -> GraphRows:
        """The rows of graphs, with nodes of a pair so far apart at most; 0 leaves pairs out."""
        identity = identities(graphs, hops)
        codes, node_ptr = unary_codes(graphs, identity).cpu(), graphs.node_ptr.cpu().long()
        found = pair_codes(graphs, identity[:, 0], pairs) if pairs else None
        return cls(codes, node_ptr, columns, found)

    def select(self, index: Tensor) -> GraphRows:
        """The graphs at ``index``, in that order."""
        nodes, node_ptr, _ = elements_of(self.node_ptr, index)
        columns = {name: values[index] for name, values in self.columns.items()}
        pairs = None
        if self.pairs is not None:
            number, pair_ptr, _ = elements_of(self.pairs[1], index)
            pairs = self.pairs[0][number], pair_ptr
        return GraphRows(self.codes[nodes], node_ptr, columns, pairs)

    @property
    def parts(self) -> Iterator[tuple[Tensor, Tensor]]:
        """Codes of each kind, and where each graph's begin: nodes hop by hop, then pairs."""
        for codes in self.codes.unbind(1):
            yield codes, self.node_ptr
        if self.pairs is not None:
            yield self.pairs


@dataclass(frozen=True, eq=False)
class Kernels:
    r"""Kernels between any graphs and a set of reference graphs.

    * ``hop t``, for each hop: with :math:`K_t` the optimal-assignment kernel of hop :math:`t`,
      :math:`K_t(a, b) / (K_t(a, a) + K_t(b, b) - K_t(a, b))`; 1 for two graphs without nodes.
    * ``hops 0 to 3``: the same of the sum of :math:`K_t` over the first hops.
    * ``pairs``: the same of pairs of nodes, by their labels and how many hops they are apart.
    * for each group of columns with :math:`c` values :math:`z`, :math:`d^2 = |z_a - z_b|^2` and its
      median :math:`m`: ``near`` :math:`e^{-d^2 / m}`, ``wide`` :math:`e^{-d^2 / 4m}`, and
      ``linear`` :math:`z_a \cdot z_b / c`.
    """

    references: GraphRows
    medians: Mapping[str, float]  # median squared distance of each group of columns

    @cached_property
    def hops(self) -> int:
        """The most hops that are looked at."""
        return self.references.codes.shape[1] - 1

    @cached_property
    def first(self) -> int:
        """Hops of the kernel of the first hops."""
        return min(FIRST_HOPS, self.hops)

    @cached_property
    def names(self) -> list[str]:
        """What each kernel is called."""
        first = [f"hops 0 to {self.first}"] if self.hops else []
        pairs = [] if self.references.pairs is None else ["pairs"]
        columns = [
            f"{name}, {kind}" for name in self.medians for kind in ("near", "wide", "linear")
        ]
        return [*(f"hop {hop}" for hop in range(self.hops + 1)), *first, *pairs, *columns]

    def __len__(self) -> int:
        return len(self.names)

    def select(self, index: Tensor) -> Kernels:
        """The same with those of the references alone."""
        return replace(self, references=self.references.select(index))

    def blocks(self, rows: GraphRows) -> Iterator[tuple[slice, Iterator[Tensor]]]:
        """Some graphs at a time: which, and each kernel of them and all references in turn.

        Kernels are float64, in the order of :attr:`names`; each may be overwritten once the next is
        asked for.
        """
        step = max(BLOCK // len(self.references), 1)
        for start in range(0, len(rows), step):
            part = slice(start, min(start + step, len(rows)))
            yield part, self._each(rows.select(torch.arange(part.start, part.stop)))

    def weighted(self, rows: GraphRows, weights: Tensor) -> Iterator[tuple[slice, Tensor]]:
        """The weighted sum of all kernels, some graphs at a time, shape (graphs, references)."""
        for part, kernels in self.blocks(rows):
            size = part.stop - part.start, len(self.references)
            total = torch.zeros(size, dtype=torch.float64)
            for kernel, weight in zip(kernels, weights.tolist(), strict=True):
                total.add_(kernel, alpha=weight)
            yield part, total

    def covariance(self, weights: Tensor, noise: Tensor | float) -> Tensor:
        """The covariance of the references' targets, shape (references, references)."""
        count = len(self.references)
        found = torch.empty(count, count, dtype=torch.float64)
        for part, block in self.weighted(self.references, weights):
            found[part] = block
        found.diagonal().add_(noise)
        return found

    def full(self, rows: GraphRows) -> Tensor:
        """All kernels at once, float64, shape (kernels, graphs, references)."""
        found = torch.empty(len(self), len(rows), len(self.references), dtype=torch.float64)
        for part, kernels in self.blocks(rows):
            for number, kernel in enumerate(kernels):
                found[number, part] = kernel
        return found

    def diagonal(self, rows: GraphRows) -> Tensor:
        """Each kernel of each graph with itself, float64, shape (kernels, graphs)."""
        ones = torch.ones(len(rows), dtype=torch.float64)
        found = [ones] * (len(self) - 3 * len(self.medians))
        for name in self.medians:
            values = rows.columns[name].double()
            found += [ones, ones, values.square().mean(1)]
        return torch.stack(found)

    def shared(self, number: int, codes: Tensor, ptr: Tensor) -> tuple[Tensor, Tensor]:
        """Codes of a part that graphs share with references, and those of both, shape (g, m)."""
        postings = self._parts[number]
        sizes = ptr.diff().double()[:, None] + postings.sizes.double()
        return postings.all_shared(codes, ptr).double(), sizes

    def matches(self, codes: Tensor, number: int) -> csr_array:
        """What of some codes of a part is matched in which reference, ones, shape (codes, m)."""
        vocabulary = self._parts[number].vocabulary
        position, is_there = vocabulary.places(codes)
        return self._holders[number][torch.where(is_there, position, len(vocabulary)).numpy()]

    @cached_property
    def _holders(self) -> list[csr_array]:
        """For each kind of code which references have each, and for others a row without any."""
        from scipy.sparse import csr_array, vstack

        none, found = csr_array((1, len(self.references))), []
        for (codes, ptr), part in zip(self.references.parts, self._parts, strict=True):
            rows = part.vocabulary.rows_of(codes, ptr).to_scipy()
            found.append(vstack([rows.T, none], format="csr"))
        return found

    def _each(self, rows: GraphRows) -> Iterator[Tensor]:
        total = torch.zeros(len(rows), len(self.references), dtype=torch.float64)
        for number, part in enumerate(rows.parts):
            shared, sizes = self.shared(number, *part)
            if number <= self.first:
                total += shared
            yield tanimoto(shared, sizes)
            if number == self.hops > 0:
                yield tanimoto(total, sizes * (self.first + 1))
        for name, median in self.medians.items():
            z, references = rows.columns[name].double(), self.references.columns[name].double()
            product = z @ references.T
            wide = squared_distances(z, references, product).mul_(-1 / (4 * median)).exp_()
            yield wide.square().square_()
            yield wide
            yield product.div_(max(z.shape[1], 1))

    @cached_property
    def _parts(self) -> list[Postings]:
        """For each kind of code which references have each."""
        return [Postings.of(codes, ptr) for codes, ptr in self.references.parts]


def tanimoto(shared: Tensor, sizes: Tensor) -> Tensor:
    """Shared nodes over all nodes, in place; two graphs without nodes are alike."""
    return torch.div(shared, sizes - shared, out=shared).nan_to_num_(1.0)


def squared_distances(first: Tensor, second: Tensor, product: Tensor) -> Tensor:
    """Squared distances of rows whose inner products are known, never below 0."""
    lengths = first.square().sum(1)[:, None] + second.square().sum(1)
    return lengths.sub_(product, alpha=2).clamp_(min=0)


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
        cut = torch.where(values.isfinite(), values, torch.nan).clamp(-LARGEST, LARGEST)
        mean = cut.nanmean(0).nan_to_num(0.0)
        spread = (cut - mean).square().nanmean(0).sqrt()
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

    Each has its own kernels, so that a single column counts beside 200 descriptors.
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
