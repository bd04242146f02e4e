"""The training of one cell of a plan, network or not, wherever it is done; its peak of memory."""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from lookhops.graphs import Graphs
from lookhops.learners import learner_of
from lookhops.nn.plugins import running
from lookhops.runs.plan import Cell
from lookhops.runs.record import RunRecord, record_run
from lookhops.tasks import task_of
from lookhops.training.device import choose_device


def train_records(
    graphs: Graphs, cell: Cell, seeds: Sequence[int], device: str = "auto"
) -> list[RunRecord]:
    """Train a cell's model with these seeds, all at once where the device can; a record of each.

    A learner without epochs is fitted on the CPU.
    """
    protocol = replace(cell.protocol, seeds=tuple(seeds))
    learner, task = learner_of(cell.architecture), task_of(graphs)
    chosen = choose_device(device if learner.has_epochs else "cpu")
    start = time.perf_counter()
    with peak_memory(chosen) as peak:
        runs = learner.train(graphs, protocol, task=task, splits=cell.splits, device=chosen)
    if chosen.type == "cuda":  # what this cell held is for the next one
        gc.collect()
        torch.cuda.empty_cache()
    share = (time.perf_counter() - start) / len(runs)
    records = []
    for run in runs:
        stacked = max(run.together // protocol.members, 1)
        record = record_run(run, graphs, task, chosen, share, stacked=stacked)
        share_of_peak = peak.size and peak.size // stacked
        records.append(record.with_metrics(peak_memory=share_of_peak))
    return records


def train_with_plugins(
    graphs: Graphs, plugins: Mapping[str, str], cell: Cell, seeds: Sequence[int], device: str
) -> list[RunRecord]:
    """The same in a process that has the user's layers from here alone.

    Args:
        graphs, cell, seeds, device: As for :func:`train_records`.
        plugins: The files that register them: name and text.
    """
    with running(plugins):
        return train_records(graphs, cell, seeds, device)


#: What Linux knows of this process; writing 5 to the second makes the peak begin anew.
STATUS, RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")


@dataclass
class Peak:
    """Bytes at the peak, known when the block has ended; none where the system does not say."""

    size: int | None = None


@contextmanager
def peak_memory(device: torch.device) -> Iterator[Peak]:
    """Measure the peak of the block: on a GPU what PyTorch held there, else the whole process.

    The process counts with all that was in it before, Python and PyTorch among it. Where the system
    cannot begin anew, the peak is that of the process so far.
    """
    peak = Peak()
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
        yield peak
        peak.size = torch.cuda.max_memory_allocated(device)
        return
    with suppress(OSError):
        RESET.write_text("5")
    yield peak
    peak.size = _process_peak()


def _process_peak() -> int | None:
    with suppress(OSError):
        for line in STATUS.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return 1024 * int(line.split()[1])
    try:
        import resource
    except ImportError:  # Windows
        return None
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return used if sys.platform == "darwin" else 1024 * used
