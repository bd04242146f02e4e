"""Molecules in three file formats, and every way they can be wrong."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rdkit import Chem

from lookhops.core.errors import LookHopsError
from lookhops.core.reading import Reading
from lookhops.sources.loading import load
from lookhops.sources.molecule_streams import SkippedMolecules
from molecule_sets import VARIED, assert_drawable, message, written

# -------------------------------------------------------------------- .smi


def test_smi(tmp_path):
    text = "smiles name\nCCO ethanol\n\n# a remark\nC\nc1ccccc1\tbenzene ring\t5.5\r\n"
    graphs = load(written(tmp_path, "few.smi", text))
    assert graphs.name == "few"
    assert graphs.columns["id"].tolist() == ["ethanol", "5", "benzene ring"]
    assert graphs.columns["smiles"].tolist() == ["CCO", "C", "c1ccccc1"]
    assert graphs.y is None
    assert_drawable(graphs)


def test_smi_without_header_and_with_a_bad_line(tmp_path):
    path = written(tmp_path, "few.smi", "CCO\nC\n\nfoo bar\n")
    assert message(load, path).startswith(f"{path}, line 4: 'foo' does not parse")
    assert "no named columns" in message(load, path, label_column="y")


# -------------------------------------------------------------------- .csv


def test_csv_finds_its_columns(tmp_path):
    text = (
        "Name,Canonical_SMILES,Class,logS,count,note\n"
        'ethanol,CCO,high,0.5,3,"fine, indeed"\n'
        " methane , C ,low,,4,\n"
        ",N,high,1e3,5,x\n"
    )
    graphs = load(written(tmp_path, "set.csv", text))
    assert graphs.columns["id"].tolist() == ["ethanol", "methane", "4"]
    assert graphs.columns["smiles"].tolist() == ["CCO", "C", "N"]
    assert graphs.class_names == ("high", "low")
    assert graphs.y.tolist() == [0, 1, 0]
    np.testing.assert_array_equal(graphs.columns["logS"], [0.5, np.nan, 1000.0])
    assert graphs.columns["count"].dtype == np.int64
    assert graphs.columns["note"].tolist() == ["fine, indeed", "", "x"]
    assert set(graphs.columns) == {"id", "smiles", "logS", "count", "note"}
    assert_drawable(graphs)


def test_csv_options_choose_columns(tmp_path):
    path = written(
        tmp_path, "set.csv", "smiles,other,class,group,id,key\nC,N,1,a,i,k\nC,O,2,b,j,l\n"
    )
    graphs = load(path, smiles_column="other", label_column="GROUP", id_column="key")
    assert graphs.columns["smiles"].tolist() == ["N", "O"]
    assert graphs.class_names == ("a", "b")
    assert graphs.columns["id"].tolist() == ["k", "l"]
    assert graphs.columns["class"].tolist() == [1, 2]


def test_a_remembered_column_may_be_in_another_case(tmp_path):
    path = written(tmp_path, "set.csv", "Smiles String,Key,LOGS\nC,a,1\nN,b,2\n")
    before = Reading(smiles_column="smiles string", id_column="key", target="logS")
    graphs = load(path, Reading().with_defaults_of(before))
    assert graphs.columns["id"].tolist() == ["a", "b"]
    assert graphs.targets[0].name == "LOGS"


@pytest.mark.parametrize("mark", [";", "\t"])
def test_csv_of_other_separators_and_a_byte_order_mark(tmp_path, mark):
    text = f"\ufeffid{mark}smiles{mark}y\r\na{mark}C{mark}1\r\n".encode()
    graphs = load(written(tmp_path, "set.csv", text))
    assert graphs.columns["id"].tolist() == ["a"]
    assert graphs.class_names == ("1",)


@pytest.mark.parametrize("mark", [";", "\t", ",", "|"])
def test_the_line_in_which_excel_names_the_separator(tmp_path, mark):
    text = f"\ufeffsep={mark}\r\nid{mark}smiles{mark}y\r\na{mark}C{mark}1\r\nb{mark}foo{mark}1\r\n"
    path = written(tmp_path, "set.csv", text.encode())
    with pytest.warns(SkippedMolecules, match="line 4"):
        graphs = load(path, invalid="skip")
    assert graphs.columns["id"].tolist() == ["a"]
    edges = f"sep={mark}\ngraph{mark}source{mark}target\nx{mark}a{mark}b\n"
    assert load(written(tmp_path, "edges.csv", edges)).num_edges == 2
    wrong = written(tmp_path, "edges.csv", f"{edges}x{mark}a\n")
    assert f"{wrong}, line 4: 2 fields" in message(load, wrong)
    assert "the file is empty" not in message(load, written(tmp_path, "no.csv", f"sep={mark}\na\n"))
    assert "the file is empty" in message(load, written(tmp_path, "no.csv", f"sep={mark}\n"))


def test_csv_line_numbers_count_lines_not_rows(tmp_path):
    path = written(tmp_path, "set.csv", 'smiles,note\n\nC,"two\nlines"\n\nfoo,x\n')
    assert message(load, path).startswith(f"{path}, line 6: 'foo'")


def test_rows_that_say_nothing_are_passed_over_with_a_word(tmp_path):
    """Spreadsheets write them below the last row."""
    path = written(tmp_path, "set.csv", "smiles,y,name\nC,1,a\n,,\nN,2,b\n , ,\n")
    with pytest.warns(SkippedMolecules, match="line 3.*line 5"):
        graphs = load(path)
    assert graphs.y.tolist() == [0, 1]
    assert [one.row for one in graphs.skipped] == [1, 3]
    path = written(tmp_path, "set.csv", "smiles,y,name\nC,1,a\n,2,b\n")
    assert "line 3: '' does not parse (it is empty)" in message(load, path)
    path = written(tmp_path, "set.csv", 'smiles,y,name\nC,1,a\n"CCO\nCCN",2,b\n')
    assert "line 3: 'CCO\\nCCN' does not parse" in message(load, path)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "the file is empty."),
        (" \n\n", "the file is empty."),
        (",,\n", "the file is empty."),
        ("\u2028\n", "the file is empty."),
        ("smiles,y\n", "there are no molecules."),
        ("a,b\nC,1\n", "neither molecules nor edges of graphs; the columns are a, b."),
        ("smiles,a,a\nC,1,2\n", "line 1: two columns are called 'a'."),
        ("smiles,y\nC,1\nN\n", "line 3: 1 fields, where the header has 2;"),
        ("smiles,y\nC,1\nN,2,3\n", "line 3: 3 fields, where the header has 2;"),
        ('smiles,y\nC,1\n"N,2\n', "line 3: not a line of a CSV file"),
        ("smiles,y\nC,1\nN,-inf\n", "line 3: '-inf' of 'y' is not a finite number"),
        (b"smiles,name\nC,a\nN,caf\xe9\n", "line 3: not UTF-8 text;"),
    ],
)
def test_wrong_csv(tmp_path, text, sentence):
    path = written(tmp_path, "set.csv", text)
    assert message(load, path).removeprefix(str(path)).lstrip(":, ").startswith(sentence)


@pytest.mark.parametrize("option", ["smiles_column", "label_column", "id_column"])
def test_csv_without_the_named_column(tmp_path, option):
    path = written(tmp_path, "set.csv", "smiles,y\nC,1\n")
    assert message(load, path, **{option: "z"}) == (
        f"{path}: no column is called 'z'; the columns are smiles, y. "
        f"Choose one of them for {option} (--{option.replace('_', '-')})."
    )


# -------------------------------------------------------------------- .sdf


def sdf_record(smiles: str, title: str = "", version3: bool = False, **fields: str) -> str:
    molecule = Chem.MolFromSmiles(smiles)
    molecule.SetProp("_Name", title)
    block = Chem.MolToMolBlock(molecule, forceV3000=version3)
    data = "".join(f">  <{name}>  (1)\n{value}\n\n" for name, value in fields.items())
    return f"{block}{data}$$$$\n"


def test_sdf(tmp_path):
    text = (
        sdf_record("OC(=O)[C@@H](N)C", "alanine", Class="b", LogP="-2.5", note="two\nlines")
        + sdf_record("c1ccccc1O", "", version3=True, Class="a", LogP="1.5")
        + sdf_record("[Na+].[Cl-]", "salt", Class="a")
    )
    graphs = load(written(tmp_path, "set.sdf", text.replace("\n", "\r\n")))
    assert graphs.columns["id"].tolist() == ["alanine", "2", "salt"]
    assert graphs.class_names == ("a", "b")
    assert graphs.y.tolist() == [1, 0, 0]
    np.testing.assert_array_equal(graphs.columns["LogP"], [-2.5, 1.5, np.nan])
    assert graphs.columns["note"].tolist() == ["two\nlines", "", ""]
    assert_drawable(graphs)
    assert graphs.columns["smiles"][0] == Chem.CanonSmiles("OC(=O)[C@@H](N)C")


def test_sdf_atoms_stand_in_the_order_of_the_smiles(tmp_path):
    """Not in the file's own, which differs here."""
    text = "".join(sdf_record(smiles) for smiles in VARIED)
    graphs = load(written(tmp_path, "set.sdf", text))
    assert_drawable(graphs)
    assert graphs.columns["smiles"].tolist() != VARIED
    assert len(graphs) == len(VARIED)


def test_sdf_options(tmp_path):
    text = sdf_record("C", "t", code="c1", kind="x") + sdf_record("N", "u", code="c2", kind="y")
    path = written(tmp_path, "set.sdf", text)
    assert load(path).y is None
    graphs = load(path, label_column="kind", id_column="code")
    assert graphs.class_names == ("x", "y")
    assert graphs.columns["id"].tolist() == ["c1", "c2"]
    assert "the columns are code, kind" in message(load, path, label_column="z")
    assert "leave out smiles_column" in message(load, path, smiles_column="smiles")


def test_sdf_that_is_wrong(tmp_path):
    good, bad = sdf_record("C", "one", y="1"), sdf_record("CC", "two", y="2")
    path = written(tmp_path, "set.sdf", good + bad.replace("M  END", "M  EN"))
    line = good.count("\n") + 1
    assert message(load, path).startswith(
        f"{path}, record 2 (line {line}): 'two' does not parse (not a mol block)"
    )
    with pytest.warns(SkippedMolecules, match="record 2"):
        assert len(load(path, invalid="skip")) == 1
    path = written(tmp_path, "cut.sdf", good + bad[:60])
    assert f"record 2 (line {line}): 'two'" in message(load, path)
    path = written(tmp_path, "label.sdf", good + sdf_record("CC", "two"))
    assert load(path).y.tolist() == [0, -1]
    path = written(tmp_path, "empty.sdf", sdf_record("", "nothing"))
    assert "'nothing' does not parse (it has no atoms)" in message(load, path)
    five = (
        sdf_record("CCCCCC", "five")
        .replace("  2  3  1", "  2  3  3")
        .replace(" 1  2  1", " 1  2  3")
    )
    path = written(tmp_path, "valence.sdf", five)
    assert "Explicit valence for atom # 1 C, 6" in message(load, path)
    path = written(tmp_path, "bytes.sdf", b"caf\xe9\n")
    assert message(load, path).startswith(f"{path}, line 1: not UTF-8 text")


# -------------------------------------------------------------------- files


def test_wrong_files(tmp_path):
    assert message(load, tmp_path / "no.smi").startswith(f"{tmp_path / 'no.smi'}: no such file")
    assert "end in .graphs, .zip, .smi" in message(load, written(tmp_path, "set.mol2", ""))


PIECES = [
    "smiles",
    "y",
    ",",
    ";",
    '"',
    "\n",
    "\r\n",
    "\t",
    " ",
    "$$$$\n",
    "> <y>\n",
    "M  END\n",
    "C",
]


@settings(max_examples=150, derandomize=True, deadline=None)
@given(
    data=st.one_of(
        st.binary(max_size=40),
        st.lists(st.sampled_from([*PIECES, *VARIED, "|x|", "\0", "é"]), max_size=12).map(
            lambda pieces: "".join(pieces).encode()
        ),
    ),
    suffix=st.sampled_from([".smi", ".csv", ".sdf"]),
    invalid=st.sampled_from(["raise", "skip"]),
)
def test_no_file_ends_in_a_traceback(tmp_path_factory, data, suffix, invalid):
    path = written(tmp_path_factory.getbasetemp(), f"any{suffix}", data)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SkippedMolecules)
        try:
            said = repr(load(path, invalid=invalid))
        except LookHopsError as error:
            said = str(error)
    assert said.startswith(("Graphs(", str(path)))
