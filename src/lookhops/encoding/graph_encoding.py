"""What is fitted on a training part beside the weights: neighbourhoods, and scales of numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import torch
from torch import Tensor

from lookhops.core.errors import LookHopsError
from lookhops.core.options import Architecture
from lookhops.encoding.encoding import Encoding
from lookhops.encoding.scale import Scale, Scales
from lookhops.graphs import Graphs
from lookhops.neighbourhoods import Bins, SparseRows, Vocabulary, identities, unary_codes
from lookhops.neighbourhoods.totals import graph_totals

#: Standardised totals are cut off here: a graph far from all that was seen is no outlier then.
LIMIT = 4.0
#: A total that is not its median in fewer training graphs tells too little to have a scale.
FEWEST = 20


@dataclass(frozen=True, eq=False)
class PreparedGraphs:
    """Graphs, and what is computed of them before anything is fitted: once for all members.

    Args:
        graphs: The graphs.
        hops: How far exact neighbourhoods go, or none where they are not wanted.
        totals: Their :func:`~lookhops.neighbourhoods.graph_totals`, then the columns of features of
            whole graphs, shape (g, q), or none.
    """

    graphs: Graphs
    hops: int | None = None
    totals: Tensor | None = None

    @classmethod
    def of(cls, graphs: Graphs, architecture: Architecture, encoding: Encoding) -> PreparedGraphs:
        """What a network of this architecture may read of these graphs."""
        totals = None
        if architecture.edges == "ignore":
            graphs = graphs.without_edge_features()
        if architecture.edges == "use":
            encoding.check_weights(graphs)
        if architecture.totals:
            edge_sizes = None if encoding.edges is None else encoding.edges.sizes
            totals = graph_totals(graphs, encoding.nodes.sizes, edge_sizes)
            if (columns := encoding.encode_whole(graphs)) is not None:
                totals = torch.cat((totals, columns), 1)
        return cls(graphs, architecture.fingerprint, totals)

    @cached_property
    def codes(self) -> Tensor:
        """The :func:`~lookhops.neighbourhoods.unary_codes` without numbers, shape (n, h + 1)."""
        assert self.hops is not None
        return unary_codes(self.graphs, identities(self.graphs, self.hops))

    def codes_of(self, hops: int) -> Tensor | None:
        """The codes of so many hops and perhaps more, where they are known anyway."""
        return None if self.hops is None or self.hops < hops else self.codes

    def codes_with(self, bins: Bins | None) -> Tensor:
        """The same with numbers as these bins tell them apart."""
        if bins is None or self.graphs.nodes.numbers is None:
            return self.codes
        assert self.hops is not None
        numbers = bins(self.graphs.nodes.numbers)
        return unary_codes(self.graphs, identities(self.graphs, self.hops, numbers))


@dataclass(frozen=True, eq=False)
class GraphColumns:
    """What a model reads of each graph.

    Args:
        rows: The known neighbourhoods of each graph, or none.
        totals: Standardised totals, float32, shape (g, q), or none.
    """

    rows: SparseRows | None
    totals: Tensor | None


@dataclass(frozen=True, eq=False)
class GraphEncoding:
    r"""The neighbourhoods that a training part knows, and the scale of its totals.

    A total :math:`t` is encoded as :math:`(t - m) / s` with mean and standard deviation of the
    training part, cut off at :math:`\pm 4`; one that hardly ever varies there is zero, and so is
    one that is blank, as the mean of a number that all nodes lack.

    Args:
        bins: What tells numbers apart in neighbourhoods, or none where they are left out.
        vocabulary: The neighbourhoods in at least two training graphs, or none.
        mean: The :math:`m`, float64, shape (q), or none.
        factor: The :math:`1/s`, zero for totals that are left out, float64, shape (q), or none.
    """

    bins: Bins | None = None
    vocabulary: Vocabulary | None = None
    mean: Tensor | None = None
    factor: Tensor | None = None

    @classmethod
    def fit(
        cls, prepared: PreparedGraphs, train: Tensor | None = None, bins: int = 0
    ) -> GraphEncoding:
        """Fit on the training graphs."""
        graphs, found = prepared.graphs, cls()
        if prepared.hops is not None:
            fitted = None
            if bins and graphs.nodes.numbers is not None:
                fitted = Bins.learn(graphs.nodes.numbers[nodes_of(graphs, train)], bins)
            vocabulary = Vocabulary.choose(graphs, prepared.codes_with(fitted), train)
            found = replace(found, bins=fitted, vocabulary=vocabulary)
        if prepared.totals is not None:
            seen = (
                prepared.totals
                if train is None
                else prepared.totals[train.to(prepared.totals.device)]
            )
            mean, spread, varies = _moments(seen)
            factor = torch.where(varies & (spread > 0), 1 / spread.clamp(min=1e-12), 0)
            found = replace(found, mean=mean, factor=factor)
        return found

    @property
    def num_neighbourhoods(self) -> int:
        """Size of the vocabulary."""
        return 0 if self.vocabulary is None else len(self.vocabulary)

    @property
    def num_totals(self) -> int:
        """Number of totals."""
        return 0 if self.mean is None else self.mean.numel()

    def columns(self, prepared: PreparedGraphs) -> GraphColumns:
        """Graphs in this encoding."""
        rows = totals = None
        if self.vocabulary is not None:
            codes = prepared.codes_with(self.bins)
            rows = self.vocabulary.to(codes.device).rows(prepared.graphs, codes)
        if self.mean is not None and self.factor is not None:
            assert prepared.totals is not None
            if prepared.totals.shape[1] != self.num_totals:  # of a model that knows no names
                raise LookHopsError(
                    f"{prepared.graphs.name}: has {prepared.totals.shape[1]} totals of features, "
                    f"and the model was trained on {self.num_totals}: features of edges differ."
                )
            mean, factor = self.mean.to(prepared.totals), self.factor.to(prepared.totals)
            scaled = ((prepared.totals - mean) * factor).clamp(-LIMIT, LIMIT)
            totals = scaled.nan_to_num(0.0).float()
        return GraphColumns(rows, totals)

    def tensors(self) -> dict[str, Tensor]:
        """What a model folder keeps of it."""
        found = {"mean": self.mean, "factor": self.factor}
        if self.vocabulary is not None:
            found |= {"codes": self.vocabulary.codes, "hops": self.vocabulary.hops}
        if self.bins is not None:
            found |= {f"bins.{key}": value for key, value in self.bins.tensors().items()}
        return {key: value for key, value in found.items() if value is not None}

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Tensor]) -> GraphEncoding:
        """The encoding that :meth:`tensors` gave."""
        known = {"codes", "hops"} <= set(tensors)
        vocabulary = Vocabulary(tensors["codes"], tensors["hops"]) if known else None
        own = {k.partition(".")[2]: v for k, v in tensors.items() if k.startswith("bins.")}
        bins = Bins.from_tensors(own) if own else None
        return cls(bins, vocabulary, tensors.get("mean"), tensors.get("factor"))


def nodes_of(graphs: Graphs, train: Tensor | None) -> Tensor:
    """Which nodes are of these graphs, shape (n); none means all graphs."""
    inside = torch.full((len(graphs),), train is None, device=graphs.device)
    if train is not None:
        inside[train.to(graphs.device)] = True
    return inside[graphs.batch.long()]


def _moments(seen: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Mean and standard deviation of columns, and whether they vary often; blanks left out."""
    blank = seen.isnan()
    mean, spread = seen.mean(0), seen.std(0, correction=0)
    for column in blank.any(0).nonzero().flatten().tolist():
        own = seen[~blank[:, column], column]
        mean[column] = own.mean() if own.numel() else 0.0
        spread[column] = own.std(correction=0) if own.numel() else 0.0
    median = seen.nanmedian(0).values
    varies = ((seen != median) & ~blank).sum(0) >= min(FEWEST, len(seen) / 10)
    return mean, spread, varies


@dataclass(frozen=True, eq=False)
class Preprocessing:
    """All that one training part decides beside the weights.

    Args:
        scales: The scales of the numbers of nodes and of edges.
        graphs: Known neighbourhoods, and the scale of totals.
    """

    scales: Scales = field(default_factory=Scales)
    graphs: GraphEncoding = field(default_factory=GraphEncoding)

    @classmethod
    def fit(
        cls, prepared: PreparedGraphs, architecture: Architecture, train: Tensor | None = None
    ) -> Preprocessing:
        """Fit on the training graphs."""
        graphs, kind = prepared.graphs, architecture.scale
        nodes, edges, of_node = None, None, nodes_of(graphs, train)
        if graphs.nodes.numbers is not None:
            nodes = Scale.fit(kind, graphs.nodes.numbers[of_node])
        if graphs.edges.numbers is not None and architecture.reads_edges:
            edges = Scale.fit(kind, graphs.edges.numbers[of_node[graphs.target.long()]])
        return cls(Scales(nodes, edges), GraphEncoding.fit(prepared, train, architecture.bins))

    @property
    def sizes(self) -> dict[str, int]:
        """What a network must know of it to be made."""
        graphs = self.graphs
        return {
            "num_neighbourhoods": graphs.num_neighbourhoods,
            "num_totals": graphs.num_totals,
        }

    def tensors(self) -> dict[str, Tensor]:
        """What a model folder keeps of it."""
        found = self.graphs.tensors()
        for name, scale in self.scales._asdict().items():
            if scale is not None:
                found |= {f"{name}.{key}": value for key, value in scale.tensors().items()}
        return found

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Tensor]) -> Preprocessing:
        """What :meth:`tensors` gave."""
        scales: list[Scale | None] = []
        for name in Scales._fields:
            own = {k.partition(".")[2]: v for k, v in tensors.items() if k.startswith(f"{name}.")}
            scales.append(Scale.from_tensors(own) if own else None)
        return cls(Scales(*scales), GraphEncoding.from_tensors(tensors))
