"""Worker processes that parse molecules: the same as here, in order, whatever becomes of one."""

import subprocess
import sys

import numpy as np
import pytest

from deadly import Deadly
from lookhops.datasets import load
from lookhops.molecules import workers
from lookhops.molecules.parsing import Parsed, Parsing, parse
from lookhops.molecules.workers import CRASHED, ParsingPool


@pytest.fixture(scope="module")
def pool():
    with ParsingPool(Parsing(), 2) as pool:
        yield pool


def assert_same(found: Parsed, want: Parsed) -> None:
    assert found.smiles == want.smiles
    assert found.canonical == want.canonical
    assert found.failures == want.failures
    for name in ("rows", "atom_counts", "atoms", "bond_counts", "bonds"):
        assert np.array_equal(getattr(found, name), getattr(want, name))


def test_workers_say_what_would_be_said_here(pool, monkeypatch):
    monkeypatch.setattr(workers, "CHUNK", 50)
    texts = [*load("solubility").columns["smiles"][:400], "C(", ""]
    assert_same(pool.parse(texts), parse(texts, Parsing()))
    assert pool.parse([]).count == 0


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


def test_without_processes_it_is_parsed_here():
    with ParsingPool(Parsing(), 0) as pool:
        pool.warm_up()
        assert pool.executor is None
        assert pool.parse(["CCO"]).smiles == ["CCO"]


def test_workers_need_no_pytorch():
    code = "import sys, lookhops.molecules.workers, rdkit.Chem\n"
    code += "assert not {'torch', 'pandas', 'scipy'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
