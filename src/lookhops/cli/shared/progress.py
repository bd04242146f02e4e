"""What a command shows while it runs, and how a training is stopped after its epoch."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Any

from rich.progress import BarColumn, Progress, ProgressColumn, TextColumn, TimeElapsedColumn

from lookhops.cli.shared.printing import err, print_line

if TYPE_CHECKING:
    from lookhops.training import Protocol
    from lookhops.training.trainer import Progress as Epoch
    from lookhops.training.trainer import Run

#: Seconds between two lines where there is no terminal.
QUIET = 30.0


def progress_bar(*columns: ProgressColumn) -> Progress:
    """A bar on stderr, where someone sees it: what is done, the bar, ``columns``, the time."""
    parts = (TextColumn("{task.description}"), BarColumn(bar_width=20), *columns)
    return Progress(
        *parts, TimeElapsedColumn(), console=err, transient=True, disable=not err.is_terminal
    )


class EpochDisplay:
    """A progress bar with the current losses on a terminal, else a line now and then.

    Args:
        protocol: Says when a run is done.
        title: Goes before each line.
    """

    def __init__(self, protocol: Protocol, title: str = "") -> None:
        self.protocol = protocol
        self.title = f"{title}, " if title else ""
        self.reported: set[int] = set()
        self.spoken = time.monotonic()
        self.bar = progress_bar(TextColumn("{task.fields[figures]}"))
        self.task = self.bar.add_task("", total=protocol.max_epochs, figures="")

    def __enter__(self) -> EpochDisplay:
        self.bar.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self.bar.stop()

    def __call__(self, progress: Epoch) -> None:
        """Show an epoch."""
        going = [run for run in progress.runs if not run.done(self.protocol)] or progress.runs
        last = [run.history[-1] for run in going]
        train_loss, val_loss = (
            sum(row[key] for row in last) / len(last) for key in ("train_loss", "val_loss")
        )
        epoch = max(len(run.history) for run in progress.runs)
        figures = f"epoch {epoch}  train {train_loss:.3f}  validation {val_loss:.3f}"
        seeds = ", ".join(str(run.seed) for run in going[:3]) + ("…" if len(going) > 3 else "")
        description = f"{self.title}seed {seeds}"
        self.bar.update(self.task, completed=epoch, description=description, figures=figures)
        if not err.is_terminal and time.monotonic() - self.spoken > QUIET:
            self.spoken = time.monotonic()
            print_line(f"{description}: {figures}", err)
        for run in progress.runs:
            if run.done(self.protocol) and run.seed not in self.reported:
                self._report(run)

    def _report(self, run: Run) -> None:
        self.reported.add(run.seed)
        number = len(self.reported)
        best = next(row for row in run.history if row["epoch"] == run.best_epoch)
        print_line(
            f"{self.title}seed {run.seed} ({number} of {len(self.protocol.seeds)}): "
            f"{len(run.history)} epochs, lowest validation loss {run.best_loss:.3f} in epoch "
            f"{run.best_epoch} (accuracy {best['val_accuracy']:.1%})",
            err,
        )


class Stopped(Exception):
    """The user, or the system, asked the training to stop."""

    def __init__(self, signal_number: int) -> None:
        super().__init__(signal_number)
        self.exit_code = 128 + signal_number


@contextmanager
def stoppable() -> Iterator[Callable[[], None]]:
    """Make Ctrl-C and a polite kill wait for the end of the epoch; a second one does not wait.

    Yields a function to call after each epoch, which raises :class:`Stopped` if asked to stop.
    """
    asked: list[int] = []

    def ask(number: int, frame: FrameType | None) -> None:
        asked.append(number)
        signal.signal(number, before[signal.Signals(number)])
        err.print("stopping after this epoch; a second Ctrl-C stops at once")

    def check() -> None:
        if asked:
            raise Stopped(asked[0])

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield check
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
