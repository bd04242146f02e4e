"""Experiments small enough for a test."""

import pytest

from lookhops.datasets import load
from lookhops.experiments.plan import Cell, parse_model
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
