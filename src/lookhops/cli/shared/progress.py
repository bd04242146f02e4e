"""What a command shows while it runs, and how a training is stopped after its epoch."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING

from rich.progress import BarColumn, Progress, ProgressColumn, TextColumn, TimeElapsedColumn

from lookhops.cli.shared.printing import err, print_line
from lookhops.core.words import counted

if TYPE_CHECKING:
    from lookhops.training import Protocol
    from lookhops.training.runs import Epoch, Run

#: Seconds between two lines where there is no terminal.
QUIET = 30.0
#: What the networks are called that are trained on all graphs.
ALL = "all graphs"


def progress_bar(*columns: ProgressColumn) -> Progress:
    """A bar on stderr, where someone sees it: what is done, the bar, ``columns``, the time."""
    parts = (TextColumn("{task.description}"), BarColumn(bar_width=20), *columns)
    hidden = not err.is_terminal
    return Progress(*parts, TimeElapsedColumn(), console=err, transient=True, disable=hidden)


@contextmanager
def epoch_display(protocol: Protocol, title: str = "") -> Iterator[Callable[[Epoch], None]]:
    """A function that shows an epoch: in a bar on a terminal, else by a line now and then.

    That a run is done is told in a line everywhere. The title goes before each line.
    """
    title = f"{title}, " if title else ""
    reported: set[str] = set()
    going_on: dict[str, list[Run]] = {}  # of each stack: some may be trained side by side
    total = len(protocol.seeds) * protocol.members
    spoken = time.monotonic()

    def show(progress: Epoch) -> None:
        nonlocal spoken
        own = [run for run in progress.runs if not run.done(progress.protocol)]
        going_on[progress.runs[0].key] = own
        going = [run for runs in going_on.values() for run in runs] or progress.runs
        last = [run.history[-1] for run in going]
        epoch = max(len(run.history) for run in going)
        figures = f"epoch {epoch}"
        for name, key in (("train", "train_loss"), ("validation", "val_loss")):
            if key in last[0]:  # there is nothing to stop by where all graphs are trained on
                figures += f"  {name} {sum(row[key] for row in last) / len(last):.3f}"
        which = _which(going)
        bar.update(task, completed=epoch, description=f"{title}{which}", figures=figures)
        if not err.is_terminal and time.monotonic() - spoken > QUIET:
            spoken = time.monotonic()
            print_line(f"{title}{which}: {figures}", err)
        for run in progress.runs if which != ALL else ():
            if run.done(progress.protocol) and run.key not in reported:
                reported.add(run.key)
                name = f"seed {run.seed}" + (f", member {run.member}" if run.member else "")
                print_line(f"{title}{name} ({len(reported)} of {total}): {_ending(run)}", err)

    with progress_bar(TextColumn("{task.fields[figures]}")) as bar:
        task = bar.add_task("", total=protocol.max_epochs, figures="")
        yield show


def _which(runs: Sequence[Run]) -> str:
    """The runs that are on their way, in words."""
    from lookhops.training.runs import FINAL

    if runs[0].seed == FINAL:
        return ALL
    names = (f"{run.seed} member {run.member}" if run.member else f"{run.seed}" for run in runs[:3])
    return "seed " + ", ".join(names) + ("…" if len(runs) > 3 else "")


def _ending(run: Run) -> str:
    from lookhops.tasks import TASKS

    best = next(row for row in run.history if row["epoch"] == run.best_epoch)
    said = (
        f" ({task.main.title} {task.main.written(best[name])})"
        for task in TASKS.values()
        if (name := f"val_{task.main.name}") in best
    )
    return (
        f"{counted(len(run.history), 'epoch')}, lowest validation loss {run.best_loss:.3f} in "
        f"epoch {run.best_epoch}{''.join(said)}"
    )


@contextmanager
def stoppable(again: str) -> Iterator[Callable[[], None]]:
    """Make Ctrl-C and SIGTERM wait for the end of the epoch; a second one does not wait.

    Yields a function to call after each epoch: if asked to stop, it raises ``KeyboardInterrupt``,
    which ends the command as the signal would, after a line on how to go on.

    Args:
        again: How to go on.
    """
    asked: list[int] = []

    def ask(number: int, frame: FrameType | None) -> None:
        asked.append(number)
        signal.signal(number, before[signal.Signals(number)])
        err.print("stopping after this epoch; a second Ctrl-C stops at once")

    def check() -> None:
        if asked:
            raise KeyboardInterrupt(asked[0])

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield check
    except KeyboardInterrupt as stop:
        print_line(f"lookhops: interrupted; go on with: {again}", err)
        sys.exit(128 + (stop.args[0] if stop.args else signal.SIGINT))
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
