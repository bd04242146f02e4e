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

from lookhops.runs.tune.record import SearchRecord, Tried
from lookhops.runs.tune.rungs import END, RUNGS, Rungs
from lookhops.runs.tune.space import Space
from lookhops.runs.tune.study import StudyFile, best, finished, is_complete
from lookhops.sources.splits import Split
from lookhops.training.candidates import CandidateTrainer, Judged
from lookhops.training.rates import Rates
from lookhops.training.runs import Run

if TYPE_CHECKING:
    from optuna import Study, Trial
    from optuna.trial import FrozenTrial

#: Where a trial keeps its scores on the inner splits, and what it took.
SCORES, EPOCHS, SECONDS = "scores", "epochs", "seconds"
#: Stacks whose shape and rates are drawn at random, before what was tried says where to look.
AT_RANDOM = 4
#: Called after a stack: how many trials it had, and all that are finished.
Tell = Callable[[int, "Sequence[FrozenTrial]"], None]


@dataclass(frozen=True, eq=False)
class Search:
    """Finds the best candidate for the inner splits of one outer split.

    Every stack has one shape, drawn by Optuna's sampler
    (TPE), and several learning rates, weight decays and dropouts for it. All are tried on the first
    inner split; there a trial is pruned where it falls behind the others (:class:`Rungs`). What is
    left is tried on all inner splits, and its mean over these counts. The first trial, the
    recommended model, is never pruned.

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
                tuple(trial.user_attrs[SCORES]),
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
            at_random = AT_RANDOM * self.stack
            sampler = TPESampler(
                seed=seed, multivariate=True, constant_liar=True, n_startup_trials=at_random
            )
            fixed = {} if done else self.space.recommended
            for _ in range(count):
                self.study.sampler = PartialFixedSampler(fixed, sampler)
                asked.append(self.study.ask(distributions))
                fixed = {name: asked[0].params[name] for name in self.space.shape}
        return asked

    def _try(self, asked: Sequence[Trial]) -> None:
        """Try a stack on the first inner split, and what is not pruned on the others."""
        from optuna.trial import TrialState

        rungs = Rungs(finished(self.study), self.trainer.task.main)
        first, *others = self.splits
        judged = dict(zip(asked, self._judge(asked, [first], rungs), strict=True))
        ended = [
            trial for trial, [one] in judged.items() if not one.pruned and one.score is not None
        ]
        behind = rungs.behind(END, {trial: judged[trial][0].score or 0.0 for trial in ended})
        going = [trial for trial in ended if trial not in behind]
        if others and going:
            for trial, more in zip(going, self._judge(going, others), strict=True):
                judged[trial] += more
        for trial, own in judged.items():
            scores = [one.score for one in own if one.score is not None]
            trial.set_user_attr(SCORES, scores)
            trial.set_user_attr(EPOCHS, sum(one.epochs for one in own))
            trial.set_user_attr(SECONDS, sum(one.seconds for one in own))
            if trial in going and len(scores) == len(self.splits):
                self.study.tell(trial, fmean(scores))
            else:
                self.study.tell(trial, state=TrialState.PRUNED)

    def _judge(
        self, trials: Sequence[Trial], seeds: Sequence[int], rungs: Rungs | None = None
    ) -> list[list[Judged]]:
        """What validation says of trials of one shape on these inner splits."""
        candidates = [self.space.candidate(trial.params) for trial in trials]
        rates = [one.rates for one in candidates]
        by_rates = dict(zip(rates, trials, strict=True))
        watched = f"val_{self.trainer.task.main.name}"

        def prune(going: Sequence[tuple[Rates, Run]]) -> list[bool]:
            best_rows = {own: run.history[run.best_epoch - 1] for own, run in going}
            epoch = len(going[0][1].history) if going else 0
            if rungs is None or epoch not in RUNGS or watched not in best_rows[going[0][0]]:
                return [False] * len(going)
            scores = {by_rates[own]: row[watched] for own, row in best_rows.items()}
            behind = rungs.behind(epoch, scores)
            return [by_rates[own] in behind for own, _ in going]

        splits = {seed: self.splits[seed] for seed in seeds}
        return self.trainer.judge(candidates[0].shape, rates, splits, prune)
