"""Runs side by side on the cores of a CPU: this process trains one, others those that wait."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from dataclasses import replace
from typing import Any

from lookhops.training.runs import NotFinite, Progress, Run

#: Seconds of training ahead that are worth the start of other processes.
WORTH = 3.0
#: What is told of a run after each of its epochs.
_TOLD = ("history", "best_epoch", "best_loss", "failed", "pruned")

#: The runs of a stack, and why their training ended early, if it did.
Ended = tuple[list[Run], str]
#: Begins to train the runs of a stack in another process.
Begin = Callable[[list[Run]], "Future[Ended]"]


class SideBySide:
    """Stacks of runs, one after the other in this process and, where that pays, some in others.

    Args:
        stacks: The runs that are trained together.
        begin: Begins to train a stack in another process; none where there is none.
        worth: Seconds of training ahead that are worth asking the others.
    """

    def __init__(
        self, stacks: Sequence[list[Run]], begin: Begin | None, worth: float = WORTH
    ) -> None:
        self.stacks, self.begin = stacks, begin
        self._trained: dict[int, list[Run]] = {}  # by this process
        self._tasks: dict[int, Future[Ended]] = {}
        self._at, self._worth = 0, worth

    def train(self, here: Callable[[list[Run]], list[Run]]) -> None:
        """Train all stacks.

        Args:
            here: Trains a stack in this process; it calls :meth:`after_epoch`.
        """
        try:
            for number, stack in enumerate(self.stacks):
                self._at = number
                task = self._tasks.get(number)
                if task is None or task.cancel():
                    self._trained[number] = here(stack)
            for task in self._tasks.values():
                if not task.cancelled():
                    _result(task)
        except KeyboardInterrupt:  # the others stop after their epoch too, and keep their state
            wait([task for task in self._tasks.values() if not task.cancel()])
            raise

    def after_epoch(self, progress: Progress) -> None:
        """Ask others for help where that pays, and raise what ended the training of one of them.

        Args:
            progress: Of this process: what waits takes as long an epoch, and no fewer epochs than
                the protocol waits for a better one.
        """
        for task in self._tasks.values():
            if task.done() and not task.cancelled():
                _result(task)
        waiting = range(self._at + 1, len(self.stacks))
        if self.begin is None or self._tasks or not waiting:
            return
        epochs = min(progress.protocol.max_epochs, progress.protocol.patience)
        if progress.runs[0].history[-1]["seconds"] * epochs * len(waiting) >= self._worth:
            for number in waiting:
                self._tasks[number] = self.begin(self.stacks[number])

    @property
    def finished(self) -> list[Run]:
        """The runs of the stacks that are trained, in the order of the stacks."""
        found = dict(self._trained)
        for number, task in self._tasks.items():
            if task.done() and not task.cancelled() and task.exception() is None:
                runs, reason = task.result()
                found |= {} if reason else {number: runs}
        return [run for number in sorted(found) for run in found[number]]


def _result(task: Future[Ended]) -> None:
    """Wait for a task, and raise what ended it early."""
    runs, reason = task.result()
    if reason:
        raise NotFinite(reason, runs)


def told(runs: Sequence[Run]) -> list[dict[str, Any]]:
    """What another process is told of runs after an epoch."""
    return [{name: getattr(run, name) for name in _TOLD} for run in runs]


def heard(runs: Sequence[Run], said: Sequence[dict[str, Any]]) -> list[Run]:
    """The runs, given what was :func:`told` of them."""
    return [replace(run, **own) for run, own in zip(runs, said, strict=True)]
