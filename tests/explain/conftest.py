"""Small models of every kind of answer, trained for a moment."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from lookhops import Graphs
from lookhops.core.options import RECOMMENDED, Architecture, Protocol
from lookhops.models.predictor import Predictor
from lookhops.models.training import train_into
from lookhops.sources.bundled import load_solubility

SMALL = replace(RECOMMENDED, hidden=8, layers=3, fingerprint=2)


@pytest.fixture(scope="session")
def molecules() -> Graphs:
    """Sixty molecules in three classes."""
    pytest.importorskip("rdkit")
    return load_solubility()[:60]


@pytest.fixture(scope="session")
def trained(
    tmp_path_factory: pytest.TempPathFactory,
) -> Callable[..., Predictor]:
    """Trains a small model."""

    def train(graphs: Graphs, architecture: Architecture = SMALL, **options: object) -> Predictor:
        folder: Path = tmp_path_factory.mktemp("explained")
        protocol = Protocol(
            **{"seeds": (11,), "max_epochs": 3, "batch_size": 16, "learning_rate": 0.01, **options}
        )
        train_into(folder, graphs, architecture, protocol, device="cpu")
        return Predictor(folder, "cpu")

    return train


@pytest.fixture(scope="session")
def of_classes(trained: Callable[..., Predictor], molecules: Graphs) -> Predictor:
    """Three classes of molecules, two seeds."""
    return trained(molecules, seeds=(11, 22))
