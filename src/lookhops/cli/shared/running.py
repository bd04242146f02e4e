"""What the commands that run experiments share: options, progress, the choice of a runner."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.progress import MofNCompleteColumn

from lookhops.cli.shared.printing import err, print_line, warn
from lookhops.cli.shared.progress import progress_bar
from lookhops.errors import LookHopsError
from lookhops.options import option

if TYPE_CHECKING:
    from lookhops.experiments.plan import Cell
    from lookhops.experiments.runners import PlanRun, Tell
    from lookhops.experiments.store import Store
    from lookhops.graphs import Graphs

RUNNERS = ("local", "ray")


@dataclass(frozen=True)
class Runner:
    """How a plan is run.

    Args:
        device: cpu, cuda, or auto: a GPU where there is one.
        time_limit: Seconds after which no run is begun; 0 shows what is stored. By default none.
        runner: local, or ray: a cluster.
        address: ray: the cluster (``auto``, HOST:PORT); by default one on this machine.
        cpus_per_task: ray: cores that a task takes.
        gpus_per_task: ray: GPUs that a task takes.
    """

    device: str = "auto"
    time_limit: float | None = option(None, least=0)
    runner: str = "local"
    address: str | None = None
    cpus_per_task: float = option(1.0, least=0)
    gpus_per_task: float = option(0.0, least=0)

    def check(self) -> None:
        """Say before anything is run or written that it cannot be run so."""
        from lookhops.training.trainer import choose_device

        if self.runner not in RUNNERS:
            raise LookHopsError(f"The runner is {' or '.join(RUNNERS)}, not {self.runner!r}.")
        if self.runner == "local":
            choose_device(self.device)


Running = Annotated[Runner, "How it is run"]


@dataclass(frozen=True)
class Left:
    """What a plan has left undone, in words.

    Args:
        failures: The runs that failed, and why.
        missing: How many runs are still to be done, if any.
    """

    failures: list[str]
    missing: list[str]

    @property
    def said(self) -> list[str]:
        """All of it."""
        return [*self.failures, *self.missing]

    def tell(self) -> None:
        """Say it on stderr, as a command's last words; failures end it with exit code 1."""
        for sentence in self.said:
            warn(sentence)
        if self.failures:
            raise typer.Exit(1)


def names_in(text: str | None) -> list[str]:
    """Names with commas between."""
    return [name.strip() for name in (text or "").split(",") if name.strip()]


def choose_names(text: str, known: Sequence[str], what: str) -> list[str]:
    """Names with commas between, ``all`` or ``none``, in the order in which they are known."""
    if text in ("all", "none"):
        return list(known) if text == "all" else []
    names = names_in(text)
    for name in names:
        if name not in known:
            raise LookHopsError(
                f"There is no {what} {name!r}; there are {', '.join(known)}, or all, or none."
            )
    return [name for name in known if name in names]


def run_plan(
    cells: Sequence[Cell],
    source: Callable[[str], Graphs],
    store: Store,
    options: Runner,
) -> Left:
    """Run what is missing, with a bar or plain lines on stderr; what is left."""
    options.check()
    limit = inf if options.time_limit is None else options.time_limit
    total = sum(len(cell.protocol.seeds) for cell in cells)
    with progress_bar(MofNCompleteColumn()) as bar:
        task = bar.add_task("runs", total=total)
        done = 0

        def tell(text: str, finished: int) -> None:
            nonlocal done
            done += finished
            bar.update(task, completed=done)
            print_line(f"{text} ({done} of {total} runs)", err)

        outcome = _choose(cells, source, store, options, limit, tell)
    missing = []
    if outcome.left > len(outcome.failures):
        again = "without --time-limit it trains" if limit == 0 else "the same command goes on with"
        missing.append(f"{outcome.left} of {total} runs are missing; {again} them")
    return Left(list(outcome.failures), missing)


def _choose(
    cells: Sequence[Cell],
    source: Callable[[str], Graphs],
    store: Store,
    options: Runner,
    limit: float,
    tell: Tell,
) -> PlanRun:
    shared: dict[str, Any] = {"device": options.device, "time_limit": limit, "tell": tell}
    if options.runner == "local":
        from lookhops.experiments.runners import run_local

        return run_local(cells, source, store, **shared)
    from lookhops.experiments.ray_runner import run_ray

    shared |= {"cpus_per_task": options.cpus_per_task, "gpus_per_task": options.gpus_per_task}
    return run_ray(cells, source, store, address=options.address, **shared)
