"""How a command runs: what it shows meanwhile, how it is stopped, and plans of experiments."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import inf
from types import FrameType
from typing import TYPE_CHECKING, Annotated

import typer
from rich import progress as rich

from lookhops.cli.shared.output import err, remark, warn
from lookhops.core.errors import LookHopsError
from lookhops.core.schema import option
from lookhops.core.words import agreeing, counted

if TYPE_CHECKING:
    from lookhops.graphs import Graphs
    from lookhops.runs.executor import Executor
    from lookhops.runs.plan import Cell
    from lookhops.runs.store import Store
    from lookhops.sources.splits import SplitPlan
    from lookhops.training import Protocol
    from lookhops.training.runs import Epoch, Event, Run

#: Seconds between two lines where there is no terminal.
QUIET = 30.0
#: What the networks are called that are trained on all graphs.
ALL = "all graphs"


def progress_bar(*columns: rich.ProgressColumn) -> rich.Progress:
    """A bar on stderr, where someone sees it: what is done, the bar, ``columns``, the time."""
    before = (rich.TextColumn("{task.description}"), rich.BarColumn(bar_width=20))
    parts = (*before, *columns, rich.TimeElapsedColumn())
    return rich.Progress(*parts, console=err, transient=True, disable=not err.is_terminal)


def tell_remarks(graphs: Graphs, plan: SplitPlan) -> None:
    """Warn of parts with few graphs of a class, before the training begins."""
    for text in plan.remarks(graphs):
        warn(text)


@contextmanager
def epoch_display(protocol: Protocol, fitting: str) -> Iterator[Callable[[Epoch], None]]:
    """A function that shows an epoch in a bar, or without a terminal by a line now and then.

    A line reports each finished run. ``fitting`` is what is fitted where there are no epochs.
    """
    reported: set[str] = set()
    going_on: dict[str, list[Run]] = {}  # of each stack: some may be trained side by side
    total = len(protocol.seeds) * protocol.members
    spoken = time.monotonic()

    def show(progress: Epoch) -> None:
        nonlocal spoken
        unfinished = [run for run in progress.runs if not run.done(progress.protocol)]
        going_on[progress.runs[0].key] = unfinished
        going = [run for runs in going_on.values() for run in runs] or progress.runs
        last = [run.history[-1] for run in going]
        epoch = max(len(run.history) for run in going)
        figures = f"epoch {epoch}"
        for name, key in (("train", "train_loss"), ("validation", "val_loss")):
            if key in last[0]:  # there is nothing to stop by where all graphs are trained on
                figures += f"  {name} {sum(row[key] for row in last) / len(last):.3f}"
        which = _which(going)
        bar.update(task, completed=epoch, description=which, figures=figures)
        if not err.is_terminal and time.monotonic() - spoken > QUIET:
            spoken = time.monotonic()
            remark(f"{which}: {figures}")
        for run in progress.runs if which != ALL else ():
            if run.done(progress.protocol) and run.key not in reported:
                reported.add(run.key)
                name = f"seed {run.seed}" + (f", member {run.member}" if run.member else "")
                remark(f"{name} ({len(reported)} of {total}): {_ending(run)}")

    with progress_bar(rich.TextColumn("{task.fields[figures]}")) as bar:
        total_epochs = None if fitting else protocol.max_epochs
        task = bar.add_task(fitting, total=total_epochs, figures="")
        yield show


def _which(runs: Sequence[Run]) -> str:
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

    Yields a function to call after each epoch: if asked to stop, it ends the command as the signal
    would, after a line on how to go on (``again``).
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
        remark(f"lookhops: interrupted; go on with: {again}")
        sys.exit(128 + (stop.args[0] if stop.args else signal.SIGINT))
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


RUNNERS = ("local", "ray")


@dataclass(frozen=True)
class Runner:
    """How a plan is run.

    Args:
        time_limit: Seconds after which no run is begun; 0 shows what is stored. By default none.
        runner: local, or ray: a cluster.
        processes: local: how many runs are trained at a time, on a GPU how many stacks of them; by
            default one for each core, one on a GPU. 1 for times to report.
        cpus_per_task: ray: cores that a task takes.
        gpus_per_task: ray: GPUs that a task takes.
    """

    device: str = "auto"
    time_limit: float | None = option(None, least=0)
    runner: str = "local"
    processes: int | None = option(None, least=1)
    address: str | None = None
    cpus_per_task: float = option(1.0, least=0)
    gpus_per_task: float = option(0.0, least=0)

    def executor(self) -> Executor:
        """What trains the runs; what cannot be run so is refused before anything is written."""
        if self.runner not in RUNNERS:
            raise LookHopsError(f"The runner is {' or '.join(RUNNERS)}, not {self.runner!r}.")
        if self.runner == "ray":
            from lookhops.runs.ray import Ray

            return Ray(self.address, self.cpus_per_task, self.gpus_per_task, self.device)
        from lookhops.runs.executor import Local

        return Local(self.device, self.processes)


Running = Annotated[Runner, "How it is run"]


@dataclass
class Left:
    """What plans have left undone."""

    #: The runs that failed, and why; how many are missing besides.
    said: list[str] = field(default_factory=list)
    failed: bool = False

    def tell(self) -> None:
        """Say it on stderr, as a command's last words; failures end it with exit code 1."""
        for sentence in self.said:
            warn(sentence)
        if self.failed:
            raise typer.Exit(1)


def run_plan(
    cells: Sequence[Cell], store: Store, executor: Executor, time_limit: float | None, left: Left
) -> None:
    """Run what is missing, with a bar or plain lines on stderr, and note what is left."""
    from lookhops.runs import executor as executors

    total = sum(len(cell.protocol.seeds) for cell in cells)
    with progress_bar(rich.MofNCompleteColumn()) as bar:
        task = bar.add_task("runs", total=total)

        def show(event: Event) -> None:
            if event.text:
                bar.advance(task, event.finished)
                done = f"{bar.tasks[0].completed:.0f} of {counted(total, 'run')}"
                remark(f"{event.text} ({done})")

        limit = inf if time_limit is None else time_limit
        try:
            found = executors.run_plan(cells, store, executor, time_limit=limit, on_event=show)
        except KeyboardInterrupt:
            if finished := int(bar.tasks[0].completed):
                kept = f"{finished:,} of {counted(total, 'run')} {agreeing(finished, 'is', 'are')}"
                remark(f"{kept} in the store; the same command goes on.")
            raise
    left.said += found.failures
    left.failed |= bool(found.failures)
    if found.left > len(found.failures):
        again = "without --time-limit it trains" if limit == 0 else "the same command goes on with"
        left.said.append(
            f"{found.left} of {counted(total, 'run')} {agreeing(found.left, 'is', 'are')} missing; "
            f"{again} {agreeing(found.left, 'it', 'them')}"
        )
