"""Training from the mapped file against training from the device's memory: NCI1 repeated.

    python benchmarks/scale_gpu.py --graphs 10000000 --folder /tmp

Makes a packed file, then trains some hundred steps over graphs drawn from all of it, streamed
(graphs stay in the mapped file) and then resident (all graphs on the device). Prints milliseconds a
step, their ratio, and what the process held in main memory while it streamed: its own (anonymous)
memory at its peak, which is what counts against other programs, and the pages of the mapped file
that the system cached for it, which it may take back.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path

import torch

from lookhops.core.options import RECOMMENDED, Architecture, Protocol
from lookhops.graphs import Graphs
from lookhops.sources.loading import load
from lookhops.sources.splits import Split
from lookhops.tasks import task_of
from lookhops.training.stacked import StackedEngine
from shared import Memory, repeated

#: Graphs of the case with exact neighbourhoods.
FEW = 1_000_000
CASES = {
    "LiCheb, one seed": (Architecture(), 1),
    "LiCheb, ten seeds": (Architecture(), 10),
    "recommended, one seed": (RECOMMENDED, 1),
}


def draw(graphs: Graphs, steps: int, batch: int, seed: int) -> Split:
    """A training part for so many steps, from anywhere in the set, and a small validation part."""
    order = torch.randperm(len(graphs), generator=torch.Generator().manual_seed(seed))
    train = order[: steps * batch].clone()
    return Split(train, order[-batch:].clone(), order[-2 * batch : -batch].clone())


def step_times(graphs: Graphs, stream: bool, steps: int, device: torch.device, case: str) -> float:
    """Milliseconds a step of a form, which are printed."""
    architecture, seeds = CASES[case]
    protocol = Protocol(seeds=tuple(range(seeds)), stream=stream)
    splits = [draw(graphs, steps, protocol.batch_size, seed) for seed in protocol.seeds]
    form, start = "streamed" if stream else "resident", time.perf_counter()
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats()
    engine = StackedEngine(
        graphs, task_of(graphs), splits, protocol.seeds, architecture, protocol, device
    )
    ready = time.perf_counter()
    engine.epoch(1)
    begun = time.perf_counter()
    engine.epoch(2)  # it waits for the device to add up its losses
    taken = 1000 * (time.perf_counter() - begun) / engine.plans["train"].shape[1]
    held = torch.cuda.max_memory_allocated() / 2**30 if device.type == "cuda" else 0
    print(
        f"{case}, {len(graphs):,} graphs, {form}: {taken:.3f} ms a step; ready in "
        f"{ready - start:.1f} s, first epoch {begun - ready:.1f} s; {held:.2f} GiB on the device",
        flush=True,
    )
    return taken


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--graphs", type=int, default=10_000_000)
    parser.add_argument("--folder", type=Path, default=Path("/tmp"))
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--make", action="store_true", help="make the file and end")
    args = parser.parse_args()
    path, device = args.folder / f"NCI1-{args.graphs}.graphs", torch.device(args.device)
    if args.make:
        repeated(load("NCI1"), args.graphs).save(path)
        return
    if not path.exists():  # in another process, whose memory does not count
        start = time.perf_counter()
        subprocess.run([sys.executable, __file__, *sys.argv[1:], "--make"], check=True)
        size = path.stat().st_size / 2**30
        print(f"{path.name}: {size:.2f} GiB made in {time.perf_counter() - start:.1f} s")
    memory, start = Memory(), time.perf_counter()
    graphs = Graphs.load(path)
    loaded = time.perf_counter()
    assert graphs.is_undirected
    checked = time.perf_counter() - loaded
    print(f"mapped in {loaded - start:.1f} s, directions checked in {checked:.1f} s", flush=True)
    few = graphs if len(graphs) <= FEW else graphs[:FEW]  # neighbourhoods of all have no room
    found = {}
    for stream in (True, False):
        for case in CASES:
            own = few if "recommended" in case else graphs
            found[case, stream] = step_times(own, stream, args.steps, device, case)
            if device.type == "cuda":
                torch.cuda.empty_cache()
        if stream:
            print(f"main memory while streaming: {memory}", flush=True)
    for case in CASES:
        print(f"{case}: streamed over resident {found[case, True] / found[case, False]:.2f}")


if __name__ == "__main__":
    main()
