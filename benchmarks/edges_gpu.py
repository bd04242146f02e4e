"""What using edges costs on one GPU: ten seeds in a stack, with and without what edges carry.

NCI1 has no edge features, so that ``--edges use`` must cost nothing there; Mutagenicity has three
kinds of bonds. Seconds a seed for fifty epochs of the training part, in turns, the best of three.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import torch

from lookhops.core.options import PAPER_SEEDS
from lookhops.graphs import Graphs
from lookhops.nn import RECOMMENDED, Architecture
from lookhops.sources.loading import load
from lookhops.training.stacked import StackedEngine
from shared import best_of, stack_of

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


def ready(graphs: Graphs, architecture: Architecture) -> StackedEngine:
    """A stack of ten seeds that has recorded its steps."""
    engine = stack_of(graphs, architecture)
    engine.epoch(0)
    return engine


def train(engine: StackedEngine) -> None:
    for number in range(1, EPOCHS + 1):
        engine.epoch(number)


def main() -> None:
    """Print a table for each set."""
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}")
    for name in ("NCI1", "Mutagenicity"):
        graphs = load(name)
        print(f"\n{name + ': 50 epochs, ten seeds, each':36}{'ignore':>10}{'use':>10}{'ratio':>8}")
        for network, architecture in NETWORKS.items():
            tasks = [
                partial(train, ready(graphs, replace(architecture, edges=edges)))
                for edges in ("ignore", "use")
            ]
            times = best_of(ROUNDS, *tasks, device="cuda")
            without, using = (taken.wall / len(PAPER_SEEDS) for taken in times)
            print(f"{network:36}{without:8.3f} s{using:8.3f} s{using / without:7.2f}x", flush=True)


if __name__ == "__main__":
    main()
