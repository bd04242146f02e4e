"""Stacks of runs side by side on the cores of a CPU: in this process and, where that pays, others.

A training on a GPU, or one that takes several cores, stays in this process.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future, wait
from contextlib import suppress
from dataclasses import replace
from functools import partial
from threading import Event, Lock
from typing import Any

from lookhops.core.errors import LookHopsError
from lookhops.graphs import Graphs
from lookhops.runs.processes import Ask, CannotStart, Processes, Tell
from lookhops.training.engine import EagerEngine
from lookhops.training.runs import Epoch, NotFinite, OnEpoch, Resume, Run
from lookhops.training.trainer import Execute, Trainer, in_order, in_turn

#: Seconds of training ahead that are worth the start of other processes.
WORTH = 3.0


class SideBySide:
    """Stacks of runs, one after the other in this process and, where that pays, some in others.

    It ends as it would in this process alone: where the loss of a stack is not finite, those before
    it are trained, and those after it do not count. ``on_epoch`` is called one at a time.
    """

    def __init__(
        self,
        trainer: Trainer,
        stacks: Sequence[list[Run]],
        resume: Resume | None,
        on_epoch: OnEpoch,
        helpers: Processes,
    ) -> None:
        self.trainer, self.stacks, self.resume = trainer, stacks, resume
        self.on_epoch, self.helpers = on_epoch, helpers
        self.worth = 0.0 if helpers.started else WORTH
        #: The stacks that were begun, here or elsewhere, by their numbers.
        self.tasks: dict[int, Future[list[Run]]] = {}
        self._here, self._lock = 0, Lock()
        self._is_stopping, self._is_over = Event(), Event()

    def run(self) -> list[Run]:
        """Train all stacks; the runs, in the order of the stacks."""
        try:
            with suppress(NotFinite):  # which is raised below, after the runs before it
                for number in range(len(self.stacks)):
                    self._here = number
                    self._raise_errors()
                    if not self._is_elsewhere(number):
                        self._train_here()
            return in_order(self._result(number) for number in range(len(self.stacks)))
        except BaseException:
            running = [task for task in self.tasks.values() if not task.cancel()]
            if self._is_stopping.is_set():  # they keep their state, too
                wait(running)
            raise
        finally:
            self._is_over.set()

    def _is_elsewhere(self, number: int) -> bool:
        task = self.tasks.get(number)
        if task is None or task.cancel():
            return False
        return not (task.done() and isinstance(task.exception(), CannotStart))

    def _train_here(self) -> None:
        task = self.tasks[self._here] = Future[list[Run]]()
        task.set_running_or_notify_cancel()
        try:
            task.set_result(self.train(self.stacks[self._here]))
        except BaseException as error:
            task.set_exception(error)
            raise

    def _result(self, number: int) -> list[Run]:
        try:
            return self.tasks[number].result()
        except CannotStart:
            self._here = number
            return self.train(self.stacks[number])

    def train(self, stack: list[Run]) -> list[Run]:
        """Train a stack in this process."""
        return self.trainer.train(stack, self.resume, self.after_epoch)

    def begin(self, stack: list[Run]) -> Future[list[Run]]:
        """Begin to train a stack in another process."""

        def listen(sent: list[Run], ask: Ask) -> None:
            runs = [replace(b, split=a.split) for a, b in zip(stack, sent, strict=True)]
            self.receive(Epoch(runs, self.trainer.protocol, partial(ask, "state")))

        graphs = self.trainer.graphs
        bare = replace(self.trainer, graphs=None)  # type: ignore[arg-type]  # which are sent once
        earlier = self.resume(stack) if self.resume else None
        return self.helpers.call(_train_stack, graphs, bare, stack, earlier, listen=listen)

    def _raise_errors(self) -> None:
        """Raise what ended others; a loss that is not finite only ends the stacks after it."""
        for number, task in self.tasks.items():
            error = task.exception() if task.done() and not task.cancelled() else None
            if isinstance(error, NotFinite) and number > self._here:
                continue
            if error is not None and not isinstance(error, CannotStart):
                raise error

    def receive(self, epoch: Epoch) -> None:
        """Handle an epoch that another process has trained; an error ends it there."""
        if self._is_over.is_set():
            raise LookHopsError("The training that asked for it has ended.")
        self._handle(epoch)
        if self._is_stopping.is_set():
            raise KeyboardInterrupt

    def _handle(self, epoch: Epoch) -> None:
        try:
            with self._lock:
                self.on_epoch(epoch)
        except KeyboardInterrupt:
            self._is_stopping.set()  # others stop after their epoch
            raise

    def after_epoch(self, epoch: Epoch) -> None:
        """After an epoch of this process: begin what waits in others, where that pays."""
        self._handle(epoch)
        self._raise_errors()
        waiting = range(self._here + 1, len(self.stacks))
        # Each takes at least as many epochs as the protocol waits for a better one.
        epochs = min(epoch.protocol.max_epochs, epoch.protocol.patience)
        seconds = epoch.runs[0].history[-1]["seconds"] * epochs * len(waiting)
        if waiting and seconds >= self.worth and len(self.tasks) == self._here + 1:
            for number in waiting:
                self.tasks[number] = self.begin(self.stacks[number])
                self.tasks[number].add_done_callback(self._on_end)

    def _on_end(self, task: Future[list[Run]]) -> None:
        """Where another process ends by an error, nothing that waits is begun any more."""
        if not task.cancelled() and task.exception() is not None:
            for other in list(self.tasks.values()):
                other.cancel()


def beside(helpers: Processes) -> Execute:
    """What trains stacks in this process and, where that pays, in others meanwhile."""

    def execute(
        trainer: Trainer, stacks: Sequence[list[Run]], resume: Resume | None, on_epoch: OnEpoch
    ) -> list[Run]:
        plain = trainer.kind is EagerEngine and trainer.device.type == "cpu"
        # Where a training takes several cores, others would not be the same to the last bit.
        if len(stacks) < 2 or not plain or trainer.threads > 1 or not trainer.workers.alone:
            return in_turn(trainer, stacks, resume, on_epoch)
        return SideBySide(trainer, stacks, resume, on_epoch, helpers).run()

    return execute


def _train_stack(
    graphs: Graphs, trainer: Trainer, stack: list[Run], earlier: Any, tell: Tell
) -> list[Run]:
    """Train a stack in another process; ``tell`` sends each epoch and is asked for its state."""

    def on_epoch(epoch: Epoch) -> None:
        sent = [replace(run, split=None) for run in epoch.runs]  # type: ignore[arg-type]
        tell(sent, lambda question: epoch.state())

    return replace(trainer, graphs=graphs).train(stack, lambda runs: earlier, on_epoch)
