"""Runs that other processes train: the same, whoever trains them and however it ends."""

from concurrent.futures import Future
from types import SimpleNamespace

import pytest

from lookhops.options import Protocol
from lookhops.training.runs import NotFinite, Progress, Run
from lookhops.training.side_by_side import SideBySide, heard, told

SPLIT = SimpleNamespace()
PROTOCOL = Protocol(seeds=(1, 2, 3, 4), max_epochs=10, patience=5)


def stacks():
    return [[Run(seed, SPLIT)] for seed in (1, 2, 3, 4)]


def epoch(seconds):
    run = Run(1, SPLIT, history=[{"epoch": 1, "seconds": seconds}])
    return Progress([run], PROTOCOL, dict)


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


def test_this_process_takes_what_nobody_has_begun():
    others, here = Others(busy=1), []
    work = SideBySide(stacks(), others.begin)

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
    work = SideBySide(stacks(), others.begin, worth=3.0)  # 3 stacks of 5 epochs or more wait
    work.after_epoch(epoch(seconds))
    assert bool(others.tasks) == asked
    alone = SideBySide(stacks(), None, worth=0.0)
    alone.after_epoch(epoch(100.0))
    assert [run.seed for run in finished(alone)] == [1, 2, 3, 4]


def finished(work):
    work.train(lambda stack: stack)
    return work.finished


def test_what_ends_one_of_them_ends_all():
    others = Others(busy=3)
    work = SideBySide(stacks(), others.begin, worth=0.0)

    def train(stack):
        work.after_epoch(epoch(1.0))
        others.end(3)
        others.end(2, "The loss was not finite.")
        work.after_epoch(epoch(1.0))
        pytest.fail("went on")

    with pytest.raises(NotFinite, match="not finite") as error:
        work.train(train)
    assert [run.seed for run in error.value.runs] == [2]
    assert [run.seed for run in work.finished] == [3]


def test_ctrl_c_waits_for_the_epochs_of_others():
    others = Others(busy=1)
    work = SideBySide(stacks(), others.begin, worth=0.0)

    def train(stack):
        work.after_epoch(epoch(1.0))
        others.tasks[2].set_exception(KeyboardInterrupt())
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        work.train(train)
    assert [others.tasks[seed].cancelled() for seed in (2, 3, 4)] == [False, True, True]


def test_what_is_told_of_a_run_is_heard():
    runs = [Run(7, SPLIT, history=[{"epoch": 1, "seconds": 2.0}], best_epoch=1, best_loss=0.5)]
    assert told(heard([Run(7, SPLIT)], told(runs))) == told(runs)
