"""Training from the mapped file against training from the device's memory: NCI1 repeated.

    python benchmarks/scale_gpu.py --graphs 10000000 --folder /tmp

Makes a packed file, then trains some thousand steps over graphs drawn from all of it, each form in
a process of its own: resident (all graphs on the device) and streamed (graphs stay in the mapped
file). Prints milliseconds a step, their ratio, and what the process held in main memory: its own
(anonymous) memory at its peak, which is what counts against other programs, and the pages of the
mapped file that the system cached for it, which it may take back.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import threading
import time
from pathlib import Path

import torch

from lookhops.datasets import load
from lookhops.datasets.splits import Split
from lookhops.graphs import Graphs
from lookhops.options import RECOMMENDED, Architecture, Protocol
from lookhops.tasks import task_of
from lookhops.training.stacked import StackedEngine
from repeated import repeated

CASES = {
    "LiCheb, one seed": (Architecture(), 1),
    "LiCheb, ten seeds": (Architecture(), 10),
    "recommended, one seed": (RECOMMENDED, 1),
}


class Memory(threading.Thread):
    """The most memory of this process, in GiB, looked at ten times a second."""

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


def draw(graphs: Graphs, steps: int, batch: int, seed: int) -> Split:
    """A training part for so many steps, from anywhere in the set, and a small validation part."""
    order = torch.randperm(len(graphs), generator=torch.Generator().manual_seed(seed))
    train = order[: steps * batch].clone()
    return Split(train, order[-batch:].clone(), order[-2 * batch : -batch].clone())


def measure(path: Path, stream: bool, steps: int, device: torch.device, only: str) -> None:
    """Time a form; prints one line of JSON."""
    memory, begun = Memory(), time.perf_counter()
    graphs = Graphs.load(path)
    loaded = time.perf_counter()
    assert graphs.is_undirected
    found = {"load_s": loaded - begun, "undirected_s": time.perf_counter() - loaded}
    task = task_of(graphs)
    for name, (architecture, seeds) in CASES.items():
        if only not in name:
            continue
        protocol = Protocol(seeds=tuple(range(seeds)), stream=stream)
        splits = [draw(graphs, steps, protocol.batch_size, seed) for seed in protocol.seeds]
        start = time.perf_counter()
        try:
            engine = StackedEngine(
                graphs, task, splits, protocol.seeds, architecture, protocol, device
            )
            engine.epoch(1)
        except torch.cuda.OutOfMemoryError:
            print(f"{name}: no room on the device", file=sys.stderr)
            break
        prepared = time.perf_counter()
        engine.epoch(2)  # it waits for the device to add up its losses
        taken = min(steps, -(-len(splits[0].train) // protocol.batch_size))
        found[name] = {
            "prepare_s": prepared - start,
            "ms": 1000 * (time.perf_counter() - prepared) / taken,
        }
        del engine
        if device.type == "cuda":
            found[name]["device_GiB"] = torch.cuda.max_memory_allocated() / 2**30
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()
    found |= {"own_GiB": memory.own, "mapped_GiB": memory.mapped}
    print(json.dumps(found))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--graphs", type=int, default=10_000_000)
    parser.add_argument("--folder", type=Path, default=Path("/tmp"))
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--only", default="")
    parser.add_argument("--form", choices=["streamed", "resident"])
    args = parser.parse_args()
    path = args.folder / f"NCI1-{args.graphs}.graphs"
    if args.form:
        measure(path, args.form == "streamed", args.steps, torch.device(args.device), args.only)
        return
    if not path.exists():
        start = time.perf_counter()
        repeated(load("NCI1"), args.graphs).save(path)
        size = path.stat().st_size / 2**30
        print(f"{path.name}: {size:.2f} GiB written in {time.perf_counter() - start:.1f} s")
    found = {}
    for form in ("streamed", "resident"):
        done = subprocess.run(
            [sys.executable, __file__, *sys.argv[1:], "--form", form],
            stdout=subprocess.PIPE,
            text=True,
        )
        if done.returncode:
            print(f"{form}: failed")
            continue
        found[form] = json.loads(done.stdout.splitlines()[-1])
        own = found[form]
        print(
            f"{form}: loaded in {own['load_s']:.1f} s, directions checked in "
            f"{own['undirected_s']:.1f} s; main memory {own['own_GiB']:.2f} GiB of its own, "
            f"{own['mapped_GiB']:.2f} GiB of mapped files"
        )
    for name in CASES:
        if all(name in own for own in found.values()) and len(found) == 2:
            slow, fast = found["streamed"][name], found["resident"][name]
            print(
                f"{name}: {slow['ms']:.3f} ms a step streamed, {fast['ms']:.3f} resident, ratio "
                f"{slow['ms'] / fast['ms']:.2f}; prepared in {slow['prepare_s']:.1f} and "
                f"{fast['prepare_s']:.1f} s; on the device {slow.get('device_GiB', 0):.2f} and "
                f"{fast.get('device_GiB', 0):.2f} GiB"
            )


if __name__ == "__main__":
    main()
