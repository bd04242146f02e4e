"""A molecule on which RDKit ends its process: the others are parsed, and it is named."""

from itertools import combinations

import pytest

from deadly import Deadly
from lookhops import LookHopsError
from lookhops.sources.loading import load
from lookhops.sources.rdkit.parsing import Parsed
from lookhops.sources.rdkit.workers import CRASHED, ParsingPool

MARK = "CCCCI"  # stands for a molecule on which RDKit crashes


@pytest.fixture
def rdkit_crashes(monkeypatch):
    """RDKit crashes on one molecule."""
    real = ParsingPool.map
    monkeypatch.setattr(
        ParsingPool,
        "map",
        lambda pool, chunks, *how: real(
            pool, ([Deadly(s) if s == MARK else s for s in chunk] for chunk in chunks), *how
        ),
    )


def test_the_molecule_is_found_and_the_others_are_parsed(rdkit_crashes):
    smiles = ["CCO", MARK, "CC", "C(", "CO", "CN", "CCN", "CCC", MARK]
    with ParsingPool(2) as pool:
        found = Parsed.join(list(pool.map([smiles[:4], smiles[4:8], smiles[8:]])))
    assert found.count == len(smiles)
    assert found.smiles == ["CCO", "CC", "CO", "CN", "CCN", "CCC"]
    assert found.rows.tolist() == [0, 2, 4, 5, 6, 7]
    assert found.failures == [(1, CRASHED), (3, "not SMILES"), (8, CRASHED)]


def test_a_command_names_the_line(rdkit_crashes, lookhops, tmp_path):
    path = tmp_path / "m.smi"
    path.write_text(f"CCO a\nCC b\n{MARK} c\nCN d\n")
    code, out, err = lookhops("data", "info", path)
    assert (code, out) == (2, "")
    assert f"m.smi, line 3: '{MARK}' does not parse ({CRASHED})" in err
    code, _, err = lookhops("data", "info", path, "--invalid", "skip")
    assert code == 0
    assert f"1 of 4 molecules does not parse and is left out: line 3 ({CRASHED})" in err


def test_atoms_that_are_all_joined_never_reach_rdkit(tmp_path):
    """A complete graph of 100 atoms, which crashes RDKit: every atom opens and closes rings."""
    atoms = [["C"] for _ in range(100)]
    for i, j in combinations(range(100), 2):
        atoms[i].append(f"%({100 * i + j})")
        atoms[j].append(f"%({100 * i + j})")
    path = tmp_path / "m.smi"
    path.write_text("CC a\n" + ".".join(map("".join, atoms)) + " b\n")
    with pytest.raises(LookHopsError, match=r"m\.smi, line 2"):
        load(path)
    with pytest.raises(LookHopsError, match=r"line 2.*100"):
        load(path, max_atoms=100_000)
