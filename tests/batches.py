"""Random batches of small awkward graphs, and dense matrices to compare with."""

from dataclasses import dataclass, replace

import torch
from hypothesis import strategies as st
from torch import Tensor

from lookhops.nn import GraphBatch
from lookhops.nn.registry import CONVOLUTIONS, POOLINGS
from lookhops.ops import Adjacency

#: Every convolution and every pooling, though not all of one with all of the other.
LAYER_PAIRS = [
    (conv, pool)
    for conv in CONVOLUTIONS
    for pool in POOLINGS
    if pool in ("none", "lookhops") or conv in ("licheb", "gcn")
]


@dataclass(frozen=True)
class Batch:
    """What a PyG user holds: node features, edges, the graph of each node."""

    x: Tensor
    edge_index: Tensor
    batch: Tensor
    num_graphs: int
    edge_weight: Tensor | None = None

    @property
    def sizes(self) -> list[int]:
        """Nodes of each graph."""
        return torch.bincount(self.batch, minlength=self.num_graphs).tolist()

    def level(self) -> GraphBatch:
        """The same batch as our network takes it."""
        adjacency = Adjacency.of(self.edge_index, len(self.x), self.edge_weight)
        return GraphBatch(self.x, adjacency, self.batch, self.num_graphs)

    def to(self, dtype: torch.dtype) -> "Batch":
        """The same batch in another precision."""
        weight = None if self.edge_weight is None else self.edge_weight.to(dtype)
        return replace(self, x=self.x.to(dtype), edge_weight=weight)


def make_batch(
    seed: int,
    sizes: list[int] | tuple[int, ...] = (5, 1, 8, 3),
    channels: int = 4,
    directed: bool = False,
    weighted: bool = False,
    loops: bool = False,
    edges_per_node: float = 1.5,
    dtype: torch.dtype = torch.float32,
) -> Batch:
    """A batch of random graphs: edges may repeat, some nodes have none."""
    generator = torch.Generator().manual_seed(seed)
    found, first = [], 0
    for size in sizes:
        pairs = torch.randint(0, max(size, 1), (2, int(edges_per_node * size)), generator=generator)
        if not loops:
            pairs = pairs[:, pairs[0] != pairs[1]]
        found.append(pairs + first)
        first += size
    one_way = torch.cat(found, dim=1) if found else torch.zeros(2, 0, dtype=torch.long)
    weight = torch.rand(one_way.shape[1], generator=generator, dtype=torch.float64).add(0.1)
    edge_index = one_way if directed else torch.cat((one_way, one_way.flip(0)), dim=1)
    weight = weight if directed else weight.repeat(2)
    shuffled = torch.randperm(edge_index.shape[1], generator=generator)
    return Batch(
        x=torch.randn(first, channels, generator=generator, dtype=torch.float64).to(dtype),
        edge_index=edge_index[:, shuffled],
        batch=torch.repeat_interleave(torch.arange(len(sizes)), torch.tensor(sizes).long()),
        num_graphs=len(sizes),
        edge_weight=weight[shuffled].to(dtype) if weighted else None,
    )


@st.composite
def batches(
    draw: st.DrawFn,
    channels: int = 4,
    min_graphs: int = 0,
    min_nodes: int = 0,
    weighted: bool | None = None,
) -> Batch:
    """Batches with empty and one-node graphs, isolated nodes, loops, repeated and one-way edges."""
    return make_batch(
        draw(st.integers(0, 2**16)),
        draw(st.lists(st.integers(min_nodes, 7), min_size=min_graphs, max_size=4)),
        channels,
        directed=draw(st.booleans()),
        weighted=draw(st.booleans()) if weighted is None else weighted,
        loops=draw(st.booleans()),
        edges_per_node=draw(st.sampled_from([0, 0.7, 2])),
        dtype=torch.float64,
    )


def dense(batch: Batch) -> Tensor:
    """The matrix A with the weights of the edges j -> i at (i, j), parallel edges added up."""
    n = len(batch.x)
    weight = batch.edge_weight
    weight = torch.ones(batch.edge_index.shape[1]) if weight is None else weight
    source, target = batch.edge_index
    matrix = torch.zeros(n, n, dtype=torch.float64)
    return matrix.index_put((target, source), weight.double(), accumulate=True)


def dense_chebyshev(batch: Batch) -> Tensor:
    """-D^{-1/2} A D^{-1/2} without self-loops, D the weights that leave a node."""
    a = dense(batch)
    a = a - a.diag().diag()
    degree = a.sum(0)
    scale = torch.where(degree > 0, degree, 1).rsqrt() * (degree > 0)
    return -scale[:, None] * a * scale


def dense_mixhop(batch: Batch) -> Tensor:
    """D^{-1/2} (A + I) D^{-1/2}, D the weights that enter a node; loops that exist are kept."""
    a = dense(batch)
    loops = a.diag()
    own = loops if batch.edge_weight is not None else torch.ones_like(loops)
    a = a - loops.diag() + torch.where(loops != 0, own, 1).diag()
    scale = a.sum(1).rsqrt()
    return scale[:, None] * a * scale


def chebyshev_hops(matrix: Tensor, z: Tensor, k: int) -> list[Tensor]:
    """T_0 z to T_k z, by the recurrence."""
    hops = [z, matrix @ z]
    while len(hops) <= k:
        hops.append(2 * matrix @ hops[-1] - hops[-2])
    return hops[: k + 1]


def power_hops(matrix: Tensor, z: Tensor, k: int) -> list[Tensor]:
    """z, A z to A^k z."""
    return [torch.linalg.matrix_power(matrix, j) @ z for j in range(k + 1)]


def relabel(batch: Batch, order: Tensor) -> Batch:
    """The batch with node ``order[i]`` called i."""
    number = torch.empty_like(order)
    number[order] = torch.arange(len(order))
    return replace(
        batch, x=batch.x[order], edge_index=number[batch.edge_index], batch=batch.batch[order]
    )


def shuffle_within(batch: Batch, seed: int) -> Tensor:
    """A new order of the nodes in which every graph's nodes change places among themselves."""
    noise = torch.rand(len(batch.x), generator=torch.Generator().manual_seed(seed))
    return torch.argsort(batch.batch.double() + noise * 0.9)


def join(*parts: Batch) -> Batch:
    """One batch of all the graphs of several."""
    xs, edges, graphs, weights, nodes, number = [], [], [], [], 0, 0
    for part in parts:
        xs.append(part.x)
        edges.append(part.edge_index + nodes)
        graphs.append(part.batch + number)
        weights.append(part.edge_weight)
        nodes += len(part.x)
        number += part.num_graphs
    weight = None if weights[0] is None else torch.cat(weights)
    return Batch(torch.cat(xs), torch.cat(edges, dim=1), torch.cat(graphs), number, weight)


def split(batch: Batch) -> list[Batch]:
    """Each graph of a batch as a batch of its own."""
    found = []
    for graph in range(batch.num_graphs):
        node = batch.batch == graph
        first = int(node.nonzero()[0]) if node.any() else 0
        edge = node[batch.edge_index[0]]
        found.append(
            Batch(
                batch.x[node],
                batch.edge_index[:, edge] - first,
                torch.zeros(int(node.sum()), dtype=torch.long),
                1,
                None if batch.edge_weight is None else batch.edge_weight[edge],
            )
        )
    return found
