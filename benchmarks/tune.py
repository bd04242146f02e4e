"""A search in stacks, against the same search one configuration after the other.

    python benchmarks/tune.py NCI1 --device cuda --trials 100 --peer 16

The search is that of `lookhops tune` for one outer split: candidates of one shape train in one
stack with rates of their own, all on the first inner split, those that are not pruned on the
others. The peer trains every n-th of the same candidates alone, on the same inner splits, with the
same engine (recorded steps, a stack of one); its time is scaled to all of them. On a CPU both train
one after the other; what is measured there is the time of the processor.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from functools import cached_property
from pathlib import Path

import torch

from lookhops.core.options import Protocol
from lookhops.core.words import duration
from lookhops.runs.tune.search import Judge, Search, StudyFile
from lookhops.runs.tune.space import Space
from lookhops.runs.tune.tuning import inner_splits, record_search
from lookhops.sources.loading import load
from lookhops.sources.splits import SplitPlan
from lookhops.tasks import task_of
from lookhops.training.device import choose_device

SEED = 11


def clock(device: torch.device) -> float:
    """Seconds: by the clock on a GPU, of this process on a CPU that others may use too."""
    return time.perf_counter() if device.type == "cuda" else time.process_time()


class Timed(Judge):
    """Tells what each stack took, and adds it up."""

    @cached_property
    def spent(self) -> list[float]:
        """Seconds of each stack."""
        return []

    def judge(self, architecture, rates, splits, *prune):
        start = clock(self.device)
        found = super().judge(architecture, rates, splits, *prune)
        if self.device.type == "cuda":
            torch.cuda.synchronize()
        wall = clock(self.device) - start
        self.spent.append(wall)
        judged = [one for each in found for one in each]
        epochs = [len(one.history) for one in judged]
        a = architecture
        shape = f"{a.conv}+{a.pool} k{a.k} {a.layers}x{a.hidden} fp {a.fingerprint}"
        print(
            f"{shape:36}{len(judged):4} networks{wall:8.1f} s, {min(epochs)} to {max(epochs)} "
            f"epochs, {1000 * wall / sum(epochs):.1f} ms an epoch of one",
            flush=True,
        )
        return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("source", nargs="?", default="NCI1")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--trials", type=int, default=100)
    parser.add_argument("--stack", type=int, default=10)
    parser.add_argument("--inner", type=int, default=3)
    parser.add_argument("--space")
    parser.add_argument("--precision", default="float32")
    parser.add_argument("--epochs", type=int, default=500)
    parser.add_argument("--time-limit", type=float, default=float("inf"))
    parser.add_argument("--peer", type=int, default=0, help="train every n-th candidate alone")
    given = parser.parse_args()

    graphs, device = load(given.source), choose_device(given.device)
    protocol = Protocol(
        seeds=(SEED,), split="auto", precision=given.precision, max_epochs=given.epochs
    )
    plan, task = SplitPlan.of(graphs, protocol), task_of(graphs)
    space = Space.parse(given.space, protocol)
    splits = inner_splits(graphs, plan, SEED, given.inner)
    trainer = Timed(graphs, task, protocol, device, stacked=device.type == "cuda")
    with tempfile.TemporaryDirectory() as folder:
        file = StudyFile.open(Path(folder) / "study.sqlite", "search", task.main, {})
        search = Search(file, space, trainer, splits, given.stack)
        start = clock(device)
        search.run(given.trials, time.monotonic() + given.time_limit)
        stacked = clock(device) - start
        record = record_search(search, SEED)
    networks = sum(len(one.scores) for one in record.tried)
    print(
        f"\n{graphs.name}, {device}: {len(record.tried)} configurations ({networks} networks, "
        f"{sum(one.epochs for one in record.tried):,} epochs) in {duration(stacked)}, "
        f"{duration(sum(trainer.spent))} of it in {len(trainer.spent)} stacks"
    )
    main_metric, first, chosen = task.main, record.tried[0], record.chosen
    print(f"recommended: validation {main_metric.title} {main_metric.written(first.value)}")
    print(f"best: {main_metric.written(chosen.value)}, {chosen.name}")
    if given.peer:
        one_by_one(search, record, given.peer, stacked)


def one_by_one(search: Search, record, every: int, stacked: float) -> None:
    """Train every n-th candidate alone on the inner splits that it was judged on."""
    device = search.judge.device
    alone, epochs, start = 0, 0, clock(device)
    for tried in record.tried[every // 2 :: every]:
        candidate = search.space.candidate(tried.values)
        for seed in list(search.splits)[: max(len(tried.scores), 1)]:
            own = {seed: search.splits[seed]}
            [[judged]] = search.judge.judge(candidate.shape, [candidate.rates], own)
            alone, epochs = alone + 1, epochs + len(judged.history)
    took = clock(device) - start
    every_epoch = sum(one.epochs for one in record.tried)
    peer = took / epochs * every_epoch
    print(
        f"\none after the other: {alone} networks, {epochs:,} epochs in {duration(took)}; scaled "
        f"to all epochs {duration(peer)}, {peer / stacked:.1f} times as long"
    )


if __name__ == "__main__":
    main()
