"""The runner of this machine."""

import pytest

from lookhops.core.errors import LookHopsError
from lookhops.runs import executor
from lookhops.runs.executor import Local, run_plan
from lookhops.runs.store import Store
from lookhops.training import train


def test_what_is_stored_is_what_training_gives(run, cells, graphs):
    outcome, events, found = run(cells)
    assert (outcome.trained, outcome.found, outcome.left) == (6, 0, 0)
    assert sum(finished for _, finished in events) == 6
    for cell, result in zip(cells, found, strict=True):
        runs = train(graphs, cell.architecture, cell.protocol, device="cpu")
        for i, one in enumerate(runs):
            right = one.predictions["test"].argmax(1) == graphs.y[one.split.test]
            assert result.metrics["accuracy"][i] == pytest.approx(right.double().mean().item())
            assert result.metrics["parameters"][i] == sum(w.numel() for w in one.weights.values())
        assert result.seeds == (1, 2, 3)
        assert result.test_to_train == 4 / 32


def test_a_second_run_trains_nothing(run, cells, monkeypatch):
    run(cells[:1])
    outcome, events, _ = run(cells)
    assert (outcome.trained, outcome.found) == (3, 3)
    assert not any("another process" in text for text, _ in events)
    monkeypatch.setattr(executor, "train_records", lambda *_: pytest.fail("trained again"))
    outcome, events, _ = run(cells)
    assert (outcome.trained, outcome.found, outcome.left) == (0, 6, 0)
    assert "6 runs were in the store" in events[0][0]


def test_the_time_limit_begins_nothing_new(run, cells):
    outcome, _, found = run(cells, time_limit=0)
    assert (outcome.trained, outcome.left, found) == (0, 6, [])


def test_each_seed_is_stored_when_it_is_finished(run, cells, monkeypatch):
    train_records = executor.train_records

    def interrupted(cell, seeds, *rest):
        if seeds == [3]:
            raise KeyboardInterrupt
        return train_records(cell, seeds, *rest)

    monkeypatch.setattr(executor, "train_records", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run(cells)
    monkeypatch.undo()
    outcome, _, _ = run(cells)
    assert (outcome.found, outcome.trained, outcome.left) == (2, 4, 0)


def test_a_failure_is_told_and_the_rest_goes_on(run, cells, monkeypatch):
    train_records = executor.train_records

    def failing(cell, seeds, *rest):
        if 2 in seeds and cell == cells[0]:
            raise LookHopsError("The loss was not a number.\nMore of it.")
        return train_records(cell, seeds, *rest)

    monkeypatch.setattr(executor, "train_records", failing)
    outcome, _, _ = run(cells)
    assert (outcome.trained, outcome.left) == (5, 1)
    assert outcome.failures == [f"hops-1, {cells[0].model}, seed 2: The loss was not a number."]


def test_a_stack_that_fails_is_tried_seed_by_seed(cells, tmp_path, monkeypatch, make_record):
    """On a GPU the seeds of a cell are one call; one bad seed costs only itself."""
    calls = []

    def stacked(cell, seeds, *rest):
        calls.append(list(seeds))
        if 2 in seeds:
            raise LookHopsError("bad")
        return [make_record(seed) for seed in seeds]

    monkeypatch.setattr(executor, "train_records", stacked)
    monkeypatch.setattr(
        executor, "choose_device", lambda device: type("Device", (), {"type": "cuda"})
    )
    with Store(tmp_path / "runs.sqlite") as store:
        outcome = run_plan(cells[:1], store, Local("cpu"))
    assert calls == [[1, 2, 3], [1], [2], [3]]
    assert (outcome.trained, outcome.left, len(outcome.failures)) == (2, 1, 1)
