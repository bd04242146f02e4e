"""A process that runs a command in forked children, each killed before another of its steps.

    LD_PRELOAD=faults.so python killing.py FOLDER SCENARIO...

A step is a rename, an unlink or an fsync (faults.c). After every kill the old result or the new one
must be whole, and going on must end as if nothing had happened. Everything is imported and warm
before children are forked. Prints how many kills there were in each scenario.
"""

import ctypes
import os
import shutil
import signal
import sys
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import torch
import typer
from matplotlib.figure import Figure
from rich.console import Console

torch.set_num_threads(1)  # before anything runs: a forked child must not miss its threads

from lookhops import cli  # noqa: E402
from lookhops.core import files  # noqa: E402
from lookhops.core.errors import LookHopsError  # noqa: E402
from lookhops.models import Predictor  # noqa: E402
from lookhops.models.config import CONFIG, PREDICTIONS  # noqa: E402
from lookhops.runs.results import Results  # noqa: E402
from lookhops.runs.store import Store  # noqa: E402
from lookhops.runs.tune.tuning import read_tuning  # noqa: E402
from lookhops.tasks import metrics  # noqa: E402

# What takes long and changes no file: Typer makes the objects of all commands anew for every call,
# tables are laid out and figures drawn, and intervals come from a thousand resamples.
typer.main.get_command = cache(typer.main.get_command)
Console.print = lambda console, *what, **options: None  # type: ignore
Figure.savefig = lambda figure, path, **options: Path(path).write_text("a figure")  # type: ignore
metrics.bootstrap_auroc.__defaults__ = (10,)

FAULTS = ctypes.CDLL(os.environ["LD_PRELOAD"])
DATA = ("hops-1", "--task-size", "40")
TRAIN = ("--hidden", "4", "--layers", "2", "--epochs", "2", "--device", "cpu", "--save-every", "0")


def command(*words: object) -> None:
    """Run the command in this process, without a word."""
    sys.argv = ["lookhops", *map(str, words)]
    try:
        cli.main()
    except SystemExit as stop:
        if stop.code:
            raise


def forked(action: Callable[[], None], kill_at: int = 0) -> tuple[bool, int]:
    """Whether a child that does this was killed, and how many steps it took."""
    get, put = os.pipe()
    if (pid := os.fork()) == 0:
        code = 1
        try:
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, 1)
            FAULTS.faults_arm(kill_at)
            action()
            os.write(put, str(FAULTS.faults_seen()).encode())
            code = 0
        finally:
            os._exit(code)
    os.close(put)
    _, status = os.waitpid(pid, 0)
    with os.fdopen(get) as pipe:
        steps = int(pipe.read() or 0)
    killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
    assert killed or status == 0, f"ended with {status} at step {kill_at}"
    return killed, steps


@dataclass(frozen=True)
class Scenario:
    """A command to kill.

    Args:
        before: Makes what is there before it.
        run: The command.
        go_on: What a user does after the kill.
        seen: What a user sees in a folder; none where there is no result.
        every: Kill before each n-th step only, where there are many.
    """

    before: Callable[[Path], None]
    run: Callable[[Path], None]
    go_on: Callable[[Path], None]
    seen: Callable[[Path], Any]
    every: int = 1


def check(scenario: Scenario, folder: Path) -> int:
    """Kill the command before each of its steps; how many there are."""
    start, end, here = (folder / name / "x" for name in ("start", "end", "here"))
    start.mkdir(parents=True)
    scenario.before(start)
    shutil.copytree(start, folder / "warm")
    scenario.run(folder / "warm")  # children need not import anything
    shutil.copytree(start, here)
    _, steps = forked(lambda: scenario.run(here))
    shutil.move(here, end)  # where it ran stands in a report
    old, new = scenario.seen(start), scenario.seen(end)
    assert old != new
    for step in range(1, steps + 1, scenario.every):
        shutil.copytree(start, here)
        killed, _ = forked(lambda: scenario.run(here), step)
        assert killed, f"step {step} of {steps} was not reached"
        assert scenario.seen(here) in (old, new), f"after step {step}: neither old nor new"
        forked(lambda: scenario.go_on(here))
        assert scenario.seen(here) == new, f"went on after step {step} to another end"
        assert not list(here.rglob("*.part")), f"left-over files after step {step}"
        shutil.rmtree(here)
    return len(range(1, steps + 1, scenario.every))


# -------------------------------------------------------------------- what a user sees


def model(folder: Path) -> Any:
    """A model's weights and predictions; none where there is no model."""
    path = folder / "model"
    if not files.current(path / CONFIG).is_file():
        return None
    found = Predictor(path, "cpu")
    weights = [
        {name: value.tolist() for name, value in member.tensors().items()}
        for members in found.fitted.values()
        for member in members
    ]
    return weights, files.read_bytes(path / PREDICTIONS)


def comparison(folder: Path) -> Any:
    """The accuracies in the files that go together, which must agree; the store must be sound."""
    with Store(folder / "comparison.sqlite") as store:
        seeds = [(cell.key, run.seed) for cell in store.cells() for run in cell.runs]
    assert len(set(seeds)) == len(seeds)
    path = folder / "out" / "runs.json"
    if not files.current(path).is_file():
        return None
    found = Results.from_json(files.current(path))
    runs = [(c.model, run.seed, run.metrics["loss"]) for c in found.cells for run in c.runs]
    rows = files.read_bytes(folder / "out" / "runs.csv").decode().splitlines()
    assert len(rows) == len(runs) + 1
    return runs


def one_file(name: str) -> Callable[[Path], Any]:
    """The content of a file."""
    return lambda folder: (folder / name).read_bytes() if (folder / name).exists() else None


# -------------------------------------------------------------------- the commands


def train(*options: object) -> Callable[[Path], None]:
    return lambda folder: command("train", *DATA, "-o", folder / "model", *TRAIN, *options)


def interrupted(folder: Path) -> None:
    """A training that ended after its first epoch."""
    from lookhops.cli import train as module

    real = module._tensorboard

    def log(progress: Any) -> None:
        raise LookHopsError("stop here")

    module._tensorboard = lambda given: nullcontext(log)
    try:
        train()(folder)
    except SystemExit:
        pass
    finally:
        module._tensorboard = real


def compare(seeds: str) -> Callable[[Path], None]:
    rest = ("--models", "gcn/hidden=4/layers=1", "--epochs", "1", "--device", "cpu")
    return lambda folder: command(
        *("compare", *DATA, "-o", folder / "out", "--store", folder / "comparison.sqlite"),
        *("--processes", 1),
        *("--seeds", seeds, *rest),
    )


def tune(trials: int) -> Callable[[Path], None]:
    options = ("--seeds", "11,", "--trials", trials, "--stack", 1, "--inner", 1)
    space = "conv=gcn/layers=1/hidden=4/pool=none/fingerprint=none/k=1/readout=max+mean"
    training = ("--space", space, "--epochs", "1", "--device", "cpu")
    return lambda folder: command("tune", *DATA, "-o", folder / "model", *options, *training)


def tuning(folder: Path) -> Any:
    """What was tried, chosen and gained, and the model; none before all of it is there."""
    found = read_tuning(folder / "model")
    if found is None or (trained := model(folder)) is None:
        return None
    tried = [(one.name, one.value) for search in found.searches for one in search.tried]
    return tried, found.tuned, found.recommended, trained


def report(folder: Path) -> None:
    command("report", folder / "model", "-o", folder / "report.html")


def convert(*size: str) -> Callable[[Path], None]:
    return lambda folder: command("data", "convert", DATA[0], folder / "a.graphs", *size)


def nothing(folder: Path) -> None:
    pass


def reported(folder: Path) -> None:
    train()(folder)
    (folder / "report.html").write_text("an older page")


anew = train("--seeds", "22,", "--overwrite")
SCENARIOS = {
    "train": Scenario(nothing, train(), train("--resume"), model),
    "train --resume": Scenario(interrupted, train("--resume"), train("--resume"), model),
    "train --overwrite": Scenario(train("--k", "auto"), anew, anew, model),
    "compare": Scenario(compare("11,"), compare("22,"), compare("22,"), comparison),
    "tune": Scenario(nothing, tune(2), tune(2), tuning, every=7),
    "data convert": Scenario(
        *(convert("--task-size", "30"), convert(*DATA[1:]), convert(*DATA[1:])),
        one_file("a.graphs"),
    ),
    "report": Scenario(reported, report, report, one_file("report.html")),
}

if __name__ == "__main__":
    folder, *names = sys.argv[1:]
    kills = [check(SCENARIOS[name], Path(folder) / name) for name in names]
    print(*kills)
