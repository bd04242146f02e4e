"""Every layer against PyG, forward and backward on the CPU, in one run.

LOOKHOPS_DATA names the folder of NCI1.zip and DD.zip. One batch of each set (256 graphs of NCI1, 64
of DD: as many nodes again as the former) goes through a hidden layer of 128 channels. Ours is
called as PyG's is, with the bare ``edge_index``, so that both order or normalise the edges at every
call; and with a prepared ``Adjacency``, as in a network whose layers share it. The tasks take
turns, the best of several rounds counts.
"""

import argparse
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
import torch_geometric
from rich.console import Console
from rich.table import Table
from torch import Tensor, nn
from torch_geometric import nn as pyg
from torch_geometric.data import Batch
from torch_geometric.utils import get_laplacian

import lookhops
from lookhops import nn as ours
from lookhops.ops import Adjacency, Anchors, chebyshev

GRAPHS = {"NCI1": 256, "DD": 64}
CHANNELS = 128
RATIO = 0.9


class MessagePassingLiCheb(pyg.MessagePassing):
    """LiCheb as one would write it in PyG: project, propagate hop by hop, merge."""

    def __init__(self, in_channels: int, out_channels: int, k: int) -> None:
        super().__init__(aggr="add")
        self.k = k
        self.project = nn.Linear(in_channels, out_channels)
        self.weight = nn.Parameter(torch.ones(k + 1, out_channels))
        self.bias = nn.Parameter(torch.zeros(out_channels))

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        edge_index, norm = get_laplacian(edge_index, None, "sym", x.dtype, len(x))
        norm[edge_index[0] == edge_index[1]] -= 1  # 2 L / lambda_max - I with lambda_max = 2
        before = self.project(x)
        now = self.propagate(edge_index, x=before, norm=norm)
        out = before * self.weight[0] + now * self.weight[1]
        for j in range(2, self.k + 1):
            before, now = now, 2 * self.propagate(edge_index, x=now, norm=norm) - before
            out = out + now * self.weight[j]
        return out + self.bias

    def message(self, x_j: Tensor, norm: Tensor) -> Tensor:
        return norm.view(-1, 1) * x_j


@dataclass
class Pair:
    """A layer of PyG and ours, called alike but for the extra arguments."""

    name: str
    theirs: nn.Module
    mine: nn.Module
    target: float | None = None
    pools: bool = False
    anchors: bool = False


def pairs() -> list[Pair]:
    c = CHANNELS
    light = ours.LiChebConv(c, c, 2)
    same = MessagePassingLiCheb(c, c, 2)
    same.load_state_dict(light.state_dict())
    return [
        Pair("LiCheb k=2 / in MessagePassing", same, light, 4),
        Pair("LiCheb k=4 / ChebConv K=5", pyg.ChebConv(c, c, 5), ours.LiChebConv(c, c, 4), 4),
        Pair(
            "LookHops k=2 / TopKPooling",
            *(pyg.TopKPooling(c, RATIO), ours.LookHopsPooling(c, 2, RATIO)),
            target=2,
            pools=True,
            anchors=True,
        ),
        Pair("Edge / EdgePooling", pyg.EdgePooling(c), ours.Edge(c), 30, pools=True),
        Pair("GCN / GCNConv", pyg.GCNConv(c, c), ours.GCN(c, c)),
        Pair("GAT / GATConv", pyg.GATConv(c, c), ours.GAT(c, c)),
        Pair("Cheb k=2 / ChebConv K=3", pyg.ChebConv(c, c, 3), ours.Cheb(c, c, 2)),
        Pair("MixHop k=2 / MixHopConv", pyg.MixHopConv(c, 43), ours.MixHop(c, c, 2)),
        Pair("TopK / TopKPooling", pyg.TopKPooling(c, RATIO), ours.TopK(c, RATIO), pools=True),
        Pair("SAG / SAGPooling", pyg.SAGPooling(c, RATIO), ours.SAG(c, RATIO), pools=True),
        Pair("ASAP / ASAPooling", pyg.ASAPooling(c, RATIO), ours.ASAP(c, RATIO), pools=True),
    ]


def best_of(
    seconds: float, clock: Callable[[], float], *tasks: Callable[[], object]
) -> list[float]:
    """The shortest time of each task in milliseconds, the tasks taking turns for ``seconds``."""
    times: list[list[float]] = [[] for _ in tasks]
    end = time.perf_counter() + seconds
    while len(times[0]) < 3 or time.perf_counter() < end:
        for task, spent in zip(tasks, times, strict=True):
            start = clock()
            task()
            spent.append(1000 * (clock() - start))
    return [min(spent) for spent in times]


def training_step(layer: nn.Module, x: Tensor, arguments: Callable[[], tuple]) -> Callable:
    """Forward and backward, with gradients for the input too, as in a hidden layer."""
    upstream = torch.randn(len(x), CHANNELS + 1)

    def step() -> None:
        x.grad = None
        layer.zero_grad()
        out = layer(x, *arguments())
        out = out[0] if isinstance(out, tuple) else out
        out.backward(upstream[: out.shape[0], : out.shape[1]])

    return step


def compare(
    pair: Pair, graphs: lookhops.Graphs, seconds: float, clock: Callable[[], float]
) -> list[float]:
    """Milliseconds of PyG's layer, of ours, and of ours with a prepared adjacency."""
    batch = Batch.from_data_list(graphs.to_pyg())
    edge_index, graph, n = batch.edge_index, batch.batch, graphs.num_nodes
    x, z = (torch.randn(n, CHANNELS, requires_grad=True) for _ in range(2))
    prepared = Adjacency.from_graphs(graphs)
    operator = prepared.chebyshev(x.dtype)

    def arguments(edges: Tensor | Adjacency) -> tuple:
        if not pair.pools:
            return (edges,)
        if not pair.anchors:
            return edges, None, graph
        z.grad = None
        return edges, None, graph, Anchors(chebyshev, operator, z, 2)

    def theirs() -> tuple:
        if isinstance(pair.theirs, pyg.EdgePooling):
            return edge_index, graph
        return (edge_index, None, graph) if pair.pools else (edge_index,)

    if isinstance(pair.theirs, MessagePassingLiCheb):
        torch.testing.assert_close(pair.mine(x, edge_index), pair.theirs(x, edge_index))
    return best_of(
        seconds,
        clock,
        training_step(pair.theirs, x, theirs),
        training_step(pair.mine, x, lambda: arguments(edge_index)),
        training_step(pair.mine, x, lambda: arguments(prepared)),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=4.0, help="how long to try each pair")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument(
        "--cpu-time", action="store_true", help="processor time: for a busy machine, with 1 thread"
    )
    parser.add_argument("--only", default="", help="pairs whose name contains this")
    options = parser.parse_args()
    folder = Path(os.environ.get("LOOKHOPS_DATA", ""))
    if not all((folder / f"{name}.zip").is_file() for name in GRAPHS):
        sys.exit("layers.py: set LOOKHOPS_DATA to a folder with NCI1.zip and DD.zip")
    clock = time.process_time if options.cpu_time else time.perf_counter
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    for name, count in GRAPHS.items():
        graphs = lookhops.load(name)
        graphs = graphs[torch.randperm(len(graphs))[:count]]
        table = Table(
            title=f"{name}, {count} graphs: {graphs.num_nodes:,} nodes, {graphs.num_edges:,} edges;"
            f" PyG {torch_geometric.__version__}, {options.threads} threads",
            title_justify="left",
        )
        table.add_column("ours / PyG's, forward and backward")
        for heading in ("PyG ms", "ours ms", "times", "prepared ms", "times", "target"):
            table.add_column(heading, justify="right")
        for pair in pairs():
            if options.only.lower() not in pair.name.lower():
                continue
            peer, plain, prepared = compare(pair, graphs, options.seconds, clock)
            table.add_row(
                pair.name,
                *(f"{peer:.1f}", f"{plain:.1f}", f"{peer / plain:.1f}"),
                *(f"{prepared:.1f}", f"{peer / prepared:.1f}"),
                f"{pair.target:g}" if pair.target else "",
            )
        Console(width=100).print(table)
        x = torch.randn(graphs.num_nodes, CHANNELS, requires_grad=True)
        step = training_step(nn.Linear(CHANNELS, CHANNELS), x, lambda: ())
        [dense] = best_of(options.seconds, clock, step)
        print(f"a dense layer of {CHANNELS} by {CHANNELS} on these nodes: {dense:.1f} ms")


if __name__ == "__main__":
    main()
