"""Runs that other processes train: the same, whoever trains them and however it ends."""

from concurrent.futures import Future
from types import SimpleNamespace

import pytest

from lookhops.core.errors import LookHopsError
from lookhops.core.options import Protocol
from lookhops.runs.processes import CannotStart
from lookhops.runs.side_by_side import SideBySide, changes, with_changes
from lookhops.training.runs import Epoch, NotFinite, Run

SPLIT = SimpleNamespace()
PROTOCOL = Protocol(seeds=(1, 2, 3, 4), max_epochs=10, patience=5)


def stacks():
    return [[Run(seed, SPLIT)] for seed in (1, 2, 3, 4)]


def epoch(seconds):
    run = Run(1, SPLIT, history=[{"epoch": 1, "seconds": seconds}])
    return Epoch([run], PROTOCOL, dict)


class Others:
    """Stands for other processes: what is begun waits until a test ends it."""

    def __init__(self, busy=1):
        self.tasks, self.busy = {}, busy

    def begin(self, stack):
        task = self.tasks[stack[0].seed] = Future()
        if len(self.tasks) <= self.busy:
            task.set_running_or_notify_cancel()
        return task

    def end(self, seed, reason=""):
        self.tasks[seed].set_result(([Run(seed, SPLIT, best_epoch=seed)], reason))


def beside(others, worth=0.0, on_epoch=lambda progress: None):
    work = SideBySide(stacks(), on_epoch, worth)
    work.begin = others.begin
    return work


def test_this_process_takes_what_nobody_has_begun():
    others, here = Others(busy=1), []
    work = beside(others)

    def train(stack):
        here.append(stack[0].seed)
        work.after_epoch(epoch(1.0))
        if stack[0].seed == 4:
            others.end(2)
        return stack

    work.train(train)
    assert here == [1, 3, 4]
    assert [run.seed for run in work.finished] == [1, 2, 3, 4]
    assert work.finished[1].best_epoch == 2


@pytest.mark.parametrize(("seconds", "asked"), [(0.1, False), (0.3, True)])
def test_others_are_asked_where_that_pays(seconds, asked):
    others = Others(busy=0)
    work = beside(others, worth=3.0)  # 3 stacks of 5 epochs or more wait
    work.after_epoch(epoch(seconds))
    assert bool(others.tasks) == asked
    alone = SideBySide(stacks(), lambda progress: None, worth=0.0)
    alone.after_epoch(epoch(100.0))
    assert [run.seed for run in finished(alone)] == [1, 2, 3, 4]


def finished(work):
    return work.train(lambda stack: stack)


@pytest.mark.parametrize("failed", [2, 3])
def test_where_one_fails_those_before_it_are_trained_as_alone(failed):
    """By whomever: the one that fails is among the others, and the last of them is never begun."""
    others, here = Others(busy=2), []
    work = beside(others)

    def train(stack):
        here.append(stack[0].seed)
        work.after_epoch(epoch(1.0))
        for seed in (3, 2):
            others.end(seed, "The loss was not finite." if seed == failed else "")
        work.after_epoch(epoch(1.0))
        return stack

    with pytest.raises(NotFinite, match="not finite") as error:
        work.train(train)
    assert here == [1]
    assert [run.seed for run in error.value.runs] == [failed]
    assert [run.seed for run in work.finished] == list(range(1, failed))
    assert others.tasks[4].cancelled()


def test_what_a_stack_before_it_fails_at_ends_the_one_that_is_trained_here():
    others = Others(busy=1)
    work = beside(others)

    def train(stack):
        work.after_epoch(epoch(1.0))
        if stack[0].seed == 3:  # which nobody else had begun
            others.end(2, "The loss was not finite.")
            work.after_epoch(epoch(1.0))
            pytest.fail("went on")
        return stack

    with pytest.raises(NotFinite) as error:
        work.train(train)
    assert [run.seed for run in error.value.runs] == [2]
    assert [run.seed for run in work.finished] == [1]


def test_a_loss_that_is_no_number_here_waits_for_what_comes_before():
    others = Others(busy=1)
    work = beside(others)

    def train(stack):
        work.after_epoch(epoch(1.0))
        if stack[0].seed == 3:
            others.end(2)
            raise NotFinite("The loss was not finite.", stack)
        return stack

    with pytest.raises(NotFinite):
        work.train(train)
    assert [run.seed for run in work.finished] == [1, 2]


def test_a_stop_after_an_epoch_waits_for_the_epochs_of_others():
    others = Others(busy=1)

    def stop(progress):
        if others.tasks:
            raise KeyboardInterrupt

    work = beside(others, on_epoch=stop)

    def train(stack):
        work.after_epoch(epoch(1.0))
        with pytest.raises(KeyboardInterrupt):  # what another process is told
            work.receive(epoch(1.0))
        others.tasks[2].set_exception(KeyboardInterrupt())
        work.after_epoch(epoch(1.0))

    with pytest.raises(KeyboardInterrupt):
        work.train(train)
    assert [others.tasks[seed].cancelled() for seed in (2, 3, 4)] == [False, True, True]


def test_a_stop_within_an_epoch_waits_for_nobody():
    others = Others(busy=1)
    work = beside(others)

    def train(stack):
        work.after_epoch(epoch(1.0))
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        work.train(train)
    with pytest.raises(LookHopsError, match="has ended"):
        work.receive(epoch(1.0))


def test_an_error_elsewhere_begins_nothing_more_and_comes_here():
    others = Others(busy=1)
    work = beside(others)

    def train(stack):
        work.after_epoch(epoch(1.0))
        others.tasks[2].set_exception(LookHopsError("It was killed."))
        assert all(others.tasks[seed].cancelled() for seed in (3, 4))
        work.after_epoch(epoch(1.0))

    with pytest.raises(LookHopsError, match="killed"):
        work.train(train)


def test_where_no_process_can_be_started_this_one_trains_all():
    others, here = Others(busy=1), []
    work = beside(others)

    def train(stack):
        work.after_epoch(epoch(1.0))
        here.append(stack[0].seed)
        if len(here) == 1:
            others.tasks[2].set_exception(CannotStart("No other process could be started."))
            assert all(others.tasks[seed].cancelled() for seed in (3, 4))
        work.after_epoch(epoch(1.0))
        return stack

    assert [run.seed for run in work.train(train)] == here == [1, 2, 3, 4]


def test_changes_of_a_run_are_sent():
    runs = [Run(7, SPLIT, history=[{"epoch": 1, "seconds": 2.0}], best_epoch=1, best_loss=0.5)]
    assert changes(with_changes([Run(7, SPLIT)], changes(runs))) == changes(runs)
