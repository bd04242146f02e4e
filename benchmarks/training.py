"""One epoch of training on NCI1: LookHops against the same network in plain PyG.

    python benchmarks/training.py [--epochs 10]
    python benchmarks/training.py --device cuda    (see training_gpu.py)

Both train the paper's network (5 layers of 128 channels, k = 2, batches of 256, Adam) on the same
graphs, in turns, so that whatever else the machine does disturbs both alike; the fastest epoch of
each counts. PyG's side is what a PyG user writes: operators derived from MessagePassing that
normalise in each layer as its ChebConv does, its top-k selection, its readouts, its DataLoader.
Before the clock starts, both are given the same weights and must give the same answers.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Callable
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch_geometric.data import Batch
from torch_geometric.loader import DataLoader
from torch_geometric.nn import MessagePassing, global_max_pool, global_mean_pool
from torch_geometric.nn.pool.connect.filter_edges import filter_adj
from torch_geometric.nn.pool.select.topk import topk
from torch_geometric.utils import get_laplacian

from lookhops.nn import Architecture, GraphNetwork
from lookhops.sources.loading import load
from lookhops.sources.splits import split
from lookhops.tasks import task_of
from lookhops.training import Protocol
from lookhops.training.engine import EagerEngine
from shared import best_of, check_alike

SEED = 11


# -------------------------------------------------------------------- the network in plain PyG


class PlainLiCheb(MessagePassing):
    """LiCheb as a PyG user writes it: project, propagate by Chebyshev polynomials, merge."""

    def __init__(self, in_channels: int, out_channels: int, k: int) -> None:
        super().__init__(aggr="add")
        self.k = k
        self.project = nn.Linear(in_channels, out_channels)
        self.weight = nn.Parameter(torch.empty(k + 1, out_channels))
        self.bias = nn.Parameter(torch.zeros(out_channels))

    def forward(self, x: Tensor, edge_index: Tensor) -> tuple[Tensor, Tensor]:
        # As in ChebConv: 2 L / lambda_max - I for lambda_max = 2 is L - I, without its diagonal.
        edges, norm = get_laplacian(edge_index, None, "sym", x.dtype, x.size(0))
        apart = edges[0] != edges[1]
        edges, norm = edges[:, apart], norm[apart]
        hops = [self.project(x)]
        hops.append(self.propagate(edges, x=hops[0], norm=norm))
        for _ in range(self.k - 1):
            hops.append(2 * self.propagate(edges, x=hops[-1], norm=norm) - hops[-2])
        anchors = torch.stack(hops, dim=1)  # (n, k + 1, channels)
        return (anchors * self.weight).sum(1) + self.bias, anchors

    def message(self, x_j: Tensor, norm: Tensor) -> Tensor:
        return norm.view(-1, 1) * x_j


class PlainNetwork(nn.Module):
    """The paper's network, with or without LookHops pooling."""

    def __init__(self, in_channels: int, classes: int, a: Architecture) -> None:
        super().__init__()
        widths = [in_channels] + [a.hidden] * a.layers
        self.convs = nn.ModuleList(PlainLiCheb(i, o, a.k) for i, o in pairwise(widths))
        pools = a.layers if a.pool == "lookhops" else 0
        self.scores = nn.ModuleList(nn.Linear((a.k + 1) * a.hidden, 1) for _ in range(pools))
        self.ratio = a.ratio
        self.mlp = nn.Sequential(
            nn.Linear(2 * a.hidden, a.hidden),
            nn.ReLU(),
            nn.Linear(a.hidden, a.hidden // 2),
            nn.ReLU(),
            nn.Linear(a.hidden // 2, classes),
        )

    def forward(self, data: Batch) -> Tensor:
        x, edge_index, batch = data.x, data.edge_index, data.batch
        total = 0
        for layer, conv in enumerate(self.convs):
            x, anchors = conv(x, edge_index)
            norm = x.norm(dim=1, keepdim=True)
            x = x / torch.where(norm > 1e-12, norm, torch.ones_like(norm))
            if self.scores:
                score = torch.sigmoid(self.scores[layer](anchors.flatten(1))).squeeze(1)
                x = x * score.unsqueeze(1)
                if layer < len(self.convs) - 1:
                    kept = topk(score, self.ratio, batch)
                    edge_index, _ = filter_adj(edge_index, None, kept, num_nodes=x.size(0))
                    x, batch = x[kept], batch[kept]
            x = torch.relu(x)
            size = data.num_graphs
            read = torch.cat((global_max_pool(x, batch, size), global_mean_pool(x, batch, size)), 1)
            total = total + torch.relu(read)
        return torch.log_softmax(self.mlp(total), dim=-1)

    @torch.no_grad()
    def copy_weights(self, ours: GraphNetwork) -> None:
        """Take the weights of our network, layer by layer."""
        pairs = list(zip(self.convs, ours.convs, strict=True))
        for plain, conv in pairs:
            plain.project.load_state_dict(conv.project.state_dict())
            plain.weight.copy_(conv.weight)
            plain.bias.copy_(conv.bias)
        for score, pool in zip(self.scores, ours.pools, strict=True):
            score.weight.copy_(pool.theta.flatten()[None])
            score.bias.copy_(pool.bias)
        self.mlp.load_state_dict(ours.mlp.state_dict())


# -------------------------------------------------------------------- the clock


def plain_epoch(model: nn.Module, loader: DataLoader, device: torch.device) -> Callable[[], None]:
    """A function that trains one epoch in plain PyG."""
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

    def epoch() -> None:
        model.train()
        for batch in loader:
            batch = batch.to(device)
            optimizer.zero_grad()
            nn.functional.nll_loss(model(batch), batch.y).backward()
            optimizer.step()

    return epoch


def compare(architecture: Architecture, epochs: int, device: torch.device) -> tuple[float, float]:
    """Seconds of the fastest epoch: LookHops, plain PyG."""
    graphs = load("NCI1")
    part = split(graphs, SEED)
    protocol = Protocol(seeds=(SEED,))
    engine = EagerEngine(graphs, task_of(graphs), [part], [SEED], architecture, protocol, device)
    data = graphs.select(part.train).to_pyg()
    plain = PlainNetwork(graphs.num_features, graphs.num_classes, architecture).to(device)
    plain.copy_weights(engine.model)
    with torch.no_grad():
        theirs = plain(Batch.from_data_list(data[:512]).to(device))
        ours = engine.model(graphs.select(part.train[:512]).to(device)).log_softmax(-1)
    check_alike(ours, theirs, architecture.pool != "none")
    loader = DataLoader(data, batch_size=protocol.batch_size, shuffle=True)
    peer = plain_epoch(plain, loader, device)
    numbers = itertools.count(1)
    ours, theirs = best_of(epochs, lambda: engine.epoch(next(numbers)), peer, device=device)
    return ours.wall, theirs.wall


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--only", nargs="*", default=[], help="on a GPU, parts: none edge dd ...")
    options = parser.parse_args()
    device = torch.device(options.device)
    if device.type == "cuda":
        import training_gpu

        return training_gpu.main(options.only)
    print(f"NCI1, one epoch of training on {device}, {torch.get_num_threads()} threads")
    print(f"{'network':24}{'LookHops':>10}{'PyG':>10}{'ratio':>8}")
    for name, pool in (("LiCheb", "none"), ("LiCheb + LookHops", "lookhops")):
        ours, theirs = compare(Architecture(pool=pool), options.epochs, device)
        print(f"{name:24}{ours:8.2f} s{theirs:8.2f} s{theirs / ours:7.1f}x", flush=True)


if __name__ == "__main__":
    main()
