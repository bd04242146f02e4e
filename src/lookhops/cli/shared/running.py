"""What the commands that run experiments share: options, progress, the choice of a runner."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Annotated

import typer
from rich.progress import MofNCompleteColumn

from lookhops.cli.shared.printing import err, print_line, warn
from lookhops.cli.shared.progress import progress_bar
from lookhops.core.errors import LookHopsError
from lookhops.core.options import option
from lookhops.core.words import agreeing, counted

if TYPE_CHECKING:
    from lookhops.runs.executor import Executor
    from lookhops.runs.plan import Cell
    from lookhops.runs.store import Store
    from lookhops.training.runs import Event

RUNNERS = ("local", "ray")


@dataclass(frozen=True)
class Runner:
    """How a plan is run.

    Args:
        time_limit: Seconds after which no run is begun; 0 shows what is stored. By default none.
        runner: local, or ray: a cluster.
        processes: local: how many runs are trained at a time, on a GPU how many stacks of them; by
            default one for each core, one on a GPU. 1 for times to report.
        address: ray: the cluster (``auto``, HOST:PORT); by default one on this machine.
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

    def check(self) -> None:
        """Say before anything is run or written that it cannot be run so."""
        from lookhops.training.device import choose_device

        if self.runner not in RUNNERS:
            raise LookHopsError(f"The runner is {' or '.join(RUNNERS)}, not {self.runner!r}.")
        if self.runner == "local":
            choose_device(self.device)

    def executor(self) -> Executor:
        """What trains the runs."""
        if self.runner == "local":
            from lookhops.runs.executor import Local

            return Local(self.device, self.processes)
        from lookhops.runs.ray import Ray

        return Ray(self.address, self.cpus_per_task, self.gpus_per_task, self.device)


Running = Annotated[Runner, "How it is run"]


@dataclass(frozen=True)
class Left:
    """What a plan has left undone.

    Args:
        said: The runs that failed, and why; how many are missing besides.
        failed: Whether any run failed.
    """

    said: Sequence[str] = ()
    failed: bool = False

    def tell(self) -> None:
        """Say it on stderr, as a command's last words; failures end it with exit code 1."""
        for sentence in self.said:
            warn(sentence)
        if self.failed:
            raise typer.Exit(1)


def run_plan(cells: Sequence[Cell], store: Store, options: Runner) -> Left:
    """Run what is missing, with a bar or plain lines on stderr; what is left."""
    from lookhops.runs import executor

    limit = inf if options.time_limit is None else options.time_limit
    total = sum(len(cell.protocol.seeds) for cell in cells)
    with progress_bar(MofNCompleteColumn()) as bar:
        task = bar.add_task("runs", total=total)

        def show(event: Event) -> None:
            if not event.text:
                return
            bar.advance(task, event.finished)
            print_line(
                f"{event.text} ({bar.tasks[0].completed:.0f} of {counted(total, 'run')})", err
            )

        try:
            done = executor.run_plan(
                cells, store, options.executor(), time_limit=limit, on_event=show
            )
        except KeyboardInterrupt:
            if finished := int(bar.tasks[0].completed):
                kept = f"{finished:,} of {counted(total, 'run')} {agreeing(finished, 'is', 'are')}"
                print_line(f"{kept} in the store; the same command goes on.", err)
            raise
    said = list(done.failures)
    if done.left > len(said):
        again = "without --time-limit it trains" if limit == 0 else "the same command goes on with"
        said.append(
            f"{done.left} of {counted(total, 'run')} {agreeing(done.left, 'is', 'are')} missing; "
            f"{again} {agreeing(done.left, 'it', 'them')}"
        )
    return Left(said, failed=bool(done.failures))
