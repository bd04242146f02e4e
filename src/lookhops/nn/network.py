"""The network: the same for every row of the paper's tables."""

from __future__ import annotations

from dataclasses import asdict, replace
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn

from lookhops.core.errors import LookHopsError
from lookhops.core.options import Architecture
from lookhops.graphs import Graphs
from lookhops.nn.conv.light import LightConv
from lookhops.nn.layer import EdgeFactors, run_layer
from lookhops.nn.linear import DenseLayers
from lookhops.nn.pool.base import Pooling, check_ratio
from lookhops.nn.registry import (
    convolution,
    edges_taken,
    find,
    make_convolution,
    make_pooling,
    pooling,
)
from lookhops.nn.whole import WITH_FEATURES, WITHOUT_FEATURES, Fingerprint, Totals
from lookhops.ops import Adjacency
from lookhops.ops.anchors import ACTIVATIONS
from lookhops.ops.batch import EdgeInputs, GraphBatch, Pooled, WholeInputs
from lookhops.ops.dropout import dropout

READOUTS = {"max+mean": 2, "max+mean+sum": 3}


class GraphNetwork(nn.Module):
    r"""The paper's network.

    Each layer: convolution, ReLU, pooling (not after the last), readout, ReLU. The readouts of all
    layers are summed and go through a dense network :math:`2h \to h \to h/2 \to` outputs.

    .. math::
        r = \sum_l \mathrm{ReLU}\bigl(\max_i x_i^{(l)} \,\|\, \mathrm{mean}_i\, x_i^{(l)}\bigr),
        \qquad o = \mathrm{MLP}(r)

    A pooling that reads the convolution's anchors, as LookHops pooling does, is one module a layer;
    it is asked before the ReLU, and its score gates the last layer too, where nothing is dropped.
    Other poolings are one module for all layers, unless they say that they are not ``shared``.

    Where edges have features, and the architecture uses them, every layer multiplies its edges by
    factors that it learns from these (:class:`~lookhops.nn.EdgeFactors`).

    Args:
        in_channels: Node features, :math:`d`.
        out_channels: Number of outputs; for a classification these are the logits of its classes.
        num_neighbourhoods: Size of the vocabulary, where the architecture has a fingerprint.
        num_totals: Number of totals, where the architecture reads them.
        num_edge_numbers: Numeric columns of edges, where the architecture uses them.
        num_edge_labels: Columns of one-hot labels of edges.
        num_graph_features: Columns of features of whole graphs among the totals.
        options: The fields of :class:`~lookhops.nn.Architecture`: ``conv``, ``pool``, ``k``, ...

    Shapes:
        - a batch of graphs: :class:`~lookhops.Graphs`, or a PyG ``Batch``
        - output :math:`(\ldots, g, \text{outputs})`
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        *,
        num_neighbourhoods: int = 1,
        num_totals: int = 1,
        num_edge_numbers: int = 0,
        num_edge_labels: int = 0,
        num_graph_features: int = 0,
        **options: Any,
    ) -> None:
        super().__init__()
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.architecture = a = Architecture(**options)
        #: Between layers; of stacked members that differ, a tensor with the share of each.
        self.dropout: float | Tensor = a.dropout
        check_ratio(self, "ratio", a.ratio)
        _check(a, out_channels)
        make_conv, make_pool = convolution(a.conv), pooling(a.pool)
        self.uses_edges = a.edges == "use" and make_conv is not None
        self.edge_channels = num_edge_numbers + num_edge_labels if self.uses_edges else 0
        widths = [in_channels] + [a.hidden] * (0 if make_conv is None else a.layers)
        self.convs = nn.ModuleList(
            make_convolution(make_conv, d_in, d_out, a.k, self.edge_channels)
            for d_in, d_out in pairwise(widths)
        )
        light = any(isinstance(conv, LightConv) for conv in self.convs)
        self.normalize = light if a.normalize is None else a.normalize

        def pool() -> Pooling | None:
            return make_pooling(
                make_pool,
                a.hidden,
                k=a.k,
                ratio=a.ratio,
                edge_ratio=a.edge_ratio,
                normalize=a.normalize is not False,
                activation=a.activation,
            )

        pools = [pool()] if self.convs else []
        if pools and pools[0] is not None:
            pools += [pool() for _ in range(_further_poolings(pools[0], len(self.convs)))]
        self.pools = nn.ModuleList(module for module in pools if module is not None)
        widths = [READOUTS[a.readout] * a.hidden, a.hidden, a.hidden // 2, out_channels]
        dense = DenseLayers(*widths)  # drawn in any case: what follows begins alike without them
        self.mlp = dense if self.convs else DenseLayers()
        self.readings = nn.ModuleDict()  # of whole graphs; their outputs are added
        if a.fingerprint is not None:
            self.readings["fingerprint"] = Fingerprint(num_neighbourhoods, out_channels)
        if a.totals:
            hidden = WITH_FEATURES if num_graph_features else WITHOUT_FEATURES
            self.readings["totals"] = Totals(num_totals, out_channels, hidden)
        self.edges: EdgeFactors | None = None
        multiplies = any(edges_taken(conv) == "edge_weight" for conv in self.convs)
        multiplies |= any(getattr(pool, "reads_edges", False) for pool in self.pools)
        if self.edge_channels and multiplies:  # drawn last: all else begins as without
            self.edges = EdgeFactors(num_edge_numbers, num_edge_labels, len(self.convs))

    @property
    def readout_channels(self) -> int:
        """Channels of the readouts (:meth:`look`); 0 without a convolution."""
        a = self.architecture
        return READOUTS[a.readout] * a.hidden if self.convs else 0

    @property
    def takes_edges(self) -> bool:
        """Whether anything reads what edges carry: factors, others' layers, readings of wholes."""
        by_layer = any(edges_taken(conv) == "edge_attr" for conv in self.convs)
        return self.edges is not None or by_layer or len(self.readings) > 0

    @classmethod
    def from_architecture(
        cls, in_channels: int, out_channels: int, architecture: Architecture, **sizes: int
    ) -> GraphNetwork:
        """A network of this architecture; ``sizes`` are those of what is read of whole graphs."""
        return cls(in_channels, out_channels, **sizes, **asdict(architecture))

    def reset_parameters(self) -> None:
        for module in (*self.convs, *self.pools, *self.mlp, self.edges):
            if hasattr(module, "reset_parameters"):
                module.reset_parameters()

    def forward(
        self,
        graphs: Graphs | GraphBatch | Any,
        key: Tensor | None = None,
        *,
        with_loss: bool = False,
    ) -> Any:
        """The outputs of each graph, shape (..., g, outputs).

        A :class:`GraphBatch` that says which nodes are alive is pooled in masked form.

        Args:
            graphs: The batch.
            key: What dropout follows from, a 64-bit integer for each stacked member, shape (...);
                by default it is drawn, so that ``torch.manual_seed`` fixes it.
            with_loss: Give ``(outputs, loss)``: beside the outputs what layers add to the training
                loss of each graph, shape (..., g), or none where no layer adds anything.
        """
        batch = graphs if isinstance(graphs, GraphBatch) else self.batch(graphs)
        outputs, decisions = self.classify(batch, masked=batch.alive is not None, key=key)
        if not with_loss:
            return outputs
        added = [pooled.loss for pooled in decisions if pooled.loss is not None]
        return outputs, torch.stack(added).sum(0).view(outputs.shape[:-1]) if added else None

    def batch(
        self,
        graphs: Graphs | Any,
        x: Tensor | None = None,
        edge_attr: Tensor | None = None,
        edge_weight: Tensor | None = None,
    ) -> GraphBatch:
        """The batch as the first layer sees it; by default with the graphs' own features.

        Args:
            graphs: :class:`~lookhops.Graphs`, or a PyG ``Batch`` or ``Data``.
            x: Node features, shape (n, d).
            edge_attr: Features of the edges, shape (e, f): numbers, then one-hot labels.
            edge_weight: Their weights, shape (e).
        """
        x = graphs.x if x is None else x
        if x is None:
            raise LookHopsError("These graphs have no node features: give them an x.")
        if x.shape[-1] != self.in_channels:
            raise LookHopsError(
                f"The model takes {self.in_channels} features a node; these graphs have "
                f"{x.shape[-1]}."
            )
        symmetric = False
        if isinstance(graphs, Graphs):
            adjacency = Adjacency.from_graphs(graphs, edge_weight)
            ends = graphs.node_ptr.long()
            bounds = torch.stack((ends[:-1], ends[1:]))
            batch = GraphBatch(x, adjacency, graphs.batch.long(), len(graphs), segments=bounds)
            symmetric = self.edge_channels > 0 and graphs.is_symmetric
        else:
            graph = getattr(graphs, "batch", None)
            if graph is None:
                graph = torch.zeros(len(x), dtype=torch.long, device=x.device)
            weight = getattr(graphs, "edge_weight", None) if edge_weight is None else edge_weight
            adjacency = Adjacency.of(graphs.edge_index, len(x), weight)
            batch = GraphBatch(x, adjacency, graph, getattr(graphs, "num_graphs", 1))
        if not self.edge_channels:
            return batch
        edge_attr = graphs.edge_attr if edge_attr is None else edge_attr
        width = 0 if edge_attr is None else edge_attr.shape[-1]
        if edge_attr is None or width != self.edge_channels:
            raise LookHopsError(
                f"The model takes {self.edge_channels} features an edge; these graphs have {width}."
            )
        return replace(batch, edges=EdgeInputs(edge_attr.to(x.dtype), adjacency.order, symmetric))

    def classify(
        self, batch: GraphBatch, masked: bool = False, key: Tensor | None = None
    ) -> tuple[Tensor, list[Pooled]]:
        """The outputs of each graph, and what each pooling decided; ``key`` as for :meth:`forward`.

        With ``masked`` pooling keeps all shapes and masks what it drops.
        """
        drops = isinstance(self.dropout, Tensor) or self.dropout > 0
        if self.training and key is None and (drops or self.readings):
            most, members = torch.iinfo(torch.int64).max, batch.x.shape[:-2]
            key = torch.randint(0, most, members, device=batch.x.device)
        batch, total, decisions = self.look(batch, masked, key)
        return self.answer(total, batch.whole, key), decisions

    def answer(
        self, total: Tensor | None, whole: WholeInputs | None, key: Tensor | None = None
    ) -> Tensor:
        """The outputs of each graph, given the sum of its readouts and what is read of wholes."""
        outputs = [] if total is None else [self.mlp(total)]
        if self.readings and whole is None:
            raise LookHopsError("This model reads whole graphs too: give the batch its `whole`.")
        outputs += [reading(whole, key) for reading in self.readings.values()]
        return torch.stack(outputs).sum(0) if len(outputs) > 1 else outputs[0]

    def look(
        self, batch: GraphBatch, masked: bool = False, key: Tensor | None = None
    ) -> tuple[GraphBatch, Tensor | None, list[Pooled]]:
        """What the layers leave of a batch, the sum of their readouts, and what poolings decided.

        The readouts, shape (..., g, d), are what the last dense layers answer from; a network
        without a convolution has none. Arguments as for :meth:`classify`.
        """
        total: Tensor | None = None
        decisions: list[Pooled] = []
        factors = self._factors(batch)
        for layer, conv in enumerate(self.convs):
            if factors is not None and batch.edges is not None:
                batch = batch.with_factors(factors[layer])
            pool = self.pools[min(layer, len(self.pools) - 1)] if self.pools else None
            last = layer == len(self.convs) - 1
            batch, read, pooled = run_layer(conv, pool, batch, self.normalize, last, masked)
            if pooled is not None:
                decisions.append(pooled)
            if self.architecture.readout == "max+mean+sum":
                sizes = batch.sizes.view(*read.shape[:-1], 1).to(read.dtype) / 10
                read = torch.cat((read, read[..., self.architecture.hidden :] * sizes), dim=-1)
            total = read if total is None else total + read
            if self.training and key is not None and not last:
                batch = batch.with_x(dropout(batch.x, self.dropout, key, layer, batch.places))
        return batch, total, decisions

    def _factors(self, batch: GraphBatch) -> Tensor | None:
        """What each layer multiplies the edges of the batch by, shape (layers, e), or none."""
        if self.edge_channels and batch.edges is None:
            raise LookHopsError("This model reads what edges carry: give the batch its `edges`.")
        if self.edges is None or batch.edges is None:
            return None
        given = batch.adjacency.factor  # by who made the batch, for all layers
        factors = self.edges.of(batch.edges)
        return factors if given is None else factors * given.to(factors.dtype)

    def extra_repr(self) -> str:
        options = ", ".join(f"{key}={value!r}" for key, value in asdict(self.architecture).items())
        return f"{self.in_channels}, {self.out_channels}, {options}"


def _check(a: Architecture, out_channels: int) -> None:
    """Refuse what makes no network."""
    if a.conv == "none" and a.fingerprint is None and not a.totals:
        raise LookHopsError("A model without a convolution reads a fingerprint, or totals.")
    if a.layers < 1 or a.hidden < 2 or out_channels < 1:
        raise LookHopsError(
            "A network needs at least one layer, two hidden channels and one output, "
            f"not layers={a.layers}, hidden={a.hidden}, out_channels={out_channels}."
        )
    find("readout", READOUTS, a.readout)
    find("activation", ACTIVATIONS, a.activation)
    if not 0 <= a.dropout < 1:
        raise LookHopsError(f"dropout is a share from 0 up to below 1, not {a.dropout!r}.")


def _further_poolings(first: Pooling, layers: int) -> int:
    """How many poolings a network of so many layers has besides the first."""
    if first.uses_anchors:
        return layers - 1
    return 0 if first.shared else max(layers - 2, 0)
