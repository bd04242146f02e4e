"""Candidates: each is judged as it is when it is trained alone, by the very training of `train`."""

from dataclasses import replace

import pytest
import torch

from engine_cases import with_rates
from lookhops.core.options import Protocol
from lookhops.graphs.targets import Target
from lookhops.nn import Architecture
from lookhops.runs.tune.search import Judge
from lookhops.sources.splits import Split, split
from lookhops.tasks import task_of
from lookhops.training import train
from lookhops.training.runs import Rates
from lookhops.training.stacked import StackedEngine

SHAPE = Architecture(hidden=8, layers=2, fingerprint=1)
PROTOCOL = Protocol(seeds=(11, 22), max_epochs=4, batch_size=32, precision="float64")
RATES = [Rates(0.01, 0.0, 0.0), Rates(0.003, 1e-3, 0.4)]


def judge(graphs, rates=RATES, stacked=True, **options):
    trainer = Judge(graphs, task_of(graphs), PROTOCOL, torch.device("cpu"), stacked, **options)
    return trainer.judge(SHAPE, rates, {seed: split(graphs, seed) for seed in (11, 22)})


def losses(runs):
    return [run.best_loss for run in runs]


@pytest.mark.parametrize("stacked", [True, False])
def test_a_candidate_is_what_train_gives(tasks, stacked):
    judged = judge(tasks, stacked=stacked)
    for own, found in zip(RATES, judged, strict=True):
        architecture, protocol = with_rates(own, SHAPE, PROTOCOL)
        splits = [split(tasks, seed) for seed in protocol.seeds]
        runs = train(tasks, architecture, protocol, splits=splits, device="cpu")
        for run, one in zip(runs, found, strict=True):
            assert one.best_loss == pytest.approx(run.best_loss, abs=1e-7)
            assert len(one.history) == len(run.history)
            best = run.history[run.best_epoch - 1]["val_accuracy"]
            assert one.score == pytest.approx(best, abs=0.13)  # a graph of 8 on the line
            assert one.seconds > 0


def test_test_parts_are_not_handed_on(tasks, monkeypatch):
    seen = []

    class Spy(StackedEngine):
        def prepare(self, models):
            seen.extend(len(one.test) for one in self.splits)
            super().prepare(models)

    monkeypatch.setattr("lookhops.training.trainer.StackedEngine", Spy)
    judge(tasks)
    assert seen == [0, 0, 0, 0]


def test_one_that_diverges_fails_alone(tasks):
    wild = Rates(1e200, 0.0, 0.0)
    good, bad = judge(tasks, [RATES[0], wild])
    assert [one.score for one in bad] == [None, None]
    [alone] = judge(tasks, RATES[:1])
    assert [one.best_loss for one in good] == pytest.approx(
        [one.best_loss for one in alone], abs=1e-9
    )


def test_a_stack_that_does_not_fit_is_halved(tasks, monkeypatch):
    sizes = []

    class Small(StackedEngine):
        def prepare(self, models):
            sizes.append(len(models))
            if len(models) > 1:
                raise torch.OutOfMemoryError
            super().prepare(models)

    want = judge(tasks)
    monkeypatch.setattr("lookhops.training.trainer.StackedEngine", Small)
    found = judge(tasks)
    assert sizes == [4, 2, 1, 1, 2, 1, 1]
    for mine, own in zip(found, want, strict=True):
        assert [one.best_loss for one in mine] == pytest.approx(
            [one.best_loss for one in own], abs=1e-9
        )


def test_splits_that_take_other_numbers_of_steps(tasks):
    own = split(tasks, 11)
    short = Split(own.train[:30], own.val, own.test)
    trainer = Judge(tasks, task_of(tasks), PROTOCOL, torch.device("cpu"))
    both = trainer.judge(SHAPE, RATES, {11: own, 22: short})
    [alone], _ = trainer.judge(SHAPE, RATES, {22: short})
    assert both[0][1].best_loss == pytest.approx(alone.best_loss, abs=1e-9)


def test_numbers_are_judged_in_their_units(tasks):
    sizes = tasks.nodes_per_graph.double() * 1000
    graphs = replace(tasks, y=sizes, targets=(Target("size"),))
    judged = judge(graphs, RATES[:1])
    assert all(100 < one.score < 1e5 for one in judged[0])


def test_one_that_is_pruned_ends_and_the_others_go_on(tasks):
    asked = []

    def prune(active):
        asked.extend(len(run.history) for run in active)
        return [
            run.rates == RATES[1] and run.seed == 22 and len(run.history) == 2 for run in active
        ]

    trainer = Judge(tasks, task_of(tasks), PROTOCOL, torch.device("cpu"))
    splits = {seed: split(tasks, seed) for seed in (11, 22)}
    judged = trainer.judge(SHAPE, RATES, splits, prune)
    assert [[len(one.history) for one in own] for own in judged] == [[4, 4], [4, 2]]
    assert [[one.pruned for one in own] for own in judged] == [[False, False], [False, True]]
    want = trainer.judge(SHAPE, RATES, splits)
    assert judged[0][1].best_loss == pytest.approx(want[0][1].best_loss, abs=1e-9)
    assert max(asked) == 3  # the last epoch ends by itself
