"""Experiments small enough for a test."""

import pytest

from lookhops.learners import parse_model
from lookhops.runs.executor import Local, run_plan
from lookhops.runs.plan import Cell
from lookhops.runs.store import Store
from lookhops.sources.loading import load
from lookhops.training import Protocol

TINY = Protocol(seeds=(1, 2, 3), batch_size=64, max_epochs=1)


@pytest.fixture(scope="session")
def graphs():
    return load("hops-1", size=40)


@pytest.fixture
def cells(graphs):
    """Two tiny models, three seeds each."""
    models = ("gcn/hidden=4/layers=1", "licheb/hidden=4/layers=1")
    return [Cell(graphs, name, parse_model(name), TINY) for name in models]


@pytest.fixture
def run(graphs, tmp_path):
    """Run cells into a store: the finished plan, the events, the results."""

    def run(cells, **options):
        events = []
        with Store(tmp_path / "runs.sqlite") as store:
            options["on_event"] = lambda event: (
                events.append((event.text, event.finished)) if event.text else None
            )
            executor = Local("cpu", options.pop("processes", 1))
            outcome = run_plan(cells, store, executor, **options)
            return outcome, events, store.collect(cells)

    return run
