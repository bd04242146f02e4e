"""What the commands that run experiments share: options, progress, the choice of a runner."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from lookhops.cli.common import err, warn
from lookhops.errors import LookHopsError

if TYPE_CHECKING:
    from lookhops.experiments.plan import Cell
    from lookhops.experiments.runners import PlanRun, Tell
    from lookhops.experiments.store import Store
    from lookhops.graphs import Graphs

RUNNERS = ("local", "ray")


def _option(help: str, **rest: Any) -> Any:
    return typer.Option(help=help, rich_help_panel="How it is run", **rest)


@dataclass(frozen=True)
class RunOptions:
    """How a plan is run, a group for :func:`~lookhops.cli.groups.with_groups`."""

    device: Annotated[str, _option("cpu, cuda, or auto: a GPU where there is one.")] = "auto"
    time_limit: Annotated[
        float | None,
        _option(
            "Seconds after which no run is begun; 0 shows what is stored.",
            min=0,
            show_default="none",
        ),
    ] = None
    runner: Annotated[str, _option("local, or ray: a cluster.")] = "local"
    address: Annotated[
        str | None,
        _option("ray: the cluster (`auto`, HOST:PORT).", show_default="one on this machine"),
    ] = None
    cpus_per_task: Annotated[float, _option("ray: cores that a task takes.", min=0)] = 1.0
    gpus_per_task: Annotated[float, _option("ray: GPUs that a task takes.", min=0)] = 0.0

    def check(self) -> None:
        """Say before anything is run or written that it cannot be run so."""
        from lookhops.training.trainer import choose_device

        if self.runner not in RUNNERS:
            raise LookHopsError(f"The runner is {' or '.join(RUNNERS)}, not {self.runner!r}.")
        if self.runner == "local":
            choose_device(self.device)


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


def split_names(text: str, known: Sequence[str], what: str) -> list[str]:
    """Names with commas between, ``all`` or ``none``, in the order in which they are known."""
    if text in ("all", "none"):
        return list(known) if text == "all" else []
    names = [name.strip() for name in text.split(",") if name.strip()]
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
    options: RunOptions,
) -> Left:
    """Run what is missing, with a bar or plain lines on stderr; what is left."""
    options.check()
    limit = inf if options.time_limit is None else options.time_limit
    total = sum(len(cell.protocol.seeds) for cell in cells)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(
        *columns, TimeElapsedColumn(), console=err, transient=True, disable=not err.is_terminal
    ) as bar:
        task = bar.add_task("runs", total=total)
        done = 0

        def tell(text: str, finished: int) -> None:
            nonlocal done
            done += finished
            bar.update(task, completed=done)
            err.print(f"{escape(text)} ({done} of {total} runs)", soft_wrap=True)

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
    options: RunOptions,
    limit: float,
    tell: Tell,
) -> PlanRun:
    if options.runner == "local":
        from lookhops.experiments.runners import run_local

        return run_local(cells, source, store, device=options.device, time_limit=limit, tell=tell)
    from lookhops.experiments.ray_runner import run_ray

    return run_ray(
        cells,
        source,
        store,
        address=options.address,
        cpus_per_task=options.cpus_per_task,
        gpus_per_task=options.gpus_per_task,
        device=options.device,
        time_limit=limit,
        tell=tell,
    )
