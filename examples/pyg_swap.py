"""An ordinary PyG training script, run twice: with PyG's layers, then with ours in their place.

python examples/pyg_swap.py --epochs 30
"""

import argparse
import time

import torch
from torch import nn
from torch.nn.functional import cross_entropy
from torch_geometric.loader import DataLoader
from torch_geometric.nn import ChebConv, TopKPooling, global_max_pool, global_mean_pool

import lookhops
from lookhops.nn import LiChebConv, LookHopsPooling


class Net(nn.Module):
    """Two convolutions with a pooling after each; what they are is up to the caller."""

    def __init__(self, features: int, classes: int, make_conv, make_pool, hidden: int = 64) -> None:
        super().__init__()
        self.convs = nn.ModuleList((make_conv(features, hidden), make_conv(hidden, hidden)))
        self.pools = nn.ModuleList(make_pool(hidden) for _ in self.convs)
        self.classify = nn.Linear(2 * hidden, classes)

    def forward(self, data):
        x, edge_index, batch = data.x, data.edge_index, data.batch
        for conv, pool in zip(self.convs, self.pools, strict=True):
            x = conv(x, edge_index).relu()
            x, edge_index, _, batch, _, _ = pool(x, edge_index, None, batch)
        read = (global_max_pool(x, batch), global_mean_pool(x, batch))
        return self.classify(torch.cat(read, dim=1))


def train(model: nn.Module, train_set: list, test_set: list, epochs: int) -> float:
    """Train, and return the accuracy on graphs that were not trained on."""
    optimiser = torch.optim.Adam(model.parameters(), lr=0.005)
    for _ in range(epochs):
        for data in DataLoader(train_set, batch_size=128, shuffle=True):
            optimiser.zero_grad()
            cross_entropy(model(data), data.y).backward()
            optimiser.step()
    model.eval()
    with torch.no_grad():
        hits = [model(data).argmax(1) == data.y for data in DataLoader(test_set, batch_size=256)]
    return float(torch.cat(hits).float().mean())


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--graphs", type=int, default=None, help="use only so many")
    options = parser.parse_args()
    graphs = lookhops.load("solubility")
    order = torch.randperm(len(graphs), generator=torch.Generator().manual_seed(0))
    data = graphs[order[: options.graphs]].to_pyg()
    cut = int(0.8 * len(data))
    for name, make_conv, make_pool in (
        ("PyG's", lambda d, h: ChebConv(d, h, K=3), lambda h: TopKPooling(h, ratio=0.8)),
        ("ours", lambda d, h: LiChebConv(d, h, k=2), lambda h: LookHopsPooling(h, ratio=0.8)),
    ):
        torch.manual_seed(0)
        model = Net(graphs.num_features, graphs.num_classes, make_conv, make_pool)
        start = time.perf_counter()
        accuracy = train(model, data[:cut], data[cut:], options.epochs)
        seconds = time.perf_counter() - start
        size = sum(p.numel() for p in model.parameters())
        print(f"{name:6} {size:7,} parameters  accuracy {accuracy:.1%}  {seconds:.1f} s")


if __name__ == "__main__":
    main()
