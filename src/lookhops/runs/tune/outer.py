"""The outer splits: each is searched by inner splits, and tested once when all searches ended."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import inf
from pathlib import Path
from typing import Any

from lookhops.core.options import RECOMMENDED, SearchOptions, parse_split
from lookhops.core.words import counted
from lookhops.graphs import Graphs
from lookhops.runs.executor import train_here
from lookhops.runs.fair import Contest
from lookhops.runs.plan import Entry, canonical
from lookhops.runs.store import Store
from lookhops.runs.tune.record import SearchRecord
from lookhops.runs.tune.search import Judge, Search, StudyFile, best, finished
from lookhops.runs.tune.space import Candidate, Space
from lookhops.sources.splits import Split, SplitPlan
from lookhops.training.runs import Event, OnEvent

#: Kinds of splits whose validation part is given by the user or by time: no other is drawn.
GIVEN = ("column", "time", "file")


def inner_splits(graphs: Graphs, plan: SplitPlan, seed: int, count: int) -> dict[int, Split]:
    """Splits of the graphs outside the test part of an outer split, by their seeds.

    The first is the outer split's own training and validation part; the others part the same graphs
    again, by the same rule (classes in proportion, scaffolds together, ...). Where the parts were
    given by a column, by time or by a file, the first is the only one.
    """
    outer = plan.splits[seed]
    found = {seed: outer}
    if parse_split(plan.protocol.split)[0] in GIVEN or count < 2:
        return found
    seeds = tuple(inner_seed(seed, number) for number in range(1, count))
    protocol = replace(plan.protocol, seeds=seeds, folds=None)
    return found | dict(SplitPlan.of(graphs, protocol, outer.test).splits)


def inner_seed(seed: int, number: int) -> int:
    """The seed of an inner split: it follows from the outer one's, and is like no user's."""
    return int.from_bytes(hashlib.sha256(f"inner {seed} {number}".encode()).digest()[:4], "little")


def search_outer(
    study: Path, plan: SplitPlan, space: Space, judge: Judge, options: SearchOptions
) -> list[SearchRecord]:
    """A search for each outer split; what the study has of it already is not tried again.

    Where time is limited, each search has its share of it.
    """
    seeds, start = plan.protocol.seeds, time.monotonic()
    limit = inf if options.time_limit is None else options.time_limit
    records = []
    for number, seed in enumerate(seeds, start=1):
        search = _open(study, plan, seed, space, judge, options)
        if done := len(finished(search.study)):
            text = f"seed {seed}: {counted(done, 'configuration')} tried already"
            judge.on_event(Event(text=text, finished=done))

        def after_stack(more: int, trials: Sequence[Any], seed: int = seed) -> None:
            main = judge.task.main
            value = main.written(best(trials, main).value)
            tried = f"seed {seed}: {len(trials)} of {options.trials} configurations"
            text = f"{tried}, best validation {main.title} {value}"
            judge.on_event(Event(text=text, finished=more))

        search.run(options.trials, start + limit * number / len(seeds), after_stack)
        records.append(search.record(seed))
    return records


def _open(
    study: Path, plan: SplitPlan, seed: int, space: Space, judge: Judge, options: SearchOptions
) -> Search:
    """The search for one outer split, with what the study has of it."""
    splits = inner_splits(judge.graphs, plan, seed, options.inner)
    settings = {
        "data": judge.graphs.fingerprint,
        "splits": _digest(splits),
        "protocol": canonical(plan.protocol),
        "space": space.to_dict(),
        "inner": options.inner,
        "stack": options.stack,
    }
    file = StudyFile.open(study, f"seed {seed}", judge.task.main, settings)
    return Search(file, space, judge, splits, options.stack)


def _digest(splits: Mapping[int, Split]) -> str:
    digest = hashlib.sha256()
    for seed, one in splits.items():
        for part in (one.train, one.val):
            digest.update(f"{seed} {len(part)} ".encode() + part.cpu().numpy().tobytes())
    return digest.hexdigest()[:16]


def test_outer(
    graphs: Graphs,
    plan: SplitPlan,
    chosen: Mapping[int, Candidate],
    store: Path,
    device: str,
    on_event: OnEvent,
) -> dict[str, Any]:
    """Train the chosen configurations and the recommended model on the outer splits; test them.

    Args:
        chosen: The configuration of each outer split, by seed.
        store: The file of finished runs: what it has is not trained again.

    Returns:
        ``tuned`` and ``recommended``, the main metric of the test part of each outer split, and
        ``test_to_train``, test graphs over training graphs.
    """
    rows = {"recommended": {"network": Entry(RECOMMENDED)}}
    rows["tuned"] = {candidate.name: candidate.entry for candidate in chosen.values()}
    names = {seed: candidate.name for seed, candidate in chosen.items()}
    again = "; the same command tries again."
    with Store(store) as opened:
        train = partial(train_here, store=opened, device=device, on_event=on_event, advice=again)
        cells = Contest(graphs, plan, rows).run(train, opened, {"tuned": names})
    scores = {
        cell.model: tuple(score / cell.main.scale for score in cell.scores().values())
        for cell in cells
    }
    return {**scores, "test_to_train": cells[0].test_to_train}
