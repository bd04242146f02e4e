"""Other tasks on one GPU: a regression and twelve half-blank targets, against the classification.

Ten seeds in one stack on NCI1's graphs, its own classes against made-up targets, twenty epochs of
training and validation each, in turns. Run on a machine with a GPU:

    python benchmarks/tasks_gpu.py
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import torch

from lookhops.graphs import Graphs, Target
from lookhops.nn import RECOMMENDED, Architecture
from lookhops.sources.loading import load
from lookhops.training.stacked import StackedEngine
from shared import best_of, stack_of

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


def epochs(engine: StackedEngine) -> None:
    """Training and validation."""
    for number in range(1, EPOCHS + 1):
        engine.epoch(number)
        engine.validate()


def main() -> None:
    graphs = load("NCI1")
    tasks = tasks_of(graphs)
    print(torch.cuda.get_device_name(DEVICE))
    for name, architecture in NETWORKS.items():
        engines = [stack_of(own, architecture) for own in tasks.values()]
        for engine in engines:  # records the steps
            epochs(engine)
        times = best_of(TURNS, *(partial(epochs, engine) for engine in engines), device="cuda")
        found = {task: taken.wall / EPOCHS for task, taken in zip(tasks, times, strict=True)}
        print(f"\n{name}: ms an epoch of ten stacked seeds on {graphs.name}")
        for task, taken in found.items():
            ratio = taken / found["classification"]
            print(f"{task:26}{1000 * taken:10.2f} ms{ratio:8.2f} times the classification")


if __name__ == "__main__":
    main()
