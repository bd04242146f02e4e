"""The runner of this machine: what is missing from the store is trained here."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from math import inf

import numpy as np
import torch

from lookhops.errors import LookHopsError
from lookhops.experiments.keys import Key
from lookhops.experiments.plan import Cell
from lookhops.experiments.records import Record, train_records
from lookhops.experiments.store import Store
from lookhops.graphs import Graphs
from lookhops.training.trainer import choose_device

#: Gives the graphs of a data set by its name.
Source = Callable[[str], Graphs]
PAUSE = 0.5  # seconds between two looks at what other processes do


@dataclass(frozen=True)
class Event:
    """Something to tell about a run of a plan.

    Args:
        text: In words.
        finished: How many runs it brings the plan nearer to its end.
    """

    text: str
    finished: int = 0


@dataclass
class Outcome:
    """How running a plan ended.

    Args:
        trained: Runs that were trained now.
        found: Runs that the store had already.
        left: Runs that are still missing: the time was up, or they failed.
        failures: Why runs failed, in words.
    """

    trained: int = 0
    found: int = 0
    left: int = 0
    failures: list[str] = field(default_factory=list)


Tell = Callable[[Event], None]


def run_local(
    cells: Sequence[Cell],
    source: Source,
    store: Store,
    *,
    device: str = "auto",
    time_limit: float = inf,
    tell: Tell = lambda event: None,
) -> Outcome:
    """Train what the store lacks of the cells, in their order.

    On a GPU the seeds of a cell are trained at once; elsewhere one after the other, and each is
    stored when it is finished. Other processes may work on the same store: cells that they have
    begun are left to them and waited for.

    Args:
        cells: What is wanted.
        source: Gives the graphs of a data set.
        store: Where runs are kept.
        device: ``cpu``, ``cuda`` or ``auto``.
        time_limit: Seconds after which nothing new is begun.
        tell: Called with each thing worth telling.
    """
    at_once = None if choose_device(device).type == "cuda" else 1
    deadline = time.monotonic() + time_limit
    outcome = Outcome()
    pending = list(cells)
    count_found(cells, source, store, outcome, tell)
    told = False
    with store.beating():
        while pending and time.monotonic() < deadline:
            pending, trained = _one_round(
                pending, source, store, device, at_once, deadline, outcome, tell
            )
            if pending and not trained and time.monotonic() < deadline:
                if not told:
                    tell(Event("waiting for runs that another process has begun"))
                told = True
                time.sleep(PAUSE)
    count_left(cells, source, store, outcome)
    return outcome


def _one_round(
    cells: Sequence[Cell],
    source: Source,
    store: Store,
    device: str,
    at_once: int | None,
    deadline: float,
    outcome: Outcome,
    tell: Tell,
) -> tuple[list[Cell], int]:
    """Train what is free of each cell; the cells that others work on, and how many were trained."""
    elsewhere: list[Cell] = []
    before = outcome.trained
    for number, cell in enumerate(cells):
        graphs = source(cell.dataset)
        key = cell.key(graphs)
        wanted = list(cell.protocol.seeds)
        while time.monotonic() < deadline:
            seeds = store.claim(key, wanted, at_once)
            if not seeds:
                break
            done = train_claimed(cell, key, graphs, seeds, store, device, outcome, tell)
            if not done:
                wanted = [seed for seed in wanted if seed not in seeds]  # do not try again now
        else:
            return [*elsewhere, *cells[number:]], outcome.trained - before
        if set(wanted) - store.finished(key):
            elsewhere.append(replace(cell, protocol=replace(cell.protocol, seeds=tuple(wanted))))
    return elsewhere, outcome.trained - before


def train_claimed(
    cell: Cell,
    key: Key,
    graphs: Graphs,
    seeds: list[int],
    store: Store,
    device: str,
    outcome: Outcome,
    tell: Tell,
) -> bool:
    """Train claimed seeds of a cell and store them; whether that went well."""
    start = time.perf_counter()
    try:
        records = train_records(graphs, cell.architecture, cell.protocol, seeds, device)
    except (LookHopsError, torch.cuda.OutOfMemoryError) as error:
        store.release(key, seeds)
        if len(seeds) > 1:  # one seed's misfortune is not the others'
            each = [store.claim(key, [seed]) for seed in seeds]
            went = [
                train_claimed(cell, key, graphs, free, store, device, outcome, tell)
                for free in each
                if free
            ]
            return all(went)
        reason = str(error).splitlines()[0]
        outcome.failures.append(f"{cell.dataset}, {cell.model}, seed {seeds[0]}: {reason}")
        tell(Event(f"failed: {outcome.failures[-1]}"))
        return False
    except BaseException:
        store.release(key, seeds)
        raise
    keep(cell, key, records, store, outcome, tell, time.perf_counter() - start)
    return True


def keep(
    cell: Cell,
    key: Key,
    records: list[Record],
    store: Store,
    outcome: Outcome,
    tell: Tell,
    seconds: float,
) -> None:
    """Store the records of a cell and tell of it."""
    added = store.add(cell.dataset, cell.model, key, records)
    outcome.trained += added
    accuracy = 100 * np.mean([record.metrics["accuracy"] for record in records])
    seeds = [record.seed for record in records]
    which = f"seed {seeds[0]}" if len(seeds) == 1 else f"{len(seeds)} seeds"
    tell(
        Event(
            f"{cell.dataset}, {cell.model}, {which}: test accuracy {accuracy:.1f} %, "
            f"{seconds:.1f} s",
            added,
        )
    )


def count_found(
    cells: Sequence[Cell], source: Source, store: Store, outcome: Outcome, tell: Tell
) -> None:
    """Count the runs that are there already."""
    for cell in cells:
        done = store.finished(cell.key(source(cell.dataset)))
        outcome.found += len(done & set(cell.protocol.seeds))
    if outcome.found:
        were = "1 run was" if outcome.found == 1 else f"{outcome.found:,} runs were"
        tell(Event(f"{were} in the store already", outcome.found))


def count_left(cells: Sequence[Cell], source: Source, store: Store, outcome: Outcome) -> None:
    """Count the runs that are still missing."""
    for cell in cells:
        done = store.finished(cell.key(source(cell.dataset)))
        outcome.left += len(set(cell.protocol.seeds) - done)
