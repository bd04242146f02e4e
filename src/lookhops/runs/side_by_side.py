"""Runs side by side on the cores of a CPU: this process trains one, others those that wait."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from lookhops.core.errors import LookHopsError
from lookhops.graphs import Graphs
from lookhops.nn.registry import LOADED, load_plugin
from lookhops.runs.processes import Ask, CannotStart, Processes, Tell
from lookhops.training.eager import EagerEngine
from lookhops.training.runs import Epoch, NotFinite, OnEpoch, Resume, Run
from lookhops.training.trainer import Execute, Trainer, in_turn

#: Seconds of training ahead that are worth the start of other processes.
WORTH = 3.0
#: What another process sends of a run after each of its epochs.
_SENT = ("history", "best_epoch", "best_loss", "failed", "pruned")

#: The runs of a stack, and why their training ended early, if it did.
Ended = tuple[list[Run], str]
#: Begins to train the runs of a stack in another process.
Begin = Callable[[list[Run]], "Future[Ended]"]


class SideBySide:
    """Stacks of runs, one after the other in this process and, where that pays, some in others.

    It ends as it would in this process alone: where the loss of a stack stops being a number, those
    before it are trained, and those after it are not looked at.

    Args:
        stacks: The runs that are trained together.
        on_epoch: Called after each epoch, whoever trained it, one at a time.
        worth: Seconds of training ahead that are worth asking the others.
    """

    def __init__(
        self,
        stacks: Sequence[list[Run]],
        on_epoch: OnEpoch,
        worth: float = WORTH,
    ) -> None:
        self.stacks, self.on_epoch = stacks, on_epoch
        #: Begins to train a stack in another process; none where there is none.
        self.begin: Begin | None = None
        self._lock = threading.Lock()
        self._is_stopping = (
            threading.Event()
        )  # after an epoch it was asked for: others stop after theirs
        self._is_over = threading.Event()  # the others are not waited for any more
        self._ended: dict[int, Ended] = {}
        self._tasks: dict[int, Future[Ended]] = {}
        self._at, self._worth = 0, worth

    def train(self, here: Callable[[list[Run]], list[Run]]) -> list[Run]:
        """Train all stacks, in this process by ``here``; the runs, in the order of the stacks."""
        try:
            self._train(here)
        except BaseException:
            running = [task for task in self._tasks.values() if not task.cancel()]
            if self._is_stopping.is_set():  # they keep their state, too
                wait(running)
            raise
        finally:
            self._is_over.set()
        if self._failed < len(self.stacks):
            runs, reason = self._ended[self._failed]
            raise NotFinite(reason, runs)
        return self.finished

    def _train(self, here: Callable[[list[Run]], list[Run]]) -> None:
        for number in range(len(self.stacks)):
            self._at = number
            if not _is_elsewhere(self._tasks.get(number)):
                self._train_one(number, here)
        for number, task in self._tasks.items():
            if number not in self._ended and number < self._failed:
                try:
                    self._ended[number] = task.result()
                except CannotStart:
                    self._train_one(number, here)

    def _train_one(self, number: int, here: Callable[[list[Run]], list[Run]]) -> None:
        """Train a stack in this process, unless one before it has failed."""
        if number > self._failed:
            return
        try:
            self._ended[number] = here(self.stacks[number]), ""
        except NotFinite as error:
            self._ended[number] = error.runs, str(error)
        except _Superseded:
            pass

    @property
    def _failed(self) -> int:
        """The first stack whose loss stopped being a number; as far as is known, none."""
        return min((n for n, (_, why) in self._ended.items() if why), default=len(self.stacks))

    def receive(self, epoch: Epoch) -> None:
        """Take note of an epoch that another process has trained; an error ends it there."""
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
            self._is_stopping.set()
            raise

    def after_epoch(self, epoch: Epoch) -> None:
        """After an epoch of this process: ask others for help where that pays, and look at them.

        What waits takes as long an epoch, and no fewer epochs than the protocol waits for a better
        one.
        """
        self._handle(epoch)
        for number, task in self._tasks.items():
            if number not in self._ended and task.done() and _is_elsewhere(task):
                self._ended[number] = task.result()
        if self._failed < self._at:
            raise _Superseded
        waiting = range(self._at + 1, len(self.stacks))
        if self.begin is None or self._tasks or not waiting:
            return
        epochs = min(epoch.protocol.max_epochs, epoch.protocol.patience)
        if epoch.runs[0].history[-1]["seconds"] * epochs * len(waiting) >= self._worth:
            for number in waiting:
                self._tasks[number] = self.begin(self.stacks[number])
                self._tasks[number].add_done_callback(self._on_end)

    def _on_end(self, task: Future[Ended]) -> None:
        """Where another process ends by an error, nothing that waits is begun any more."""
        if not task.cancelled() and task.exception() is not None:
            for other in list(self._tasks.values()):
                other.cancel()

    @property
    def finished(self) -> list[Run]:
        """The runs of the stacks that are trained, but for what follows one that failed."""
        numbers = [number for number in sorted(self._ended) if number < self._failed]
        return [run for number in numbers for run in self._ended[number][0]]


def _is_elsewhere(task: Future[Ended] | None) -> bool:
    """Whether another process has it: not where it still waits, nor where none could be started."""
    if task is None or task.cancel():
        return False
    return not (task.done() and isinstance(task.exception(), CannotStart))


class _Superseded(Exception):
    """A stack before the one that this process is at has failed: this one does not count."""


def beside(helpers: Processes) -> Execute:
    """What trains stacks in this process and, where that pays, in others meanwhile."""

    def execute(
        trainer: Trainer, stacks: Sequence[list[Run]], resume: Resume | None, on_epoch: OnEpoch
    ) -> list[Run]:
        plain = trainer.kind is EagerEngine and trainer.device.type == "cpu"
        # Where a training takes several cores, others would not be the same to the last bit.
        if len(stacks) < 2 or not plain or trainer.threads > 1 or not trainer.workers.alone:
            return in_turn(trainer, stacks, resume, on_epoch)
        side = SideBySide(stacks, on_epoch, worth=0.0 if helpers.are_started else WORTH)
        side.begin = partial(_begin, helpers, side, trainer, resume)
        try:
            return side.train(lambda stack: trainer.train(stack, resume, side.after_epoch))
        except NotFinite as error:
            error.runs = side.finished + error.runs
            raise

    return execute


def _begin(
    helpers: Processes, side: SideBySide, trainer: Trainer, resume: Resume | None, stack: list[Run]
) -> Future[Ended]:
    """Begin to train a stack in another process."""

    def listen(sent: Any, ask: Ask) -> None:
        side.receive(Epoch(with_changes(stack, sent), trainer.protocol, partial(ask, "state")))

    earlier = resume(stack) if resume else None
    bare = replace(trainer, graphs=None)  # type: ignore[arg-type]  # which are sent once
    return helpers.call(_train_here, trainer.graphs, [*LOADED], bare, stack, earlier, listen=listen)


def _train_here(
    graphs: Graphs,
    plugins: Sequence[Path],
    trainer: Trainer,
    stack: list[Run],
    earlier: Any,
    tell: Tell,
) -> Ended:
    """Train a stack in a process that another one asks for help, which has the graphs.

    ``tell`` sends each epoch, and may be asked for the state after it.
    """
    for path in plugins:
        load_plugin(path)

    def on_epoch(epoch: Epoch) -> None:
        tell(changes(epoch.runs), lambda question: epoch.state())

    try:
        return replace(trainer, graphs=graphs).train(stack, lambda runs: earlier, on_epoch), ""
    except NotFinite as error:
        return error.runs, str(error)


def changes(runs: Sequence[Run]) -> list[dict[str, Any]]:
    """What an epoch changed of runs, to be sent to another process."""
    return [{name: getattr(run, name) for name in _SENT} for run in runs]


def with_changes(runs: Sequence[Run], sent: Sequence[dict[str, Any]]) -> list[Run]:
    """The runs with their :func:`changes`."""
    return [replace(run, **one) for run, one in zip(runs, sent, strict=True)]
