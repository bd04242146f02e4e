"""Worker processes that parse molecules: the same as here, in order, whatever becomes of one."""

import os
import signal
import subprocess
import sys

import numpy as np
import pytest

from deadly import Deadly, Endless, Uninstalling
from lookhops import LookHopsError
from lookhops.sources.loading import load
from lookhops.sources.rdkit import workers
from lookhops.sources.rdkit.parsing import Parsed, Parsing, parse
from lookhops.sources.rdkit.workers import CRASHED, HUNG, ParsingPool


@pytest.fixture(scope="module")
def pool():
    with ParsingPool(2) as pool:
        yield pool


def assert_same(found: Parsed, want: Parsed) -> None:
    assert found.smiles == want.smiles
    assert found.canonical == want.canonical
    assert found.failures == want.failures
    assert np.array_equal(found.rows, want.rows)
    for name, array in want.arrays.items():
        assert np.array_equal(found.arrays[name], array)


def parse_in(pool: ParsingPool, texts: list[str], size: int = 50) -> Parsed:
    """What a pool says of texts, so many of them in a chunk."""
    return Parsed.join(list(pool.map(texts[i : i + size] for i in range(0, len(texts), size))))


def test_workers_say_what_would_be_said_here(pool):
    texts = [*load("solubility").columns["smiles"][:400], "C(", ""]
    assert_same(parse_in(pool, texts), parse(texts, Parsing()))
    assert not list(pool.map([]))


def test_no_more_than_a_few_chunks_are_read_ahead(pool):
    read = 0

    def chunks():
        nonlocal read
        for read in range(1, 101):  # noqa: B007
            yield ["CCO"]

    found = pool.map(chunks())
    next(found)
    assert read <= 2 * pool.processes + 1
    assert sum(1 for _ in found) == 99


def test_a_molecule_that_ends_its_worker_is_found_and_the_others_are_parsed(pool):
    chunks = [["CCO", "C"], ["CC", "CN", Deadly("CCC"), "CO"], ["N"], [Deadly("O")], ["CF", "CCl"]]
    found = list(pool.map(chunks))
    assert [one.count for one in found] == [2, 4, 1, 1, 2]
    assert found[1].smiles == ["CC", "CN", "CO"]
    assert found[1].failures == [(2, CRASHED)]
    assert found[3].failures == [(0, CRASHED)]
    assert found[4].smiles == ["CF", "CCl"]


def test_a_molecule_that_takes_too_long_is_found_and_the_others_are_parsed(pool, monkeypatch):
    monkeypatch.setattr(workers, "SECONDS", 0.2)
    chunks = [
        ["CCO", Endless("C"), "CN"],
        ["CC"],
        [Endless("O")],
        [Deadly("N"), "CF", Endless("F")],
    ]
    found = list(pool.map(chunks))
    assert [one.smiles for one in found] == [["CCO", "CN"], ["CC"], [], ["CF"]]
    failures = [one.failures for one in found]
    assert failures == [[(1, HUNG)], [], [(0, HUNG)], [(0, CRASHED), (2, HUNG)]]


def test_many_crash_at_once(pool):
    texts = [Deadly("CC") if i % 3 == 0 else f"C{'C' * i}" for i in range(24)]
    found = parse_in(pool, texts, 4)
    assert found.rows.tolist() == [i for i in range(24) if i % 3]
    assert found.smiles == [text for text in texts if not isinstance(text, Deadly)]
    assert found.failures == [(i, CRASHED) for i in range(0, 24, 3)]


def test_a_worker_that_somebody_kills_costs_nothing(pool):
    assert parse_in(pool, ["CCO"]).smiles == ["CCO"]
    for worker in pool.workers:
        os.kill(worker.process.pid, signal.SIGKILL)
    assert_same(parse_in(pool, ["CCO", "CN"]), parse(["CCO", "CN"], Parsing()))


def test_chunks_and_answers_may_be_larger_than_a_pipe_holds(pool):
    for found in pool.map([["CCO"] * 1000 + ["C" * 5000] * 100 for _ in range(5)]):
        assert (len(found.smiles), len(found.failures)) == (1000, 100)


def test_an_error_of_a_worker_is_the_callers():
    with (
        ParsingPool(1) as pool,
        pytest.raises(LookHopsError, match="rdkit"),
    ):
        parse_in(pool, [Uninstalling("C")])


def test_without_processes_it_is_parsed_here():
    with ParsingPool(0) as pool:
        pool.warm_up()
        assert parse_in(pool, ["CCO"]).smiles == ["CCO"]
        assert not pool.workers


def test_where_no_process_can_be_started_it_is_parsed_here(monkeypatch):
    def start(context):
        raise OSError("no")

    monkeypatch.setattr(workers, "Worker", start)
    with ParsingPool(2) as pool:
        pool.warm_up()
        assert parse_in(pool, ["CCO"]).smiles == ["CCO"]


def test_a_script_without_a_main_guard_is_told_so(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "from lookhops.sources.rdkit.parsing import Parsing\n"
        "from lookhops.sources.rdkit.workers import ParsingPool\n"
        "next(ParsingPool(1).map([['C']]))\n"
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True)
    assert done.returncode == 1
    assert "keeps what it runs below" in done.stderr.splitlines()[-1]


def test_workers_need_no_pytorch():
    code = "import sys, lookhops.sources.rdkit.workers, rdkit.Chem\n"
    code += "assert not {'torch', 'pandas', 'scipy'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
