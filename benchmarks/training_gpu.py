"""Training on one GPU: many seeds at once, against plain PyG. Called by training.py --device cuda.

Fifty epochs of the training part, as in the paper's timing. PyG trains one seed; a few epochs of it
are timed and scaled to fifty. Ours trains ten seeds in one stack, and one alone.
"""

from __future__ import annotations

from dataclasses import asdict, replace

import torch
from torch import Tensor, nn
from torch.profiler import ProfilerActivity, profile
from torch_geometric.data import Batch
from torch_geometric.loader import DataLoader
from torch_geometric.nn import (
    ASAPooling,
    EdgePooling,
    SAGPooling,
    TopKPooling,
    global_max_pool,
    global_mean_pool,
)

from lookhops.core.options import FINGERPRINT, RECOMMENDED
from lookhops.graphs import Graphs
from lookhops.nn import Architecture
from lookhops.sources.loading import load
from lookhops.sources.splits import Split, split
from lookhops.tasks import task_of
from lookhops.training import PAPER_SEEDS, Protocol
from lookhops.training.stacked import StackedEngine
from shared import seconds, stack_of
from training import PlainNetwork, plain_epoch

DEVICE = torch.device("cuda")
EPOCHS = 50
PEERS = {"topk": TopKPooling, "sag": SAGPooling, "asap": ASAPooling, "edge": EdgePooling}


class PyGNetwork(PlainNetwork):
    """The paper's network in plain PyG, with one of PyG's own poolings shared by all layers."""

    def __init__(self, in_channels: int, classes: int, a: Architecture) -> None:
        super().__init__(in_channels, classes, a)
        make = PEERS[a.pool]
        self.pool = make(a.hidden) if a.pool == "edge" else make(a.hidden, ratio=a.ratio)

    def forward(self, data: Batch) -> Tensor:
        x, edge_index, batch = data.x, data.edge_index, data.batch
        total = 0
        for layer, conv in enumerate(self.convs):
            x = torch.relu(conv(x, edge_index)[0])
            if layer < len(self.convs) - 1:
                if isinstance(self.pool, EdgePooling):
                    x, edge_index, batch, _ = self.pool(x, edge_index, batch)
                else:
                    x, edge_index, _, batch, *_ = self.pool(x, edge_index, None, batch)
            size = data.num_graphs
            read = torch.cat((global_max_pool(x, batch, size), global_mean_pool(x, batch, size)), 1)
            total = total + torch.relu(read)
        return torch.log_softmax(self.mlp(total), dim=-1)


def ours(graphs: Graphs, seeds: tuple[int, ...], precision: str, epochs: int, **options) -> float:
    """Seconds a seed for fifty epochs."""
    engine = stack_of(graphs, Architecture(**options), seeds, precision)
    engine.epoch(0)  # records the step

    def train() -> None:
        for number in range(1, epochs + 1):
            engine.epoch(number)

    return seconds(train, DEVICE).wall / len(seeds) * EPOCHS / epochs


def pyg(graphs: Graphs, epochs: int, **options) -> float:
    """Seconds for fifty epochs of one seed in plain PyG."""
    architecture = Architecture(**options)
    network = PyGNetwork if architecture.pool in PEERS else PlainNetwork
    model = network(graphs.num_features, graphs.num_classes, architecture).to(DEVICE)
    for parameter in model.parameters():
        if parameter.dim() > 1:
            nn.init.xavier_uniform_(parameter)
    data = graphs.select(split(graphs, 11).train).to_pyg()
    epoch = plain_epoch(model, DataLoader(data, batch_size=256, shuffle=True), DEVICE)
    if epochs > 1:
        seconds(epoch, DEVICE)  # warm up
    return sum(seconds(epoch, DEVICE).wall for _ in range(epochs)) * EPOCHS / epochs


def table(graphs: Graphs, rows: list[tuple[str, dict, int, int]]) -> None:
    head = f"{graphs.name}: seconds for 50 epochs"
    print(f"\n{head:34}{'ten seeds, each':>24}{'one seed':>10}{'PyG':>9}{'ratio':>8}")
    print(f"{'':34}{'float32':>12}{'tf32':>12}{'float32':>10}")
    for name, options, epochs, peer_epochs in rows:
        full, fast = (ours(graphs, PAPER_SEEDS, p, epochs, **options) for p in ("float32", "tf32"))
        alone = ours(graphs, PAPER_SEEDS[:1], "float32", epochs, **options)
        peer = pyg(graphs, peer_epochs, **options) if peer_epochs else float("nan")
        print(
            f"{name:34}{full:10.3f} s{fast:10.3f} s{alone:8.2f} s{peer:7.1f} s{peer / full:7.0f}x",
            flush=True,
        )


def inference(graphs: Graphs) -> None:
    """Graphs a second through a recorded forward pass over all of them, from packed data."""
    everything = torch.arange(len(graphs))
    part = Split(everything, everything, everything)
    protocol = Protocol(seeds=(11,), batch_size=len(graphs), precision="float32")
    engine = StackedEngine(graphs, task_of(graphs), [part], (11,), Architecture(), protocol, DEVICE)
    engine.validate()
    torch.cuda.synchronize()
    taken = seconds(lambda: [engine.validate() for _ in range(20)], DEVICE)
    rate = 20 * len(graphs) / taken.wall
    print(f"\nInference over {graphs.name} from packed data: {rate:,.0f} graphs a second")


def copy_bandwidth() -> float:
    """Bytes a second of a large copy on the device, read and written."""
    x = torch.empty(2**29, device=DEVICE)
    y = torch.empty_like(x)
    y.copy_(x)
    torch.cuda.synchronize()
    return 10 * 2 * x.nbytes / seconds(lambda: [y.copy_(x) for _ in range(10)], DEVICE).wall


def roofline(graphs: Graphs, precision: str) -> None:
    """What fraction of the copy bandwidth a training step reaches, kernel by kernel."""
    engine = stack_of(graphs, Architecture(), PAPER_SEEDS, precision)
    engine.epoch(0)
    with profile(activities=[ProfilerActivity.CUDA, ProfilerActivity.CPU]) as record:
        engine.epoch(1)
        torch.cuda.synchronize()
    steps = engine.orders["train"].shape[1]
    copy = copy_bandwidth()
    # Bytes that must move, a step: T is one tensor of all nodes' features; x of the first layer is
    # narrower. Each kernel reads its inputs once and writes its outputs once.
    T = len(PAPER_SEEDS) * engine.capacity.nodes * 128 * 4
    edges = engine.capacity.edges * 8
    first = graphs.num_features / 128
    per_step = {
        "gemm": (4 * 2 + 1 + first) * 2 * T + 4 * 2 * T,  # forward and weights; features backward
        "_hop_kernel": 10 * (2 * T + edges),
        "_merge_kernel": 5 * (3 * T + edges) + 5 * (4 * T + edges),  # x, hop -> z'; g, hop, z -> dz
        "_readout_kernel": 5 * 2 * T,  # with the activation
        "_activate_backward_kernel": 5 * 3 * T,
    }
    found: dict[str, list[float]] = {}
    total = 0.0
    for event in record.key_averages():
        if event.self_device_time_total == 0 or event.self_cpu_time_total > 0:
            continue
        dense = "gemm" in event.key or event.key == "_product_kernel"
        key = "gemm" if dense else event.key.split("<")[0][:44]
        row = found.setdefault(key, [0.0, 0.0])
        row[0] += event.self_device_time_total / 1e6
        row[1] += event.count
        total += event.self_device_time_total / 1e6
    print(f"\n{graphs.name}, ten seeds, {precision}: a training step against the copy bandwidth")
    print(f"copy: {copy / 1e12:.2f} TB/s; one tensor of features: {T / 1e6:.0f} MB")
    print(f"{'kernel':46}{'ms a step':>10}{'calls':>7}{'TB/s':>7}{'of copy':>9}")
    counted = sum(per_step.values())
    for key, (spent, calls) in sorted(found.items(), key=lambda item: -item[1][0])[:6]:
        rate = per_step.get(key, 0) * steps / spent
        shown = f"{rate / 1e12:7.2f}{rate / copy:9.0%}" if rate else ""
        print(f"{key:46}{spent / steps * 1e3:10.2f}{calls / steps:7.0f}{shown}")
    rate = counted * steps / total
    print(f"{'the step':46}{total / steps * 1e3:10.2f}{'':7}{rate / 1e12:7.2f}{rate / copy:9.0%}")
    print(f"peak memory: {torch.cuda.max_memory_allocated() / 2**30:.1f} GiB")


ROWS = {  # network, epochs of ours, epochs of PyG
    "none": ("LiCheb", 50, 3),
    "lookhops": ("LiCheb + LookHops pooling", 50, 2),
    "topk": ("LiCheb + TopK", 25, 2),
    "sag": ("LiCheb + SAG", 25, 2),
    "edge": ("LiCheb + EdgePool", 25, 1),
    "asap": ("LiCheb + ASAP", 25, 2),
}


def beside_the_network(graphs: Graphs) -> None:
    """What the readings of whole graphs add to the recommended model's network, ten seeds."""
    bare = replace(RECOMMENDED, fingerprint=None, totals=False)
    rows = {
        "the recommended model's network": bare,
        "with fingerprint and totals": RECOMMENDED,
        "the fingerprint alone": FINGERPRINT,
    }
    print(f"\n{graphs.name}: seconds for 50 epochs, a seed of ten, float32")
    for name, architecture in rows.items():
        print(
            f"{name:34}{ours(graphs, PAPER_SEEDS, 'float32', 25, **asdict(architecture)):10.3f} s"
        )


def main(only: list[str]) -> None:
    """Run the named parts: poolings, ``dd``, ``whole``, ``inference``, ``roofline``; else all."""
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}")
    parts = only or [*ROWS, "dd", "whole", "inference", "roofline"]
    rows = [(ROWS[pool][0], {"pool": pool}, *ROWS[pool][1:]) for pool in parts if pool in ROWS]
    if rows:
        table(load("NCI1"), rows)
    if "dd" in parts:
        table(load("DD"), [("LiCheb", {}, 10, 3)])
    if "whole" in parts:
        beside_the_network(load("NCI1"))
    if "inference" in parts:
        inference(load("NCI1"))
    if "roofline" in parts:
        torch.cuda.reset_peak_memory_stats()
        roofline(load("DD"), "tf32")
        roofline(load("DD"), "float32")
