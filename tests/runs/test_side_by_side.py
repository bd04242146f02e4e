"""Runs that other processes train: the same, whoever trains them and however it ends."""

from concurrent.futures import Future
from types import SimpleNamespace

import pytest

from lookhops.core.errors import LookHopsError
from lookhops.core.options import Protocol
from lookhops.runs.processes import CannotStart
from lookhops.runs.side_by_side import SideBySide
from lookhops.training.runs import Epoch, NotFinite, Run

SPLIT = SimpleNamespace()
PROTOCOL = Protocol(seeds=(1, 2, 3, 4), max_epochs=10, patience=5)
NOT_FINITE = "The loss was not finite."


def epoch(seconds=1.0):
    run = Run(1, SPLIT, history=[{"epoch": 1, "seconds": seconds}])
    return Epoch([run], PROTOCOL, dict)


class Work(SideBySide):
    """Four stacks beside stand-ins for other processes: what is begun waits until a test ends it.

    ``during(seed)`` is what happens while this process trains a seed, after its first epoch.
    """

    def __init__(self, during=lambda seed: None, *, busy=1, worth=0.0, on_epoch=lambda epoch: None):
        self.others, self.here, self.during, self.busy = {}, [], during, busy
        stacks = [[Run(seed, SPLIT)] for seed in (1, 2, 3, 4)]
        super().__init__(None, stacks, None, on_epoch, SimpleNamespace(started=True))
        self.worth = worth

    def train(self, stack):
        self.here.append(stack[0].seed)
        self.after_epoch(epoch())
        self.during(stack[0].seed)
        self.after_epoch(epoch())
        return stack

    def begin(self, stack):
        task = self.others[stack[0].seed] = Future()
        if len(self.others) <= self.busy:
            task.set_running_or_notify_cancel()
        return task

    def end(self, seed, reason=""):
        run = Run(seed, SPLIT, best_epoch=seed)
        if reason:
            self.others[seed].set_exception(NotFinite(reason, [run]))
        else:
            self.others[seed].set_result([run])


def seeds(runs):
    return [run.seed for run in runs]


def test_this_process_takes_what_nobody_has_begun():
    work = Work(lambda seed: seed == 4 and work.end(2))
    runs = work.run()
    assert work.here == [1, 3, 4]
    assert seeds(runs) == [1, 2, 3, 4]
    assert runs[1].best_epoch == 2


@pytest.mark.parametrize(("seconds", "asked"), [(0.1, False), (0.3, True)])
def test_others_are_asked_where_that_pays(seconds, asked):
    work = Work(busy=0, worth=3.0)  # 3 stacks of 5 epochs or more wait
    work.train = lambda stack: work.after_epoch(epoch(seconds)) or stack
    assert seeds(work.run()) == [1, 2, 3, 4]
    assert bool(work.others) == asked


@pytest.mark.parametrize("failed", [2, 3])
def test_where_one_fails_those_before_it_are_trained_as_alone(failed):
    """By whomever: the one that fails is among the others, and the last of them is never begun."""

    def during(seed):
        for other in (3, 2):
            work.end(other, NOT_FINITE if other == failed else "")

    work = Work(during, busy=2)
    with pytest.raises(NotFinite) as error:
        work.run()
    assert work.here == [1]
    assert seeds(error.value.runs) == list(range(1, failed + 1))
    assert work.others[4].cancelled()


def test_what_a_stack_before_it_fails_at_ends_the_one_that_is_trained_here():
    # Seed 3, which nobody else had begun.
    work = Work(lambda seed: seed == 3 and work.end(2, NOT_FINITE))
    with pytest.raises(NotFinite) as error:
        work.run()
    assert seeds(error.value.runs) == [1, 2]
    assert work.here == [1, 3]


def test_a_loss_that_is_no_number_here_waits_for_what_comes_before():
    def during(seed):
        if seed == 3:
            work.end(2)
            raise NotFinite(NOT_FINITE, work.stacks[2])

    work = Work(during)
    with pytest.raises(NotFinite) as error:
        work.run()
    assert seeds(error.value.runs) == [1, 2, 3]


def test_a_stop_after_an_epoch_waits_for_the_epochs_of_others():
    def stop(progress):
        if work.others:
            raise KeyboardInterrupt

    def during(seed):
        with pytest.raises(KeyboardInterrupt):  # what another process is told
            work.receive(epoch())
        work.others[2].set_exception(KeyboardInterrupt())

    work = Work(during, on_epoch=stop)
    with pytest.raises(KeyboardInterrupt):
        work.run()
    assert [work.others[seed].cancelled() for seed in (2, 3, 4)] == [False, True, True]


def test_a_stop_within_an_epoch_waits_for_nobody():
    def during(seed):
        raise KeyboardInterrupt

    work = Work(during)
    with pytest.raises(KeyboardInterrupt):
        work.run()
    with pytest.raises(LookHopsError):
        work.receive(epoch())


def test_an_error_elsewhere_begins_nothing_more_and_comes_here():
    def during(seed):
        work.others[2].set_exception(LookHopsError("It was killed."))
        assert all(work.others[seed].cancelled() for seed in (3, 4))

    work = Work(during)
    with pytest.raises(LookHopsError, match="killed"):
        work.run()


@pytest.mark.parametrize(("noticed", "order"), [(1, [1, 2, 3, 4]), (4, [1, 3, 4, 2])])
def test_where_no_process_can_be_started_this_one_trains_all(noticed, order):
    def during(seed):
        if seed == noticed:
            work.others[2].set_exception(CannotStart("No other process could be started."))

    work = Work(during)
    assert seeds(work.run()) == [1, 2, 3, 4]
    assert work.here == order
