"""Poolings of PyG and of torch-geometric-pool by name."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from lookhops.core.errors import LookHopsError
from lookhops.nn.others.names import OtherName, tried
from lookhops.nn.pool.base import Pooling
from lookhops.ops import Adjacency
from lookhops.ops.batch import GraphBatch, Pooled
from lookhops.ops.ranking import edges_between


class Coarse(NamedTuple):
    """The graphs that another library's pooling made."""

    x: Tensor
    edge_index: Tensor
    weight: Tensor | None  # of each edge
    batch: Tensor  # graph of each new node
    perm: Tensor | None = None  # the node that each was, where they are not new
    loss: Tensor | None = None  # of the batch


class OtherPooling(Pooling):
    """A pooling of another library, for one network at a time; ``call`` calls its module."""

    fixed_shapes = False
    stackable = False
    reads_edges = False

    def __init__(
        self,
        in_channels: int,
        ratio: float,
        layer: nn.Module,
        call: Callable[[nn.Module, GraphBatch], Coarse],
    ) -> None:
        super().__init__(in_channels, ratio)
        self.layer = layer
        self.call = call

    def pool(self, batch: GraphBatch, masked: bool = False) -> tuple[GraphBatch, Pooled]:
        if masked:
            raise LookHopsError(f"{type(self.layer).__name__} cannot pool graphs in masked form.")
        made = self.call(self.layer, batch)
        if made.x.dim() != 2 or made.x.shape[1] != batch.x.shape[1]:
            raise LookHopsError(
                f"{type(self.layer).__name__} gave features of shape {tuple(made.x.shape)}, "
                f"not {batch.x.shape[1]} for each node."
            )
        stays = made.perm if made.perm is not None else _places_taken(made, batch)
        # In the order of the nodes that stayed, and so of the graphs.
        order = (made.batch if stays is None else stays).argsort(stable=True)
        number = torch.empty_like(order).scatter(0, order, torch.arange(len(order)).to(order))
        graph = made.batch.index_select(0, order)
        place = None if stays is None else batch.places[stays.index_select(0, order)]
        x = made.x.index_select(0, order)
        adjacency = Adjacency.of(number[made.edge_index], len(order), made.weight)
        below = replace(batch, x=x, adjacency=adjacency, graph=graph, place=place, segments=None)
        # Edges that another library made have no features.
        below = replace(below, alive=None, edge_alive=None, edges=None, edge_now=None)
        return below, _decision(made, stays, batch)

    def extra_repr(self) -> str:
        return f"{self.in_channels}"


def _places_taken(made: Coarse, batch: GraphBatch) -> Tensor | None:
    """For new nodes, nodes of their graph whose places they take; none where there are too few."""
    own = GraphBatch(made.x, batch.adjacency, made.batch, batch.num_graphs).positions
    size = batch.sizes
    if bool((own >= size.index_select(0, made.batch)).any()):
        return None
    return (size.cumsum(0) - size).index_select(0, made.batch) + own


def _decision(made: Coarse, stays: Tensor | None, batch: GraphBatch) -> Pooled:
    """What was answered, as far as the nodes that were there can show it."""
    node = torch.ones_like(batch.graph, dtype=torch.bool)
    if stays is not None:
        node = torch.zeros_like(node).index_fill(0, stays, True)
    # A loss is of the batch, and so of each of its graphs.
    loss = None if made.loss is None else made.loss.expand(batch.num_graphs)
    return Pooled(node.to(batch.x.dtype), node, edges_between(batch, node), loss=loss)


@dataclass(frozen=True)
class MakeOtherPooling:
    """Makes a pooling of another library: ``make(channels, k, ratio, **options)``."""

    name: OtherName
    kind: type[nn.Module]
    call: Callable[[nn.Module, GraphBatch], Coarse]
    uses_anchors = False

    def __call__(self, channels: int, k: int, ratio: float, **options: Any) -> nn.Module:
        """The layer, tried on a small graph."""
        return tried(lambda: self._tried(channels, ratio), lambda: self._made(channels, ratio))

    def _made(self, channels: int, ratio: float) -> OtherPooling:
        offered = {"in_channels": channels, "ratio": ratio, "sparse_output": True}
        return OtherPooling(channels, ratio, self.name.make(self.kind, offered), self.call)

    def _tried(self, channels: int, ratio: float) -> OtherPooling:
        made = self._made(channels, ratio).eval()
        with torch.no_grad():
            self.name.attempt(lambda: made.pool(_small_batch(channels)))
        return made.train()


def _small_batch(channels: int) -> GraphBatch:
    """Two paths of five nodes."""
    source = torch.tensor([0, 1, 1, 2, 2, 3, 3, 4])
    edges = torch.stack((source, source.view(-1, 2).flip(1).flatten()))
    x = torch.linspace(-1, 1, 10 * channels).view(10, channels)
    adjacency = Adjacency.of(torch.cat((edges, edges + 5), 1), 10)
    return GraphBatch(x, adjacency, torch.arange(10) // 5, 2)


def find_pooling(text: str) -> MakeOtherPooling:
    """What makes the pooling of a name such as ``pyg:PANPooling`` or ``tgp:kmis/order_k=2``."""
    name = OtherName.parse(text)
    if name.package == "pyg":
        kind = name.find(pyg_poolings(), "pooling")
        if not {"edge_index", "M"} & {*inspect.signature(kind.forward).parameters}:
            name.refuse("gives no edges between what it pools to, so that no layer can follow.")
        return MakeOtherPooling(name, kind, _call_pyg)
    kind = name.find(tgp_poolings(), "pooling")
    return MakeOtherPooling(name, kind, _call_tgp)


@cache
def pyg_poolings() -> dict[str, type[nn.Module]]:
    """The poolings of the installed PyG."""
    import torch_geometric.nn.pool as library

    return {n: getattr(library, n) for n in library.__all__ if n.endswith("Pooling")}


class _PathMatrix(NamedTuple):
    """What PANPooling reads of the matrix that PANConv would give it: here the edges themselves."""

    row: Tensor
    column: Tensor
    weight: Tensor

    def coo(self) -> tuple[Tensor, Tensor, Tensor]:
        return self.row, self.column, self.weight


def _call_pyg(layer: nn.Module, batch: GraphBatch) -> Coarse:
    """Call a pooling of PyG, and name what it gives: PyG tells by its place in a tuple."""
    adjacency, graph_of = batch.adjacency, batch.graph.long()
    weight = adjacency.weight if adjacency.weighted else None
    source, target = adjacency.edge_index
    taken = inspect.signature(layer.forward).parameters
    if "M" in taken:
        ones = batch.x.new_ones(adjacency.num_edges)
        matrix = _PathMatrix(target, source, ones if weight is None else weight)
        x, edges, weights, graph, perm, _ = layer(batch.x, matrix, batch=graph_of)
        return Coarse(x, edges, None if weight is None else weights, graph, perm)
    edge_index = torch.stack((source, target))
    weighted = next((name for name in ("edge_weight", "edge_attr") if name in taken), None)
    if weighted is None:
        x, edges, graph, _ = layer(batch.x, edge_index, batch=graph_of)
        return Coarse(x, edges, None, graph)
    x, edges, weights, graph, perm, *_ = layer(
        batch.x, edge_index, batch=graph_of, **{weighted: weight}
    )
    return Coarse(x, edges, weights, graph, perm)


def tgp_poolings() -> dict[str, type[nn.Module]]:
    """The poolings of torch-geometric-pool, by its short names and by those of their classes."""
    try:
        from tgp.poolers import pooler_map
    except ImportError as error:
        raise LookHopsError(
            "Names that begin with tgp: need torch-geometric-pool: pip install "
            f"torch-geometric-pool ({error})."
        ) from error
    return {**pooler_map, **{kind.__name__: kind for kind in pooler_map.values()}}


def _call_tgp(layer: nn.Module, batch: GraphBatch) -> Coarse:
    """Call a pooling of torch-geometric-pool."""
    adjacency, graph_of = batch.adjacency, batch.graph.long()
    weight = adjacency.weight if adjacency.weighted else None
    made = layer(batch.x, adj=adjacency.edge_index, edge_weight=weight, batch=graph_of)
    if made.x.dim() == 3 or made.edge_index.dim() == 3:
        raise LookHopsError(f"{type(layer).__name__} gives dense graphs only, which are not read.")
    losses = [value for value in (made.loss or {}).values() if isinstance(value, Tensor)]
    loss = torch.stack([value.mean() for value in losses]).sum() if losses else None
    graph = torch.zeros_like(graph_of[: len(made.x)]) if made.batch is None else made.batch
    return Coarse(made.x, made.edge_index, made.edge_weight, graph, None, loss)
