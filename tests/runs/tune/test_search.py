"""A search: what it tries, what it prunes, that it goes on as if it had not been stopped."""

from pathlib import Path

import pytest
import torch

from lookhops.core.errors import LookHopsError
from lookhops.core.options import Protocol
from lookhops.runs.tune.search import Judge, Search, StudyFile, finished, is_complete
from lookhops.runs.tune.space import Space
from lookhops.runs.tune.tuning import inner_splits, record_search
from lookhops.sources.splits import SplitPlan
from lookhops.tasks import task_of
from lookhops.training.runs import Run

optuna = pytest.importorskip("optuna")
PROTOCOL = Protocol(seeds=(11,), split="stratified")
EPOCHS = [{"seconds": 0.1}] * 3


class Oracle(Judge):
    """Judges by a formula: wide networks with a rate near 0.001 are good; every split is noisy."""

    def judge(self, architecture, rates, splits, prune):
        self.__dict__.setdefault("asked", []).append((architecture, len(rates), list(splits)))
        return [
            [Run(seed, None, EPOCHS, score=self.score(architecture, own, seed)) for seed in splits]
            for own in rates
        ]

    def score(self, architecture, own, seed):
        if own.weight_decay == 1e-3:
            return None  # as if its loss had stopped being a number
        rate = abs(torch.tensor(own.learning_rate / 1e-3).log().item())
        return architecture.hidden / 1000 - rate / 10 + seed % 7 / 100


@pytest.fixture
def make(tasks, tmp_path):
    def make(name="study.sqlite", trainer=Oracle, **settings):
        task = task_of(tasks)
        file = StudyFile.open(tmp_path / name, "seed 11", task.main, {"k": 1, **settings})
        plan = SplitPlan.of(tasks, PROTOCOL)
        made = trainer(tasks, task, PROTOCOL, torch.device("cpu"))
        return Search(file, Space.parse(None), made, inner_splits(tasks, plan, 11, 3), 4)

    return make


def tried(search):
    return [(t.params, t.user_attrs, t.state, t.value) for t in finished(search.study)]


def kept(search):
    trials = finished(search.file.study)
    return [(t.params, t.user_attrs, t.state, t.value) for t in trials]


def test_stacks_of_one_shape_the_recommended_model_first(make):
    search = make()
    search.run(16)
    assert search.space.candidate(finished(search.study)[0].params).name == "network"
    asked = search.judge.asked
    firsts = [one for one in asked if one[2] == [11]]
    assert [count for _, count, _ in firsts] == [4] * 4
    later = [one for one in asked if one[2] != [11]]
    assert all(len(seeds) == 2 and 11 not in seeds for _, _, seeds in later)
    assert sum(count for _, count, _ in later) < 16  # some were pruned
    for trial in finished(search.study):
        judged = len(trial.user_attrs["scores"])
        assert judged == (3 if is_complete(trial) else judged % 3)
    record = record_search(search, 11)
    best = record.chosen
    assert best.value == max(t.value for t in finished(search.study) if is_complete(t))
    assert best.value >= finished(search.study)[0].value
    lost = [t for t in finished(search.study) if t.params["weight_decay"] == 1e-3]
    assert lost
    assert all(not t.user_attrs["scores"] and not is_complete(t) for t in lost)


def test_a_search_that_was_killed_goes_on_to_the_same_end(make, monkeypatch):
    whole, broken = make("whole.sqlite"), make("broken.sqlite")
    whole.run(12)
    broken.run(8)

    def killed(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Oracle, "judge", killed)
        with pytest.raises(KeyboardInterrupt):
            broken.run(12)
    again = make("broken.sqlite")
    again.run(12)
    assert tried(again) == tried(whole) == kept(again)
    again.run(12)
    assert len(again.judge.asked) == len(whole.judge.asked) - 4


class Slow(Oracle):
    """As the others, but tells of epochs, in which the score rises to what it is in the end."""

    def judge(self, architecture, rates, splits, prune):
        runs = [Run(seed, None, rates=own) for own in rates for seed in splits]
        final = {id(run): self.score(architecture, run.rates, run.seed) or 0.0 for run in runs}
        for epoch in range(1, 41):
            active = [run for run in runs if not run.pruned]
            for run in active:
                run.best_epoch, run.score = epoch, final[id(run)] * epoch / 40
                run.history.append({"val_accuracy": run.score, "seconds": 0.1})
            for run, ends in zip(active, prune(active), strict=True):
                run.pruned = ends
        return [runs[i : i + len(splits)] for i in range(0, len(runs), len(splits))]


def test_what_falls_behind_the_median_ends_there(make):
    search = make(trainer=Slow)
    search.run(12)
    trials = finished(search.study)
    ended = [t for t in trials if not is_complete(t)]
    assert len(ended) >= 6
    assert {t.user_attrs["epochs"] for t in ended} <= {20, 40}  # 40: the end of the first split
    assert 20 in {t.user_attrs["epochs"] for t in ended}
    assert is_complete(trials[0])  # what is recommended is never pruned
    for trial in ended:
        assert len(trial.user_attrs["scores"]) == 1


def test_time_that_is_up_leaves_one_stack(make):
    search = make()
    search.run(100, until=0.0)
    assert len(finished(search.study)) == 4


def test_other_settings_are_refused(make):
    make()
    with pytest.raises(LookHopsError, match=r"\(k\).*--overwrite"):
        make(k=2)


def test_a_file_that_is_no_study_is_refused(make, tmp_path):
    Path(tmp_path / "study.sqlite").write_text("not a database, but long enough for a header" * 9)
    with pytest.raises(LookHopsError, match="--overwrite"):
        make()
