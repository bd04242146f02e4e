"""Rows of molecules that are parsed before anything asks for them."""

from __future__ import annotations

import subprocess
import sys
from itertools import count

import pytest

from lookhops.core.errors import LookHopsError
from lookhops.core.reading import Reading
from lookhops.sources.molecule_rows import SmilesList
from lookhops.sources.molecule_streams import MoleculeStream, open_molecules
from lookhops.sources.rdkit.workers import ParsingPool
from lookhops.sources.streams import ReadAhead

SKIP = Reading(invalid="skip")


def test_items_come_in_order_and_an_error_where_it_happened():
    def items():
        yield from range(100)
        raise LookHopsError("no more")

    found: list[int] = []
    with pytest.raises(LookHopsError, match="no more"):
        found.extend(ReadAhead(items(), most=3))
    assert found == list(range(100))
    assert list(ReadAhead(iter([]))) == []


def test_no_more_items_are_taken_than_may_wait():
    taken = count()
    ahead = ReadAhead((next(taken) for _ in range(1000)), most=3)
    assert next(iter(ahead)) == 0
    ahead.close()
    assert next(taken) <= 6


def test_rows_that_were_begun_are_the_same():
    smiles = ["CCO", "C(", "CC.O", ""] * 300
    with ParsingPool(1) as pool:
        begun = MoleculeStream(SmilesList(smiles), pool, "few", SKIP)
        begun.begin()
        found = list(begun.parsed())
        begun.close()
        plain = list(MoleculeStream(SmilesList(smiles), pool, "few", SKIP).parsed())
    for (rows, parsed), (wanted, known) in zip(found, plain, strict=True):
        assert rows == wanted
        assert (parsed.smiles, parsed.failures) == (known.smiles, known.failures)


def test_a_file_that_breaks_off_is_refused_where_it_is_asked_for(tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text("smiles,x\n" + "C,1\n" * 600 + "N\n")
    with ParsingPool(1) as pool:
        rows = open_molecules(path, SKIP, pool)
        rows.begin()
        with pytest.raises(LookHopsError, match="line 602"):
            list(rows.parsed())
        rows.close()


def test_neither_pytorch_nor_pandas_is_loaded_for_rows():
    code = (
        "import sys, lookhops.sources.molecule_streams\n"
        "print({'torch', 'pandas'} & set(sys.modules) or 'neither')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "neither\n"
