"""A tuning: a search for each outer split, the tests of what they chose, and the record of it."""

from __future__ import annotations

import hashlib
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from math import inf
from pathlib import Path
from statistics import fmean
from typing import Any

from lookhops.core.errors import LookHopsError
from lookhops.core.files import current, read_json
from lookhops.core.options import RECOMMENDED, SearchOptions, parse_split
from lookhops.core.paired import ALPHA, Estimate, corrected_t
from lookhops.core.schema import located, read
from lookhops.core.words import counted, p_said, signed
from lookhops.graphs import Graphs
from lookhops.runs.executor import train_here
from lookhops.runs.fair import Contest
from lookhops.runs.plan import Entry, canonical
from lookhops.runs.store import Store
from lookhops.runs.tune.search import (
    EPOCHS,
    SCORES,
    SECONDS,
    Judge,
    Search,
    StudyFile,
    best,
    finished,
    is_complete,
)
from lookhops.runs.tune.space import Candidate, Space
from lookhops.sources.splits import Split, SplitPlan
from lookhops.tasks import TASKS, Metric
from lookhops.training.runs import Event, OnEvent

FORMAT = "lookhops-tuning-1"
#: The file in a model's folder.
TUNING = "tuning.json"


@dataclass(frozen=True)
class Tried:
    """A configuration that was tried."""

    name: str  #: what `lookhops compare --models` calls it
    values: Mapping[str, Any]  #: of the options that were tuned
    #: The main metric of the validation part of each inner split; of a pruned one only of the
    #: first; of one whose loss was not finite none.
    scores: Sequence[float]
    value: float | None  #: their mean; none of a pruned one
    epochs: int
    seconds: float  #: over all inner splits

    @property
    def said(self) -> str:
        """What differs from the recommended model: ``hidden 64, learning_rate 0.00213``."""
        _, *differs = self.name.split("/")
        return ", ".join(differs).replace("=", " ") or "the recommended model"


@dataclass(frozen=True)
class SearchRecord:
    """The search for one outer split: what was tried, the recommended model first; the best."""

    seed: int
    tried: Sequence[Tried]
    best: int

    @property
    def chosen(self) -> Tried:
        return self.tried[self.best]


@dataclass(frozen=True)
class Tuning:
    """A tuning.

    Args:
        dataset: What the graphs are called.
        task: The kind of task.
        space: Each option that was tuned, with its values.
        inner: How many inner splits a search has.
        searches: One for each outer split.
        importance: Of each option: its share of the differences between configurations.
        tuned, recommended: The main metric of the test part of each outer split: of its chosen
            configuration, and of the recommended model.
        test_to_train: Test graphs over training graphs.
        device: Where it ran.
    """

    dataset: str
    task: str
    space: Mapping[str, str]
    inner: int
    searches: Sequence[SearchRecord]
    importance: Mapping[str, float]
    tuned: Sequence[float]
    recommended: Sequence[float]
    test_to_train: float
    device: str

    @property
    def main(self) -> Metric:
        return TASKS[self.task].main

    @property
    def seconds(self) -> float:
        return sum(one.seconds for search in self.searches for one in search.tried)

    @property
    def trials(self) -> int:
        """How many configurations were tried, over all searches."""
        return sum(len(search.tried) for search in self.searches)

    @property
    def gains(self) -> list[float]:
        """How much better the chosen configuration is on each outer test part, as it is shown."""
        sign = self.main.scale * (1 if self.main.higher_is_better else -1)
        return [sign * (a - b) for a, b in zip(self.tuned, self.recommended, strict=True)]

    @property
    def gain(self) -> Estimate | None:
        """Their mean with its interval; none of a single outer split."""
        return corrected_t(self.gains, self.test_to_train) if len(self.gains) > 1 else None

    @property
    def gain_digits(self) -> int:
        return self.main.digits(self.recommended[0])

    @property
    def test_said(self) -> str:
        if self.gain is None:
            return ""
        ends = [signed(end, self.gain_digits) for end in self.gain.interval or ()]
        spread = f"95% interval {' to '.join(ends)}" if ends else "the same on every split"
        return f"{spread}, {p_said(self.gain.p)}"

    def said(self) -> str:
        """What tuning gained, in a sentence."""
        main, unit = self.main, " points" if self.main.share else ""
        what = f"test {main.title}" if main.higher_is_better else f"the test {main.title}"
        if self.gain is None:
            return (
                f"On one split {main.written(self.tuned[0])} after tuning, "
                f"{main.written(self.recommended[0])} with the recommended model: one split says "
                "nothing about a gain; it takes two or more."
            )
        mean = f"{signed(self.gain.mean, self.gain_digits)}{unit}"
        over = f"over {counted(len(self.gains), 'outer split')} ({self.test_said})."
        if self.gain.p >= ALPHA:
            return f"Tuning gained nothing that can be told from chance: {mean} of {what} {over}"
        if self.gain.mean <= 0:
            return f"Tuning made {what} worse by {mean[1:]} {over}"
        verb = "raised" if main.higher_is_better else "lowered"
        return f"Tuning {verb} {what} by {mean[1:]} {over}"

    def to_dict(self) -> dict[str, Any]:
        """The record as JSON can hold it, with what follows from it."""
        low, high = (self.gain and self.gain.interval) or (None, None)
        gain = self.gain and {**asdict(self.gain), "low": low, "high": high}
        return {"format": FORMAT, **asdict(self), "gain": gain, "said": self.said()}


def read_tuning(folder: Path) -> Tuning | None:
    """The tuning that a model's folder came from, if it did."""
    path = folder / TUNING
    if not current(path).is_file():
        return None
    values = read_json(path)
    if values.get("format") != FORMAT:
        raise LookHopsError(
            f"{path}: of another version of LookHops ({values.get('format')!r} is not {FORMAT!r}); "
            "tune again, or remove it."
        )
    recorded = {k: value for k, value in values.items() if k not in ("format", "gain", "said")}
    with located(f"{path}: damaged, not what `lookhops tune` wrote, remove it"):
        tuning = read(Tuning, recorded)
        count = len(tuning.searches)
        if not count or {len(tuning.tuned), len(tuning.recommended)} != {count}:
            raise LookHopsError("it has not one score for each search")
        if any(not 0 <= search.best < len(search.tried) for search in tuning.searches):
            raise LookHopsError("a choice is not among what was tried")
        if tuning.task not in TASKS:
            raise LookHopsError(f"task {tuning.task!r} is not known")
    return tuning


#: Fewer configurations than this say nothing.
FEW = 4


def importance(searches: Sequence[SearchRecord], space: Space) -> dict[str, float]:
    """Each option's share of the differences between configurations, the largest first.

    By functional ANOVA (Optuna's), over the scores of all configurations on the first inner split,
    less the mean of their search; none are known of fewer than four configurations.
    """
    import optuna

    tuned = {name: d for name, d in space.distributions().items() if not d.single()}
    study = optuna.create_study(storage=optuna.storages.InMemoryStorage())
    for search in searches:
        scored = [one for one in search.tried if one.scores]
        mean = fmean(one.scores[0] for one in scored) if scored else 0.0
        for one in scored:
            params, value = {name: one.values[name] for name in tuned}, one.scores[0] - mean
            trial = optuna.create_trial(params=params, distributions=tuned, value=value)
            study.add_trial(trial)
    if len(study.trials) < FEW or len({t.value for t in study.trials}) < 2 or not tuned:
        return {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        evaluator = optuna.importance.FanovaImportanceEvaluator(seed=0)
        shares = optuna.importance.get_param_importances(study, evaluator=evaluator)
    return {name: float(share) for name, share in shares.items()}


#: Kinds of splits whose validation part is given by the user or by time: no other is drawn.
GIVEN = ("column", "time", "file")


def inner_splits(graphs: Graphs, plan: SplitPlan, seed: int, count: int) -> dict[int, Split]:
    """Splits of the graphs outside the test part of an outer split, by their seeds.

    The first has the outer split's training and validation parts; the others draw them again. Where
    they were given by a column, by time or by a file, the first is the only one.
    """
    outer = plan.splits[seed]
    found = {seed: outer}
    if parse_split(plan.protocol.split)[0] in GIVEN or count < 2:
        return found
    texts = (f"inner {seed} {number}".encode() for number in range(1, count))
    seeds = tuple(int.from_bytes(hashlib.sha256(t).digest()[:4], "little") for t in texts)
    protocol = replace(plan.protocol, seeds=seeds, folds=None)
    return found | dict(SplitPlan.of(graphs, protocol, outer.test).splits)


def search_outer(
    study: Path, plan: SplitPlan, space: Space, judge: Judge, options: SearchOptions
) -> list[SearchRecord]:
    """A search for each outer split, which has its share of the time where that is limited."""
    seeds, start, records = plan.protocol.seeds, time.monotonic(), []
    main = judge.task.main
    limit = inf if options.time_limit is None else options.time_limit
    for number, seed in enumerate(seeds, start=1):
        splits = inner_splits(judge.graphs, plan, seed, options.inner)
        settings = {
            "data": judge.graphs.fingerprint,
            "splits": _digest(splits),
            "protocol": canonical(plan.protocol),
            "space": space.to_dict(),
            "inner": options.inner,
            "stack": options.stack,
        }
        file = StudyFile.open(study, f"seed {seed}", main, settings)
        search = Search(file, space, judge, splits, options.stack)
        if done := len(finished(search.study)):
            text = f"seed {seed}: {counted(done, 'configuration')} tried already"
            judge.on_event(Event(text=text, finished=done))

        def after_stack(more: int, trials: Sequence[Any], seed: int = seed) -> None:
            tried = f"seed {seed}: {len(trials)} of {options.trials} configurations"
            value = f"best validation {main.title} {main.written(best(trials, main).value)}"
            judge.on_event(Event(text=f"{tried}, {value}", finished=more))

        search.run(options.trials, start + limit * number / len(seeds), after_stack)
        records.append(record_search(search, seed))
    return records


def record_search(search: Search, seed: int) -> SearchRecord:
    """What was tried and chosen for the outer split of this seed."""
    trials, tried = finished(search.study), []
    for trial in trials:
        scores, epochs, seconds = (trial.user_attrs[key] for key in (SCORES, EPOCHS, SECONDS))
        name = search.space.candidate(trial.params).name
        value = trial.value if is_complete(trial) else None
        tried.append(Tried(name, dict(trial.params), tuple(scores), value, epochs, seconds))
    return SearchRecord(seed, tuple(tried), trials.index(best(trials, search.judge.task.main)))


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

    Gives ``tuned`` and ``recommended``, the main metric of the test part of each outer split, and
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
