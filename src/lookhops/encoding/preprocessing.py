"""What is fitted on a training part beside the weights: neighbourhoods, and scales of numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import torch
from torch import Tensor

from lookhops.core.errors import LookHopsError
from lookhops.core.options import Architecture
from lookhops.core.tensors import Expected, codes, named_parts, numbers, part_of, places
from lookhops.encoding.encoding import Encoding
from lookhops.encoding.scale import KNOTS, Scale, Scales
from lookhops.graphs import Graphs
from lookhops.neighbourhoods import Bins, SparseRows, Vocabulary, identities, unary_codes

#: Standardised totals are cut off here: a graph far from all that was seen is no outlier then.
LIMIT = 4.0
#: A total that is not its median in fewer training graphs tells too little to have a scale.
FEWEST = 20


@dataclass(frozen=True, eq=False)
class PreparedGraphs:
    """Graphs, and what is computed of them before anything is fitted: once for all members."""

    graphs: Graphs
    hops: int | None = None  # of exact neighbourhoods, if they are wanted
    totals: Tensor | None = None  # of graphs, then the columns of their features, shape (g, q)

    @classmethod
    def of(cls, graphs: Graphs, architecture: Architecture, encoding: Encoding) -> PreparedGraphs:
        """What a network of this architecture may read of these graphs."""
        totals = None
        if architecture.edges == "ignore":
            graphs = graphs.without_edge_features()
        if architecture.edges == "use":
            encoding.check_weights(graphs)
        if architecture.totals:
            totals = encoding.totals(graphs)
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
    """What a model reads of each graph."""

    rows: SparseRows | None  # its known neighbourhoods
    totals: Tensor | None  # standardised, float32, shape (g, q)


@dataclass(frozen=True, eq=False)
class Preprocessing:
    r"""All that one training part decides beside the weights.

    A total :math:`t` is encoded as :math:`(t - m) / s` with mean and standard deviation of the
    training part, cut off at :math:`\pm 4`; one that hardly ever varies there is zero, and so is
    one that is blank, as the mean of a number that all nodes lack.
    """

    scales: Scales = field(default_factory=Scales)
    bins: Bins | None = None  # tell numbers apart in neighbourhoods
    vocabulary: Vocabulary | None = None  # the neighbourhoods in at least two training graphs
    mean: Tensor | None = None  # the m, float64, shape (q)
    factor: Tensor | None = None  # the 1 / s, zero for totals that are left out

    @classmethod
    def fit(
        cls, prepared: PreparedGraphs, architecture: Architecture, train: Tensor | None = None
    ) -> Preprocessing:
        """Fit on the training graphs."""
        graphs, totals = prepared.graphs, prepared.totals
        numbers, of_edges = graphs.nodes.numbers, graphs.edges.numbers
        inside = torch.full((len(graphs),), train is None, device=graphs.device)
        if train is not None:
            inside[train.to(graphs.device)] = True
        of_node = inside[graphs.batch.long()]
        nodes = edges = bins = vocabulary = mean = factor = None
        if numbers is not None:
            nodes = Scale.fit(architecture.scale, numbers[of_node])
        if of_edges is not None and architecture.reads_edges:
            edges = Scale.fit(architecture.scale, of_edges[of_node[graphs.target.long()]])
        if prepared.hops is not None:
            if architecture.bins and numbers is not None:
                bins = Bins.learn(numbers[of_node], architecture.bins)
            vocabulary = Vocabulary.choose(graphs, prepared.codes_with(bins), train)
        if totals is not None:
            mean, spread, varies = _moments(
                totals if train is None else totals[train.to(totals.device)]
            )
            factor = torch.where(varies & (spread > 0), 1 / spread.clamp(min=1e-12), 0)
        return cls(Scales(nodes, edges), bins, vocabulary, mean, factor)

    @property
    def num_neighbourhoods(self) -> int:
        """Size of the vocabulary."""
        return 0 if self.vocabulary is None else len(self.vocabulary)

    @property
    def num_totals(self) -> int:
        """Number of totals."""
        return 0 if self.mean is None else self.mean.numel()

    @property
    def sizes(self) -> dict[str, int]:
        """What a network must know of it to be made."""
        return {"num_neighbourhoods": self.num_neighbourhoods, "num_totals": self.num_totals}

    def columns(self, prepared: PreparedGraphs) -> GraphColumns:
        """What a model reads of these graphs."""
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
        parts = {"bins": self.bins, **self.scales._asdict()}
        of_parts = {name: part.tensors() for name, part in parts.items() if part is not None}
        alone = {name: value for name, value in found.items() if value is not None}
        return alone | named_parts(of_parts)

    @staticmethod
    def table(
        architecture: Architecture, encoding: Encoding, tensors: Mapping[str, Tensor]
    ) -> dict[str, Expected]:
        """What :meth:`tensors` of a network of these options must be."""
        found: dict[str, Expected] = {}
        numeric = len(encoding.nodes.numbers)
        if architecture.totals:
            width = encoding.num_totals + encoding.sizes["num_graph_features"]
            found |= {"mean": numbers(width), "factor": numbers(width, low=0)}
        if (hops := architecture.fingerprint) is not None:
            found |= {"codes": codes("v", rising=True), "hops": places("v", of=hops + 1)}
            if architecture.bins and numeric:
                found["bins.edges"] = Expected(("edges of bins",), "float")
                found["bins.sizes"] = places(numeric, of=architecture.bins)
        of_edges = encoding.edges if architecture.reads_edges else None
        for side, columns in (("nodes", encoding.nodes), ("edges", of_edges)):
            if columns is not None and columns.numbers:
                bent = tensors.get(f"{side}.bent")
                knots = KNOTS if bent is not None and bool(bent.any()) else 0
                found |= named_parts({side: Scale.table(columns=len(columns.numbers), knots=knots)})
        return found

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Tensor]) -> Preprocessing:
        """What :meth:`tensors` gave."""
        scales = (part_of(tensors, name) for name in Scales._fields)
        bins = part_of(tensors, "bins")
        has_vocabulary = {"codes", "hops"} <= tensors.keys()
        return cls(
            Scales(*(Scale(**scale) if scale else None for scale in scales)),
            Bins.from_tensors(bins) if bins else None,
            Vocabulary(tensors["codes"], tensors["hops"]) if has_vocabulary else None,
            tensors.get("mean"),
            tensors.get("factor"),
        )


def _moments(seen: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Mean and standard deviation of columns, and whether they vary often; blanks left out."""
    blank = seen.isnan()
    mean, spread = seen.mean(0), seen.std(0, correction=0)
    for column in blank.any(0).nonzero().flatten().tolist():
        known = seen[~blank[:, column], column]
        mean[column] = known.mean() if known.numel() else 0.0
        spread[column] = known.std(correction=0) if known.numel() else 0.0
    median = seen.nanmedian(0).values
    varies = ((seen != median) & ~blank).sum(0) >= min(FEWEST, len(seen) / 10)
    return mean, spread, varies
