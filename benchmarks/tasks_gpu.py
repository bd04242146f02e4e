"""Other tasks on one GPU: a regression and twelve half-blank targets, against the classification.

Ten seeds in one stack on NCI1's graphs, its own classes against made-up targets, twenty epochs of
training and validation each, in turns. Run on a machine with a GPU:

    python benchmarks/tasks_gpu.py
"""

from __future__ import annotations

import time
from dataclasses import replace

import torch

from lookhops.core.options import PAPER_SEEDS, Protocol
from lookhops.graphs import Graphs, Target
from lookhops.nn import RECOMMENDED, Architecture
from lookhops.sources.loading import load
from lookhops.sources.splits import split
from lookhops.tasks import task_of
from lookhops.training.stacked import StackedEngine

DEVICE = torch.device("cuda")
EPOCHS, TURNS = 20, 3
NETWORKS = {"licheb": Architecture(), "recommended": RECOMMENDED}


def tasks_of(graphs: Graphs) -> dict[str, Graphs]:
    """The same graphs with their classes, with a number, and with twelve half-blank targets."""
    generator = torch.Generator().manual_seed(0)
    count = len(graphs)
    number = graphs.nodes_per_graph.double() + torch.randn(count, generator=generator).double()
    assays = (torch.rand(count, 12, generator=generator) < 0.5).double()
    assays[torch.rand(count, 12, generator=generator) < 0.5] = torch.nan
    twelve = tuple(Target(f"assay {j}", ("no", "yes")) for j in range(12))
    return {
        "classification": graphs,
        "regression": replace(graphs, y=number, targets=(Target("size"),)),
        "12 targets, half blank": replace(graphs, y=assays, targets=twelve),
    }


def engine_of(graphs: Graphs, architecture: Architecture) -> StackedEngine:
    splits = [split(graphs, seed) for seed in PAPER_SEEDS]
    protocol = Protocol(seeds=PAPER_SEEDS)
    return StackedEngine(
        graphs, task_of(graphs), splits, PAPER_SEEDS, architecture, protocol, DEVICE
    )


def seconds(engine: StackedEngine, first: int) -> float:
    """Seconds of an epoch, training and validation."""
    torch.cuda.synchronize()
    start = time.perf_counter()
    for number in range(first, first + EPOCHS):
        engine.epoch(number)
        engine.validate()
    torch.cuda.synchronize()
    return (time.perf_counter() - start) / EPOCHS


def main() -> None:
    graphs = load("NCI1")
    print(torch.cuda.get_device_name(DEVICE))
    for name, architecture in NETWORKS.items():
        engines = {task: engine_of(own, architecture) for task, own in tasks_of(graphs).items()}
        for engine in engines.values():  # records the steps
            seconds(engine, 1)
        found = {
            task: min(seconds(engine, 1 + EPOCHS * turn) for turn in range(1, TURNS + 1))
            for task, engine in engines.items()
        }
        print(f"\n{name}: ms an epoch of ten stacked seeds on {graphs.name}")
        for task, taken in found.items():
            ratio = taken / found["classification"]
            print(f"{task:26}{1000 * taken:10.2f} ms{ratio:8.2f} times the classification")


if __name__ == "__main__":
    main()
