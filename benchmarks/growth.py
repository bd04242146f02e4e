"""How cost grows: graphs, nodes, hops, channels and seeds, each doubled five times.

    python benchmarks/growth.py                  # slopes, on a CPU
    python benchmarks/growth.py --device cuda    # seconds, on a GPU

Prints, for each, the time of an epoch and the memory that it took, and the slope of both: the
exponent b of cost = a * size^b, by least squares over the last four sizes, where what is constant
matters least. 1 is proportional, 0 is free. Times on the CPU are of the processor, not of the
clock, so that other programs matter little.
"""

from __future__ import annotations

import argparse
import ctypes
import multiprocessing
import time

import numpy as np
import torch

from lookhops.core.options import Architecture, Protocol
from lookhops.graphs import Graphs
from lookhops.graphs.features import Features, default_values
from lookhops.sources.splits import Split
from lookhops.tasks import task_of
from lookhops.training.device import peak_memory
from lookhops.training.stacked import StackedEngine

DOUBLINGS, FITTED = 5, 4
LABELS, BATCH = 16, 256
SMALLEST = {"graphs": 16, "nodes": 8, "hops": 1, "channels": 16, "seeds": 1}


def random_graphs(count: int, nodes: int) -> Graphs:
    """Graphs of so many nodes with a ring and as many random edges, labels and classes."""
    generator = torch.Generator().manual_seed(0)
    ring = torch.arange(nodes)
    source = torch.cat((ring, torch.randint(nodes, (nodes,), generator=generator)))
    target = torch.cat((ring.roll(1), torch.randint(nodes, (nodes,), generator=generator)))
    first = torch.arange(count)[:, None] * nodes
    labels = torch.randint(LABELS, (count * nodes, 1), generator=generator)
    return Graphs.from_edges(
        (source + first).flatten(),
        (target + first).flatten(),
        torch.full((count,), nodes),
        nodes=Features(labels=labels.to(torch.uint8), label_values=default_values((LABELS,))),
        y=torch.arange(count) % 2,
    ).undirected()


def axes(large: bool) -> dict[str, list[dict[str, int]]]:
    """The settings of each axis, from the smallest on; a GPU gets larger ones."""
    start = (
        {"graphs": 4096, "nodes": 16, "hops": 1, "channels": 32, "seeds": 1}
        if large
        else {"graphs": 256, "nodes": 8, "hops": 1, "channels": 16, "seeds": 1}
    )
    middle = (
        {"graphs": 4096, "nodes": 32, "hops": 2, "channels": 128, "seeds": 1}
        if large
        else {"graphs": 256, "nodes": 32, "hops": 2, "channels": 64, "seeds": 1}
    )
    return {
        axis: [{**middle, axis: first * 2**i} for i in range(DOUBLINGS + 1)]
        for axis, first in start.items()
    }


def cost(setting: dict[str, int], device: torch.device) -> tuple[float, float]:
    """Seconds of an epoch, and MiB at its peak above what was there before."""
    graphs = random_graphs(setting["graphs"], setting["nodes"])
    architecture = Architecture(k=setting["hops"], hidden=setting["channels"], layers=3)
    protocol = Protocol(seeds=tuple(range(setting["seeds"])), batch_size=BATCH)
    every = torch.arange(len(graphs))
    splits = [Split(every, every[:BATCH], every[:BATCH]) for _ in protocol.seeds]
    before = resident() if device.type == "cpu" else torch.cuda.memory_allocated()
    clock = time.process_time if device.type == "cpu" else time.perf_counter
    with peak_memory(device) as peak:
        engine = StackedEngine(
            graphs, task_of(graphs), splits, protocol.seeds, architecture, protocol, device
        )
        engine.epoch(1)
        taken = []
        for number in range(2, 4):
            start = clock()
            engine.epoch(number)
            taken.append(clock() - start)
    return min(taken), ((peak.size or 0) - before) / 2**20


def resident() -> int:
    """Bytes that this process holds, after it gave back what it does not use."""
    ctypes.CDLL("libc.so.6").malloc_trim(0)
    with open("/proc/self/statm") as file:  # noqa: PTH123
        return int(file.read().split()[1]) * 4096


def in_a_process(setting: dict[str, int]) -> tuple[float, float]:
    """The cost in a process of its own, so that its memory is its own too."""
    with multiprocessing.get_context("fork").Pool(1) as pool:
        pool.apply(cost, (SMALLEST, torch.device("cpu")))  # what is loaded once does not grow
        return pool.apply(cost, (setting, torch.device("cpu")))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--only", nargs="*")
    args = parser.parse_args()
    device = torch.device(args.device)
    torch.set_num_threads(1)
    print("| doubled | | " + " | ".join(f"x{2**i}" for i in range(DOUBLINGS + 1)) + " | slope |")
    print("| --- " * (DOUBLINGS + 4) + "|")
    for axis, settings in axes(device.type == "cuda").items():
        if args.only and axis not in args.only:
            continue
        pairs = [
            in_a_process(one) if device.type == "cpu" else cost(one, device) for one in settings
        ]
        first, last = (f"{own[axis]:,}" for own in (settings[0], settings[-1]))
        times, memory = zip(*pairs, strict=True)
        for name, values, unit, scale in (
            (f"{axis}, {first} to {last}", times, "epoch, ms", 1000),
            ("", memory, "memory, MiB", 1),
        ):
            cells = " | ".join(f"{scale * value:,.1f}" for value in values)
            slope = np.polyfit(range(FITTED), np.log2(values[-FITTED:]), 1)[0]
            print(f"| {name} | {unit} | {cells} | {slope:.2f} |", flush=True)


if __name__ == "__main__":
    main()
