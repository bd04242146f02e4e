"""Functions are called in other processes, which may tell of what they do on their way."""

import os
from pathlib import Path

import pytest

from lookhops.core.errors import LookHopsError
from lookhops.runs import processes
from lookhops.runs.processes import CannotStart, Processes
from lookhops.sources.loading import load


@pytest.fixture(scope="module")
def graphs():
    return load("solubility")[:5]


@pytest.fixture(scope="module")
def pool():
    with Processes(1, environment={"LOOKHOPS_TEST": "there"}) as pool:
        yield pool


def test_any_function_is_called_there(pool, graphs):
    assert pool.call(len, graphs).result() == len(graphs)
    assert pool.call(getattr, graphs, "name").result() == graphs.name
    assert pool.call(environment, graphs, "LOOKHOPS_TEST").result() == "there"
    assert pool.started


def test_a_function_tells_and_is_asked(pool, graphs):
    found = []

    def listen(said, ask):
        found.append((said, ask("twice") if said == "second" else None))

    task = pool.call(tells, graphs, ["first", "second", "third"], listen=listen)
    assert task.result() == 5
    assert found == [("first", None), ("second", "secondsecond"), ("third", None)]


def test_what_the_listener_raises_ends_it_and_nothing_else(pool, graphs):
    class Halt(Exception):
        pass

    def listen(said, ask):
        raise Halt(said)

    with pytest.raises(Halt, match="first"):
        pool.call(tells, graphs, ["first", "second"], listen=listen).result()
    with pytest.raises(OSError, match="disk"):
        pool.call(tells, graphs, ["a"], listen=lambda said, ask: full()).result()
    assert pool.call(len, graphs).result() == len(graphs)


def test_a_sentence_leaves_the_process_alive(pool, graphs):
    pool.call(len, graphs).result()
    before = pool._idle[-1]
    with pytest.raises(LookHopsError, match="refused"):
        pool.call(refuses, graphs).result()
    assert pool._idle == [before]
    assert pool.call(len, graphs).result() == len(graphs)


def test_where_none_can_be_started_that_is_said(graphs, monkeypatch):
    def none(environment):
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(processes, "_Process", none)
    with Processes(1) as pool, pytest.raises(CannotStart):
        pool.call(len, graphs).result()


def test_any_other_error_comes_back_with_where_it_was_raised(pool, graphs):
    with pytest.raises(FileNotFoundError, match="nowhere") as found:
        pool.call(opens, graphs, "nowhere").result()
    assert "in opens" in found.value.__notes__[0]
    with pytest.raises(RuntimeError, match="Odd"):  # which cannot be sent as it is
        pool.call(odd, graphs).result()
    assert pool.call(len, graphs).result() == len(graphs)


def environment(graphs, name):
    return os.environ.get(name)


def tells(graphs, words, tell):
    for word in words:
        tell(word, lambda question, word=word: 2 * word)
    return len(graphs)


def refuses(graphs):
    raise LookHopsError("refused")


def full():
    raise OSError(28, "the disk is full")


def opens(graphs, name):
    return Path(name).read_text()


def odd(graphs):
    class Odd(Exception):
        pass

    raise Odd("of this function alone")
