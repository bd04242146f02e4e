"""One search: candidates of one shape are tried in a stack, judged by validation alone."""

from __future__ import annotations

import hashlib
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf
from statistics import fmean
from typing import TYPE_CHECKING

from lookhops.datasets.splits import Split
from lookhops.training.candidates import CandidateTrainer, Judged
from lookhops.tune.record import SearchRecord, Tried
from lookhops.tune.space import Space
from lookhops.tune.study import StudyFile, best, finished, is_complete

if TYPE_CHECKING:
    from optuna import Study, Trial
    from optuna.trial import FrozenTrial

#: Where a trial keeps what it took.
EPOCHS, SECONDS = "epochs", "seconds"
#: Called after a stack: how many trials it had, and all that are finished.
Tell = Callable[[int, "Sequence[FrozenTrial]"], None]


@dataclass(frozen=True, eq=False)
class Search:
    """Finds the best candidate for the inner splits of one outer split.

    The first trial is the recommended model. Every stack has one shape, drawn by Optuna's sampler
    (TPE), and several learning rates, weight decays and dropouts for it. All are tried on the first
    inner split; those that are not worse there than the median of the finished ones are tried on
    the others, and their mean over all inner splits counts.

    A search that was stopped goes on as if it had not been: what a stack is drawn from follows from
    the trials that are finished, and a stack is kept when all of it is.

    Args:
        file: Where finished trials are kept.
        space: What is tuned.
        trainer: Trains and judges candidates.
        splits: The inner splits, by seed.
        stack: Candidates of a stack.
    """

    file: StudyFile
    space: Space
    trainer: CandidateTrainer
    splits: Mapping[int, Split]
    stack: int

    @cached_property
    def study(self) -> Study:
        """The study that is worked with."""
        return self.file.in_memory(self.trainer.task.main)

    def run(self, trials: int, until: float = inf, tell: Tell = lambda more, all: None) -> None:
        """Try candidates until there are so many, or the time is up; at least one stack.

        Args:
            trials: How many, with those of earlier calls.
            until: When to begin no other stack, as ``time.monotonic`` counts.
            tell: Called after each stack.
        """
        while (done := len(finished(self.study))) < trials:
            if done and time.monotonic() >= until:
                break
            asked = self._ask(min(self.stack, trials - done), done)
            self._try(asked)
            trials_now = finished(self.study)
            self.file.add(trials_now[done:])
            tell(len(asked), trials_now)

    def record(self, seed: int) -> SearchRecord:
        """What was tried and chosen for the outer split of this seed."""
        trials = finished(self.study)
        tried = tuple(
            Tried(
                self.space.candidate(trial.params).name,
                dict(trial.params),
                tuple(trial.intermediate_values.values()),
                trial.value if is_complete(trial) else None,
                trial.user_attrs[EPOCHS],
                trial.user_attrs[SECONDS],
            )
            for trial in trials
        )
        return SearchRecord(seed, tried, trials.index(best(trials, self.trainer.task.main)))

    def _ask(self, count: int, done: int) -> list[Trial]:
        """Draw trials of one shape; the very first is the recommended model."""
        from optuna.exceptions import ExperimentalWarning
        from optuna.samplers import PartialFixedSampler, TPESampler

        name = f"{self.file.study.study_name} {done}".encode()
        seed = int.from_bytes(hashlib.sha256(name).digest()[:4], "little")
        distributions = self.space.distributions()
        asked: list[Trial] = []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ExperimentalWarning)
            sampler = TPESampler(seed=seed, multivariate=True, constant_liar=True)
            fixed = {} if done else self.space.recommended
            for _ in range(count):
                self.study.sampler = PartialFixedSampler(fixed, sampler)
                asked.append(self.study.ask(distributions))
                fixed = {name: asked[0].params[name] for name in self.space.shape}
        return asked

    def _try(self, asked: Sequence[Trial]) -> None:
        """Try a stack on the first inner split, and what is not pruned on the others."""
        from optuna.trial import TrialState

        first, *others = self.splits
        judged: dict[Trial, list[Judged]] = {trial: [] for trial in asked}
        for seeds in ([first], others) if others else ([first],):
            going = [trial for trial in asked if not _hopeless(trial, judged[trial])]
            for trial, found in zip(going, self._judge(going, seeds), strict=True):
                for one in found:
                    if one.score is not None:
                        trial.report(one.score, step=len(judged[trial]))
                    judged[trial].append(one)
        for trial, own in judged.items():
            trial.set_user_attr(EPOCHS, sum(one.epochs for one in own))
            trial.set_user_attr(SECONDS, sum(one.seconds for one in own))
            scores = [one.score for one in own if one.score is not None]
            if len(scores) == len(self.splits):
                self.study.tell(trial, fmean(scores))
            else:
                self.study.tell(trial, state=TrialState.PRUNED)

    def _judge(self, trials: Sequence[Trial], seeds: Sequence[int]) -> list[list[Judged]]:
        """What validation says of trials of one shape on these inner splits."""
        if not trials:
            return []
        candidates = [self.space.candidate(trial.params) for trial in trials]
        splits = {seed: self.splits[seed] for seed in seeds}
        rates = [one.rates for one in candidates]
        return self.trainer.judge(candidates[0].shape, rates, splits)


def _hopeless(trial: Trial, judged: Sequence[Judged]) -> bool:
    """Whether a trial is not worth the other inner splits."""
    return bool(judged) and (judged[0].score is None or trial.should_prune())
