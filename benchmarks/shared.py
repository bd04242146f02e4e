"""What the benchmarks share: seconds, memory, a data set of any size, ten seeds in a stack."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from lookhops.core.options import PAPER_SEEDS, Architecture, Protocol
from lookhops.graphs import Graphs
from lookhops.sources.splits import split
from lookhops.tasks import task_of
from lookhops.training.stacked import StackedEngine


class Seconds(NamedTuple):
    """By the clock, and of all cores together: on a busy machine the second says more."""

    wall: float
    cpu: float


def seconds(task: Callable[[], object], device: torch.device | str = "cpu") -> Seconds:
    """What a task takes; a GPU is waited for."""
    wall, cpu = time.perf_counter(), time.process_time()
    task()
    if torch.device(device).type == "cuda":
        torch.cuda.synchronize()
    return Seconds(time.perf_counter() - wall, time.process_time() - cpu)


def best_of(
    rounds: int, *tasks: Callable[[], object], device: torch.device | str = "cpu"
) -> list[Seconds]:
    """The fewest seconds of each task, the tasks taking turns."""
    spent = [[seconds(task, device) for task in tasks] for _ in range(rounds)]
    return [Seconds(*map(min, zip(*each, strict=True))) for each in zip(*spent, strict=True)]


def check_alike(ours: Tensor, theirs: Tensor, pooled: bool) -> None:
    """Check that two networks of the same weights answer alike, shapes (graphs, classes).

    With pooling most graphs agree, not all: ours keeps or drops nodes of equal score together,
    PyG's keeps the first ones.
    """
    apart = (ours - theirs).abs().amax(1)
    if not pooled and not apart.max() < 1e-3:
        raise SystemExit(f"the two networks differ by {float(apart.max()):.2g}")
    if not (apart.median() < 1e-3 and apart.quantile(0.98) < 1e-2):
        raise SystemExit(f"the two networks differ by {float(apart.median()):.2g} in the median")


class Memory(threading.Thread):
    """The most memory of this process, in GiB, looked at ten times a second.

    ``own`` is its anonymous memory, which counts against other programs; ``mapped`` are the pages
    of files that the system cached for it, and may take back.
    """

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.own = self.mapped = 0.0
        self.start()

    def run(self) -> None:
        while True:
            status = dict(
                line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines()
            )
            own, mapped, shared = (
                int(status[name].split()[0]) / 2**20 for name in ("RssAnon", "RssFile", "RssShmem")
            )
            self.own, self.mapped = max(self.own, own + shared), max(self.mapped, mapped)
            time.sleep(0.1)

    def __str__(self) -> str:
        return f"{self.own:.2f} GiB of its own, {self.mapped:.2f} GiB of mapped files"


def repeated(graphs: Graphs, count: int) -> Graphs:
    """The first ``count`` graphs of a set that is repeated without end."""
    times = -(-count // len(graphs))

    def offsets(ptr: Tensor) -> Tensor:
        shift = torch.arange(times, dtype=ptr.dtype)[:, None] * ptr[-1]
        return torch.cat((ptr[:1], (ptr[1:] + shift).flatten()))

    def rows(values: Tensor) -> Tensor:
        return values.repeat(times, *[1] * (values.dim() - 1))

    shift = torch.arange(times, dtype=torch.int32)[:, None] * graphs.num_nodes
    whole = replace(
        graphs,
        node_ptr=offsets(graphs.node_ptr),
        row_ptr=offsets(graphs.row_ptr),
        source=(graphs.source + shift).flatten(),
        nodes=graphs.nodes.map(rows),
        edges=graphs.edges.map(rows),
        y=None if graphs.y is None else rows(graphs.y),
        columns={},
        name=f"{graphs.name}, {count:,} graphs",
    )
    nodes = int(whole.node_ptr[count])
    edges = int(whole.row_ptr[nodes])
    return replace(
        whole,
        node_ptr=whole.node_ptr[: count + 1],
        row_ptr=whole.row_ptr[: nodes + 1],
        source=whole.source[:edges].clone(),
        nodes=whole.nodes.map(lambda own: own[:nodes].clone()),
        edges=whole.edges.map(lambda own: own[:edges].clone()),
        y=None if whole.y is None else whole.y[:count].clone(),
    )


def stack_of(
    graphs: Graphs,
    architecture: Architecture,
    seeds: tuple[int, ...] = PAPER_SEEDS,
    precision: str = "float32",
) -> StackedEngine:
    """An engine that trains all seeds in one stack on the GPU."""
    splits, protocol = [split(graphs, seed) for seed in seeds], Protocol(seeds, precision=precision)
    given = (graphs, task_of(graphs), splits, seeds)
    return StackedEngine(*given, architecture, protocol, torch.device("cuda"))
