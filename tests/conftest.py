"""What the tests share: the data folder, a cache folder of their own, the command, Hypothesis."""

import os
import sys
from collections.abc import Callable, Iterator
from functools import cache
from itertools import count
from math import inf
from pathlib import Path

import pytest
import torch
import typer
from hypothesis import HealthCheck, settings

from lookhops.core.options import Architecture, Protocol
from lookhops.graphs import Graphs
from lookhops.models.training import train_into
from lookhops.runs import executor
from lookhops.runs.record import Machine, RunRecord
from lookhops.sources import loading
from lookhops.sources.loading import load

SMALL = Architecture(pool="lookhops", hidden=8, layers=3, ratio=0.7)

settings.register_profile(
    "suite",
    max_examples=25,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
settings.load_profile("suite")

# Typer makes the objects of all commands anew for every call, which takes longer than most calls.
typer.main.get_command = cache(typer.main.get_command)

# RDKit's descriptors of the bundled molecules take longer than most tests of them.
loading.load_solubility = cache(loading.load_solubility)

# What trains in other processes does not follow from how busy the machine is.
executor.WORTH = inf

if "PYTEST_XDIST_WORKER" in os.environ:
    # Workers that each use every core wait for one another at every parallel loop.
    torch.set_num_threads(1)


#: Files whose tests take long begin first, so that no worker is left alone with one of them.
LONGEST = (
    "runs/test_ray.py",
    "fuzz/test_fuzz.py",
    "kill/test_kill.py",
    "models/test_training.py",
    "runs/test_store.py",
    "cli/test_paper.py",
    "ops/test_kernels.py",
    "training/test_fixed_shapes.py",
    "models/test_export.py",
    "cli/test_train_together.py",
    "training/test_stacked.py",
    "models/test_estimators.py",
    "nn/test_light.py",
    "report/test_browser.py",
    "serve/test_browser.py",
    "sources/test_tu.py",
    "training/test_trainer.py",
    "training/test_workers.py",
    "learners/test_models.py",
    "cli/test_look.py",
    "test_examples.py",
    "cli/test_demo.py",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    place = {Path(__file__).parent / name: number for number, name in enumerate(LONGEST)}
    items.sort(key=lambda item: place.get(item.path, len(place)))


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder of TU archives."""
    given = os.environ.get("LOOKHOPS_DATA")
    if not given or not Path(given).is_dir():
        pytest.skip("needs the TU archives: set LOOKHOPS_DATA to their folder")
    return Path(given)


@pytest.fixture(scope="session")
def tasks() -> Graphs:
    """A small set that one hop decides."""
    return load("hops-1", size=80)


@pytest.fixture(scope="session")
def model_folder(tasks: Graphs, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two seeds trained on hop tasks: look, do not touch."""
    folder = tmp_path_factory.mktemp("models") / "hops"
    protocol = Protocol(seeds=(11, 22), max_epochs=4, batch_size=16, learning_rate=0.01)
    train_into(folder, tasks, SMALL, protocol, device="cpu")
    return folder


@pytest.fixture(scope="session")
def molecule_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One seed trained on some molecules."""
    folder = tmp_path_factory.mktemp("models") / "molecules"
    protocol = Protocol(seeds=(11,), max_epochs=2, batch_size=32)
    train_into(folder, load("solubility")[:120], SMALL, protocol, device="cpu")
    return folder


@pytest.fixture(scope="session")
def cache_homes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Names of new folders; pytest's own would look through all earlier ones for each."""
    place = tmp_path_factory.mktemp("caches")
    return (place / str(number) for number in count())


@pytest.fixture(autouse=True)
def cache_home(cache_homes: Iterator[Path], monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache folder for this test alone, so that none is in the user's own."""
    home = next(cache_homes)
    home.mkdir()
    for name in ("XDG_CACHE_HOME", "LOCALAPPDATA", "HOME"):
        monkeypatch.setenv(name, str(home))
    return home


@pytest.fixture
def lookhops(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str, str]]:
    """Run the command in this process: exit code, stdout, stderr."""
    from lookhops.cli import main

    monkeypatch.setenv("COLUMNS", "80")

    def run(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["lookhops", *map(str, arguments)])
        capsys.readouterr()
        try:
            main()
            code = 0
        except SystemExit as stop:
            code = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return run


@pytest.fixture
def make_record():
    """A record as a finished run leaves it, without a run."""

    def make(seed, accuracy=0.5, **metrics):
        known = {
            **dict.fromkeys(("accuracy", "balanced_accuracy", "macro_f1", "auroc"), accuracy),
            **{"loss": 0.6, "val_accuracy": accuracy, "val_loss": 0.6, "epochs": 2},
            **{"best_epoch": 2, "seconds": 1.0, "seconds_per_epoch": 0.5, "parameters": 10},
            **{"train_graphs": 32, "val_graphs": 4, "test_graphs": 4, "seeds_at_once": 1},
        }
        versions = {"lookhops": "0", "torch": "0", "numpy": "0", "python": "0"}
        machine = Machine("test", 1, "cpu")
        history = [{"epoch": 1, "val_loss": 0.7}, {"epoch": 2, "val_loss": 0.6}]
        return RunRecord(seed, {**known, **metrics}, versions, machine, history)

    return make
