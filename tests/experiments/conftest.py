"""Experiments small enough for a test."""

import pytest

from lookhops.datasets import load
from lookhops.experiments.plan import Cell, parse_model
from lookhops.experiments.records import Record
from lookhops.training import Protocol

TINY = Protocol(seeds=(1, 2, 3), batch_size=64, max_epochs=1)


@pytest.fixture(scope="session")
def graphs():
    return load("hops-1", size=40)


@pytest.fixture
def cells():
    """Two tiny models, three seeds each."""
    models = ("gcn/hidden=4/layers=1", "licheb/hidden=4/layers=1")
    return [Cell("hops-1", name, parse_model(name), TINY) for name in models]


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
        machine = {"system": "test", "cores": 1, "device": "cpu"}
        history = [{"epoch": 1, "val_loss": 0.7}, {"epoch": 2, "val_loss": 0.6}]
        return Record(seed, {**known, **metrics}, history, versions, machine)

    return make
