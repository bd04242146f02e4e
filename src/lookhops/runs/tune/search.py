"""One search: candidates of one shape are tried in a stack, judged by validation alone.

What was tried is kept in a study of Optuna, in an SQLite file that its own tools read too.
"""

from __future__ import annotations

import hashlib
import json
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf
from pathlib import Path
from statistics import fmean, median
from typing import TYPE_CHECKING, Any

import torch

from lookhops.core.errors import LookHopsError
from lookhops.core.options import Architecture, Protocol
from lookhops.graphs import Graphs
from lookhops.runs.tune.space import Space
from lookhops.sources.splits import Split
from lookhops.tasks import Metric, Task
from lookhops.training.runs import Epoch, OnEvent, Rates, Run
from lookhops.training.trainer import Trainer, in_turn

if TYPE_CHECKING:
    from optuna import Study, Trial
    from optuna.trial import FrozenTrial

WAIT = 60  # seconds to wait for another process that writes
SETTINGS = "settings"  # where a study keeps what it was begun with


@dataclass(frozen=True, eq=False)
class StudyFile:
    """The study of one search in an SQLite file, which is given finished trials only."""

    path: Path
    study: Study

    @classmethod
    def open(cls, path: Path, name: str, metric: Metric, settings: Mapping[str, Any]) -> StudyFile:
        """Begin a study in a file, perhaps beside others, or continue one of the same settings."""
        from optuna.storages import RDBStorage
        from sqlalchemy import URL

        url = URL.create("sqlite", database=str(path)).render_as_string()
        plain = json.loads(json.dumps(settings))
        with _explained(path):
            storage = RDBStorage(url, {"connect_args": {"timeout": WAIT}})
            study = new_study(metric, storage=storage, study_name=name, load_if_exists=True)
            begun = study.user_attrs.get(SETTINGS)
            if begun is None:
                study.set_user_attr(SETTINGS, plain)
        if begun is not None and begun != plain:
            differs = [key for key in plain if begun.get(key) != plain[key]] or list(begun)
            raise LookHopsError(
                f"{path}: the search began with other settings ({', '.join(differs)}); continue "
                "with the same, tune into another folder, or begin again with --overwrite."
            )
        return cls(path, study)


def new_study(metric: Metric, **where: Any) -> Study:
    """A study whose trials are judged by a metric; in memory, unless a storage is given."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    return optuna.create_study(
        direction="maximize" if metric.higher_is_better else "minimize", **where
    )


def finished(study: Study) -> list[FrozenTrial]:
    """The trials that are judged, pruned ones too."""
    trials = study.get_trials(deepcopy=False)
    return [trial for trial in trials if trial.state.name in ("COMPLETE", "PRUNED")]


def is_complete(trial: FrozenTrial) -> bool:
    """Whether a trial was judged on all inner splits: the value of a pruned one is no mean."""
    return trial.state.name == "COMPLETE"


def best(trials: Sequence[FrozenTrial], metric: Metric) -> FrozenTrial:
    """The trial with the best mean over all inner splits; of equal ones the first."""
    judged = [trial for trial in trials if is_complete(trial)]
    if not judged:
        raise LookHopsError(
            "No configuration could be judged: the loss of each stopped being a number, or the "
            "validation parts are too small for the metric."
        )
    choose = max if metric.higher_is_better else min
    return choose(judged, key=lambda trial: trial.value or 0.0)


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    from optuna.exceptions import OptunaError
    from sqlalchemy.exc import SQLAlchemyError

    try:
        yield
    except (SQLAlchemyError, OptunaError, RuntimeError) as error:
        reason = str(getattr(error, "orig", None) or error).splitlines()[0].rstrip(".")
        raise LookHopsError(
            f"{path}: cannot be used as a study ({reason}); begin again with --overwrite."
        ) from error


#: Epochs of the first inner split after which trials are compared. With the usual patience most
#: have ended by the 70th; a comparison before the 20th would end some of the best.
RUNGS = (20, 40, 80)
#: Stands for an epoch after all: the end of the first inner split.
END = 1_000_000
#: Fewer trials than this are no median to compare with.
FEW_TRIALS = 4


class Rungs:
    """Compares trials that have come to the same point of the first inner split.

    A trial falls behind where its best score so far is worse than the median of all that came to
    the same rung: as in successive halving, about half continue. The first trial never does.
    """

    def __init__(self, trials: Sequence[FrozenTrial], metric: Metric) -> None:
        self.metric = metric
        self.reached = defaultdict[int, list[float]](list)
        for trial in trials:
            for step, value in trial.intermediate_values.items():
                self.reached[step].append(value)

    def behind(self, step: int, scores: Mapping[Trial, float]) -> set[Trial]:
        """The trials of a stack that are behind at an epoch or at its END, by their best scores."""
        reached = self.reached[step]
        for trial, score in scores.items():
            trial.report(score, step)
            reached.append(score)
        if len(reached) < FEW_TRIALS:
            return set()
        middle, sign = median(reached), 1 if self.metric.higher_is_better else -1
        worse = (trial for trial, score in scores.items() if sign * score < sign * middle)
        return {trial for trial in worse if trial.number}


#: Asked after each epoch which of the candidates of a stack are not worth going on with.
Prune = Callable[[Sequence[Run]], Sequence[bool]]


@dataclass(frozen=True, eq=False)
class Judge:
    """Trains candidates, those of one shape in one stack; each is the same network as alone.

    Of the protocol neither the rates nor the seeds and splits are read.
    """

    graphs: Graphs
    task: Task
    protocol: Protocol
    device: torch.device
    stacked: bool = True
    on_event: OnEvent = lambda event: None

    def judge(
        self,
        architecture: Architecture,
        rates: Sequence[Rates],
        splits: Mapping[int, Split],
        prune: Prune = lambda runs: [False] * len(runs),
    ) -> list[list[Run]]:
        """Train a network for each of the rates on each split; the runs, with their scores.

        Neither the dropout of the architecture nor the test parts of the splits are read.
        """
        nothing = torch.zeros(0, dtype=torch.long)
        parts = {seed: Split(one.train, one.val, nothing) for seed, one in splits.items()}
        runs = [Run(seed, parts[seed], rates=one) for one in dict.fromkeys(rates) for seed in parts]
        trainer = Trainer(
            self.graphs,
            self.task,
            architecture,
            self.protocol,
            self.device,
            self.stacked,
            skip_failed=True,
        )

        def on_epoch(epoch: Epoch) -> None:
            self.on_event(epoch)
            active = [run for run in epoch.runs if not run.done(self.protocol)]
            for run, ends in zip(active, prune(active), strict=True):
                run.pruned = ends

        judged: dict[tuple[Rates | None, int], Run] = {}
        for run in in_turn(trainer, trainer.stacks(runs), None, on_epoch):
            judged[run.rates, run.seed] = replace(run, score=self._score(run), weights={})
        return [[judged[one, seed] for seed in splits] for one in rates]

    def _score(self, run: Run) -> float | None:
        """The main metric of the validation part; none where the loss stopped being a number."""
        if run.failed:
            return None
        target = self.task.targets(self.graphs).cpu()[run.split.val]
        return self.task.evaluate(run.predictions["val"], target)[self.task.main.name]


#: Where a trial keeps its scores on the inner splits, and what it took.
SCORES, EPOCHS, SECONDS = "scores", "epochs", "seconds"
#: Stacks whose shape and rates are drawn at random, before what was tried says where to look.
AT_RANDOM = 4
#: Called after a stack: how many trials it had, and all that are finished.
Tell = Callable[[int, "Sequence[FrozenTrial]"], None]


@dataclass(frozen=True, eq=False)
class Search:
    """Finds the best candidate for the inner splits of one outer split.

    Every stack has one shape, drawn by Optuna's sampler (TPE), and several learning rates, weight
    decays and dropouts for it. All are tried on the first inner split; there a trial is pruned
    where it falls behind the others (:class:`Rungs`). What is left is tried on all inner splits,
    and its mean over these counts. The first trial, the recommended model, is never pruned.
    A search that was stopped continues as if it had not been.
    """

    file: StudyFile
    space: Space
    judge: Judge
    splits: Mapping[int, Split]
    stack: int

    @cached_property
    def study(self) -> Study:
        study = new_study(self.judge.task.main)
        with _explained(self.file.path):
            study.add_trials(finished(self.file.study))
        return study

    def run(self, trials: int, until: float = inf, tell: Tell = lambda more, all: None) -> None:
        """Try at least one stack, and others until there are so many trials, or it is too late."""
        while (done := len(finished(self.study))) < trials:
            if done and time.monotonic() >= until:
                break
            self._try(self._ask(min(self.stack, trials - done), done))
            tried = finished(self.study)
            with _explained(self.file.path):
                self.file.study.add_trials(tried[done:])
            tell(len(tried) - done, tried)

    def _ask(self, count: int, done: int) -> list[Trial]:
        """Draw trials of one shape; the very first is the recommended model."""
        from optuna.exceptions import ExperimentalWarning
        from optuna.samplers import PartialFixedSampler, TPESampler

        name = f"{self.file.study.study_name} {done}".encode()
        seed = int.from_bytes(hashlib.sha256(name).digest()[:4], "little")
        options = {"multivariate": True, "constant_liar": True, "seed": seed}
        fixed = {} if done else self.space.recommended
        asked: list[Trial] = []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ExperimentalWarning)
            sampler = TPESampler(n_startup_trials=AT_RANDOM * self.stack, **options)
            for _ in range(count):
                self.study.sampler = PartialFixedSampler(fixed, sampler)
                asked.append(self.study.ask(self.space.distributions()))
                fixed = {name: asked[0].params[name] for name in self.space.shape}
        return asked

    def _try(self, asked: Sequence[Trial]) -> None:
        """Try a stack on the first inner split, and what is not pruned on the others."""
        from optuna.trial import TrialState

        rungs = Rungs(finished(self.study), self.judge.task.main)
        first, *others = self.splits
        judged = dict(zip(asked, self._judge(asked, [first], rungs), strict=True))
        first_runs = {trial: run for trial, [run] in judged.items() if not run.pruned}
        scored = {t: run.score for t, run in first_runs.items() if run.score is not None}
        behind = rungs.behind(END, scored)
        going = [trial for trial in scored if trial not in behind]
        if others and going:
            for trial, more in zip(going, self._judge(going, others), strict=True):
                judged[trial] += more
        for trial, runs in judged.items():
            scores = [one.score for one in runs if one.score is not None]
            trial.set_user_attr(SCORES, scores)
            trial.set_user_attr(EPOCHS, sum(len(one.history) for one in runs))
            trial.set_user_attr(SECONDS, sum(one.seconds for one in runs))
            if trial in going and len(scores) == len(self.splits):
                self.study.tell(trial, fmean(scores))
            else:
                self.study.tell(trial, state=TrialState.PRUNED)

    def _judge(
        self, trials: Sequence[Trial], seeds: Sequence[int], rungs: Rungs | None = None
    ) -> list[list[Run]]:
        candidates = [self.space.candidate(trial.params) for trial in trials]
        rates = [one.rates for one in candidates]
        by_rates = dict(zip(rates, trials, strict=True))
        watched = f"val_{self.judge.task.main.name}"

        def prune(active: Sequence[Run]) -> list[bool]:
            best_rows = [run.history[run.best_epoch - 1] for run in active]
            epoch = len(active[0].history) if active else 0
            if rungs is None or epoch not in RUNGS or watched not in best_rows[0]:
                return [False] * len(active)
            going = [by_rates[run.rates] for run in active if run.rates is not None]
            scores = {t: row[watched] for t, row in zip(going, best_rows, strict=True)}
            behind = rungs.behind(epoch, scores)
            return [trial in behind for trial in going]

        splits = {seed: self.splits[seed] for seed in seeds}
        return self.judge.judge(candidates[0].shape, rates, splits, prune)
