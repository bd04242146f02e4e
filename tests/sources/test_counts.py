"""The same molecule in several rows, salts and mixtures."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import lookhops
from lookhops import Protocol
from lookhops.sources.counts import in_words, molecule_counts
from lookhops.sources.molecules import from_smiles
from lookhops.sources.splits import SplitPlan

ROWS = """id,smiles,class
a,CCO,yes
b,OCC,yes
c,c1ccccc1,no
d,C1C,no
e,C1=CC=CC=C1,yes
f,CC(=O)[O-].[Na+],no
g,CC.CCC,yes
h,C(O)C,yes
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "set.csv").write_text(ROWS)
    return tmp_path / "set.csv"


@pytest.mark.filterwarnings("ignore:.*does not parse")
def test_counts(path: Path):
    graphs = lookhops.load(path, invalid="skip")
    assert graphs.columns["duplicate_of"].tolist() == [0, 0, 2, 2, 4, 5, 0]
    counts = molecule_counts(graphs)
    assert counts == {
        "duplicates": 3, "contradicting": 2, "salts": 1, "mixtures": 1, "skipped": 1,
    }  # fmt: skip
    said = "3 duplicates, 2 rows that contradict each other, 1 salt, 1 mixture, 1 skipped"
    assert in_words(counts) == said
    assert molecule_counts(lookhops.load("hops-1", size=4)) is None
    graphs.save(path.with_suffix(".graphs"))
    assert molecule_counts(lookhops.load(path.with_suffix(".graphs"))) == counts
    assert "duplicate_of" not in from_smiles(["C", "CC"]).columns
    assert in_words(molecule_counts(from_smiles(["C", "CC"]))) == ""


@pytest.mark.filterwarnings("ignore:.*does not parse")
def test_merging_keeps_the_first_and_says_where_the_others_went(path: Path):
    with pytest.warns(UserWarning, match="set.*3.*1"):
        graphs = lookhops.load(path, invalid="skip", duplicates="merge")
    assert graphs.columns["id"].tolist() == ["a", "c", "f", "g"]
    assert "duplicate_of" not in graphs.columns
    assert graphs.class_names == ("no", "yes")
    assert graphs.y.tolist() == [1, -1, 0, 1]
    assert graphs.skipped == (
        (1, "b", "the same molecule as a"),
        (3, "d", "not SMILES"),
        (4, "e", "the same molecule as c"),
        (7, "h", "the same molecule as a"),
    )


def test_merged_numbers_are_averaged(tmp_path: Path):
    path = tmp_path / "numbers.csv"
    rows = [f"{'C' * (i + 1)},{i / 7}" for i in range(30)]
    path.write_text("\n".join(["smiles,y", *rows, "CC,", "[CH3]C,3", "C(C)C,"]))
    with pytest.warns(UserWarning, match="numbers.*3"):
        graphs = lookhops.load(path, duplicates="merge")
    wanted = np.arange(30) / 7
    wanted[1] = (wanted[1] + 3) / 2
    np.testing.assert_allclose(graphs.y, wanted)


def test_the_largest_piece(path: Path):
    path.write_text("smiles,class\nCC(=O)[O-].[Na+],a\nCl.CCN.Cl,b\nCCO,b\n[Na+].[Cl-],a\n")
    graphs = lookhops.load(path, salts="largest")
    assert graphs.columns["smiles"].tolist() == ["CC(=O)[O-]", "CCN", "CCO", "[Cl-]"]
    assert graphs.nodes_per_graph.tolist() == [4, 3, 3, 1]
    assert molecule_counts(graphs)["salts"] == 0


def test_the_same_molecule_stands_in_one_part(path: Path):
    smiles = ["C" * (1 + i % 40) for i in range(120)]
    graphs = from_smiles(smiles, y=[i % 2 for i in range(120)])
    first = graphs.columns["duplicate_of"]
    for split in ("random", "stratified"):
        plan = SplitPlan.of(graphs, Protocol(seeds=(11,), split=split))
        one = plan.splits[11]
        groups = [set(first[part].tolist()) for part in (one.train, one.val, one.test)]
        assert sum(map(len, groups)) == len(set.union(*groups)) == 40
