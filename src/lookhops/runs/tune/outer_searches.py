"""The searches of a tuning: one for each outer split, judged by inner splits."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Any

from lookhops.core.options import SearchOptions
from lookhops.core.words import counted
from lookhops.runs.keys import canonical
from lookhops.runs.runners import Tell
from lookhops.runs.tune.inner import inner_splits
from lookhops.runs.tune.record import SearchRecord
from lookhops.runs.tune.search import Search
from lookhops.runs.tune.space import Space
from lookhops.runs.tune.study import StudyFile, best, finished
from lookhops.sources.splits import Split, SplitPlan
from lookhops.training.candidates import CandidateTrainer


@dataclass(frozen=True, eq=False)
class OuterSearches:
    """A search for each outer split; what the study has of it already is not tried again.

    Args:
        study: Optuna's storage.
        plan: The outer splits.
        space: Where to search.
        trainer: Trains candidates on the graphs.
        options: How to search; where time is limited, each search has its share of it.
        tell: Called with each thing worth telling, and how many trials are finished.
    """

    study: Path
    plan: SplitPlan
    space: Space
    trainer: CandidateTrainer
    options: SearchOptions
    tell: Tell

    def run(self) -> list[SearchRecord]:
        """Search, one outer split after the other."""
        seeds, start = self.plan.protocol.seeds, time.monotonic()
        limit = inf if self.options.time_limit is None else self.options.time_limit
        return [
            self._search(seed, start + limit * number / len(seeds))
            for number, seed in enumerate(seeds, start=1)
        ]

    def _search(self, seed: int, until: float) -> SearchRecord:
        """The search for one outer split."""
        options, main = self.options, self.trainer.task.main
        splits = inner_splits(self.trainer.graphs, self.plan, seed, options.inner)
        settings = {
            "data": self.trainer.graphs.fingerprint,
            "splits": _digest(splits),
            "protocol": canonical(self.plan.protocol),
            "space": self.space.to_dict(),
            "inner": options.inner,
            "stack": options.stack,
        }
        file = StudyFile.open(self.study, f"seed {seed}", main, settings)
        search = Search(file, self.space, self.trainer, splits, options.stack)
        if known := len(finished(search.study)):
            self.tell(f"seed {seed}: {counted(known, 'configuration')} tried already", known)

        def after_stack(more: int, trials: Sequence[Any]) -> None:
            value = main.written(best(trials, main).value)
            said = f"seed {seed}: {len(trials)} of {options.trials} configurations"
            self.tell(f"{said}, best validation {main.title} {value}", more)

        search.run(options.trials, until, after_stack)
        return search.record(seed)


def _digest(splits: Mapping[int, Split]) -> str:
    """What tells inner splits from others."""
    digest = hashlib.sha256()
    for seed, one in splits.items():
        for part in (one.train, one.val):
            digest.update(f"{seed} {len(part)} ".encode() + part.cpu().numpy().tobytes())
    return digest.hexdigest()[:16]
