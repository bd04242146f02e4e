"""What using edges costs on one GPU: ten seeds in a stack, with and without what edges carry.

NCI1 has no edge features, so that ``--edges use`` must cost nothing there; Mutagenicity has three
kinds of bonds. Seconds a seed for fifty epochs of the training part, in turns, the best of three.
"""

from __future__ import annotations

import time
from dataclasses import replace

import torch

from lookhops.core.options import PAPER_SEEDS, Protocol
from lookhops.graphs import Graphs
from lookhops.nn import RECOMMENDED, Architecture
from lookhops.sources.loading import load
from lookhops.sources.splits import split
from lookhops.tasks import task_of
from lookhops.training.stacked import StackedEngine

EPOCHS, ROUNDS = 50, 3
NETWORKS = {
    "licheb": Architecture(),
    "licheb + lookhops": Architecture(pool="lookhops"),
    "limixhop": Architecture(conv="limixhop"),
    "gcn": Architecture(conv="gcn"),
    "gat": Architecture(conv="gat"),
    "gin": Architecture(conv="gin"),
    "recommended": RECOMMENDED,
}


def engine_of(graphs: Graphs, architecture: Architecture) -> StackedEngine:
    """An engine of ten seeds whose step is recorded."""
    splits = [split(graphs, seed) for seed in PAPER_SEEDS]
    protocol, device = Protocol(seeds=PAPER_SEEDS), torch.device("cuda")
    engine = StackedEngine(
        graphs, task_of(graphs), splits, PAPER_SEEDS, architecture, protocol, device
    )
    engine.epoch(0)
    return engine


def seconds(engine: StackedEngine) -> float:
    """Seconds a seed."""
    torch.cuda.synchronize()
    start = time.perf_counter()
    for number in range(1, EPOCHS + 1):
        engine.epoch(number)
    torch.cuda.synchronize()
    return (time.perf_counter() - start) / len(PAPER_SEEDS)


def main() -> None:
    """Print a table for each set."""
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}")
    for name in ("NCI1", "Mutagenicity"):
        graphs = load(name)
        print(f"\n{name + ': 50 epochs, ten seeds, each':36}{'ignore':>10}{'use':>10}{'ratio':>8}")
        for network, architecture in NETWORKS.items():
            pair = [
                engine_of(graphs, replace(architecture, edges=edges)) for edges in ("ignore", "use")
            ]
            rounds = [[seconds(engine) for engine in pair] for _ in range(ROUNDS)]
            without, using = (min(times) for times in zip(*rounds, strict=True))
            print(f"{network:36}{without:8.3f} s{using:8.3f} s{using / without:7.2f}x", flush=True)


if __name__ == "__main__":
    main()
