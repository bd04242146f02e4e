"""Runs side by side in processes of their own: the same runs, whatever becomes of one process."""

from dataclasses import replace

import pytest

from lookhops.core.errors import LookHopsError
from lookhops.runs import executor
from lookhops.runs.executor import train_records, train_sent
from lookhops.runs.processes import Processes


@pytest.fixture(scope="module")
def pool():
    with Processes(2) as pool:
        yield pool


def submit(pool, cell, seeds):
    return pool.call(train_sent, cell.graphs, cell.without_graphs(), seeds, "cpu")


def figures(record):
    timed = ("seconds", "seconds_per_epoch", "peak_memory")
    return {name: value for name, value in record.metrics.items() if name not in timed}


def test_the_records_are_those_of_this_process(pool, cells):
    begun = [(cell, seed, submit(pool, cell, [seed])) for cell in cells for seed in (1, 2)]
    for cell, seed, task in begun:
        [theirs], [ours] = task.result(), train_records(cell, [seed], "cpu")
        assert theirs.seed == seed
        assert figures(theirs) == figures(ours)


def test_a_sentence_comes_back_and_a_dead_process_costs_one_run(pool, cells):
    bad = replace(cells[0], architecture=replace(cells[0].architecture, conv="nowhere"))
    with pytest.raises(LookHopsError, match="nowhere"):
        submit(pool, bad, [1]).result()
    process = pool._idle[-1]
    process.process.kill()
    process.process.join()
    with pytest.raises(LookHopsError, match="--processes"):
        submit(pool, cells[0], [1]).result()
    assert submit(pool, cells[0], [1]).result()[0].seed == 1


def test_a_plan_goes_to_processes_where_that_pays(pool, run, cells, monkeypatch):
    monkeypatch.setattr(executor, "Processes", lambda *rest: pool)
    monkeypatch.setattr(type(pool), "__exit__", lambda *rest: None)
    monkeypatch.setattr(executor, "train_records", lambda *rest: pytest.fail("trained here"))
    monkeypatch.setattr(executor, "WORTH", -1.0)
    outcome, _, found = run(cells, processes=2)
    assert (outcome.trained, outcome.left, len(found)) == (6, 0, 2)
    assert found[0].seeds == (1, 2, 3)


def test_a_short_plan_stays_here(run, cells, monkeypatch):
    monkeypatch.setattr(Processes, "call", lambda *rest: pytest.fail("trained elsewhere"))
    outcome, _, _ = run(cells, processes=2)
    assert outcome.trained == 6
