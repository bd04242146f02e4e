"""Small sets, small networks and a trained model folder."""

from pathlib import Path

import pytest

from lookhops.datasets import load
from lookhops.graphs import Graphs
from lookhops.models.resumable_training import train_into
from lookhops.nn import Architecture
from lookhops.training import Protocol

SMALL = Architecture(pool="lookhops", hidden=8, layers=3, ratio=0.7)


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
