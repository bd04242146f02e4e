"""Molecules: features by hand and by RDKit, three file formats, and every way they can be wrong."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from rdkit import Chem, RDLogger
from torch_geometric.utils import from_smiles as pyg_from_smiles

from lookhops.datasets.molecule_features import ATOM_FEATURES, BOND_TYPES, ELEMENTS
from lookhops.datasets.molecules import (
    SkippedMolecules,
    feature_names,
    from_smiles,
    read_molecules,
)
from lookhops.errors import LookHopsError
from lookhops.graphs import Graphs

VARIED = [
    "CCO",
    "C",
    "[Na+].[Cl-]",
    "c1ccc2[nH]ccc2c1",
    "N[C@@H](C)C(=O)O",
    "C[C@H]1CC[C@@H](C)CC1",
    "OC(=O)[C@H](O)[C@@H](O)C(=O)O",
    "FS(F)(F)(F)(F)F",
    "C[N+](C)(C)CC([O-])=O",
    "[Fe+3].[O-]P([O-])([O-])=O",
    "[2H]OC#N",
    "[BH4-].[Li+]",
    "C[S@](=O)c1ccccc1",
    "[NH3]->[Cu]",
    "O=C1CC[C@@]2(O)[C@H]3Cc4ccc(O)c5c4[C@@]2(CCN3CC2CC2)[C@H]1O5",
]


def labels_of(smiles: str) -> list[list[str]]:
    """The features of each atom in words, straight from RDKit, one atom at a time."""
    molecule = Chem.MolFromSmiles(smiles)
    Chem.rdCIPLabeler.AssignCIPLabels(molecule)
    rows = []
    for atom in molecule.GetAtoms():
        charge, code = atom.GetFormalCharge(), "none"
        if atom.GetChiralTag() != Chem.ChiralType.CHI_UNSPECIFIED:
            code = atom.GetPropsAsDict().get("_CIPCode", "other")
        rows.append(
            [
                atom.GetSymbol() if atom.GetSymbol() in ELEMENTS else "other",
                str(atom.GetDegree()) if atom.GetDegree() < 6 else "6 or more",
                {-2: "-2 or less", 2: "2 or more"}.get(max(-2, min(charge, 2)), str(charge)),
                str(atom.GetTotalNumHs()) if atom.GetTotalNumHs() < 4 else "4 or more",
                "yes" if atom.GetIsAromatic() else "no",
                code if code in ("none", "R", "S") else "other",
            ]
        )
    return rows


def words(graphs: Graphs) -> list[list[str]]:
    return [
        [values[i] for values, i in zip(ATOM_FEATURES.values(), row, strict=True)]
        for row in graphs.labels.tolist()
    ]


def bonds(graphs: Graphs) -> dict[tuple[int, int], str]:
    source, target = graphs.edge_index.tolist()
    kinds = [BOND_TYPES[i] for i in graphs.edge_labels[:, 0].tolist()]
    return dict(zip(zip(source, target, strict=True), kinds, strict=True))


def assert_drawable(graphs: Graphs) -> None:
    """The SMILES that is kept has the atoms and the bonds of the graph, in its order."""
    for i, smiles in enumerate(graphs.columns["smiles"]):
        assert words(graphs[i]) == labels_of(smiles)
        drawn = {}
        for bond in Chem.MolFromSmiles(smiles).GetBonds():
            kind = str(bond.GetBondType()).lower()
            kind = kind if kind in BOND_TYPES else "other"
            drawn[bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()] = kind
            drawn[bond.GetEndAtomIdx(), bond.GetBeginAtomIdx()] = kind
        assert bonds(graphs[i]) == drawn


def message(call, *arguments, **options) -> str:
    with pytest.raises(LookHopsError) as error:
        call(*arguments, **options)
    return str(error.value)


def written(folder: Path, name: str, text: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


# -------------------------------------------------------------------- features


def test_features_by_hand():
    graphs = from_smiles(["C[C@H](N)C#N"])
    assert words(graphs) == [
        ["C", "1", "0", "3", "no", "none"],
        ["C", "3", "0", "1", "no", "S"],
        ["N", "1", "0", "2", "no", "none"],
        ["C", "2", "0", "0", "no", "none"],
        ["N", "1", "0", "0", "no", "none"],
    ]
    assert bonds(graphs) == {
        (0, 1): "single", (1, 0): "single", (1, 2): "single", (2, 1): "single",
        (1, 3): "single", (3, 1): "single", (3, 4): "triple", (4, 3): "triple",
    }  # fmt: skip


def test_features_of_varied_molecules_and_their_order():
    graphs = from_smiles(VARIED)
    assert_drawable(graphs)
    assert graphs.is_undirected
    assert graphs.featuriser == "molecules-1"
    assert graphs.columns["smiles"].tolist() == VARIED
    assert "other" in {row[0] for row in words(graphs)}
    assert {row[5] for row in words(graphs)} == set(ATOM_FEATURES["chirality"])
    assert set(bonds(graphs).values()) == set(BOND_TYPES)


def test_every_set_has_the_same_columns():
    one, other = from_smiles(["C"]), from_smiles(VARIED)
    assert one.x.shape[1] == other.x.shape[1] == len(feature_names()) == 43
    assert len(set(feature_names())) == 43
    assert one.num_edge_features == other.num_edge_features == 5
    on = [feature_names()[i] for i in one.x[0].nonzero().flatten()]
    assert on == [
        "element C", "degree 0", "charge 0", "hydrogens 4 or more", "aromatic no", "chirality none",
    ]  # fmt: skip


@pytest.mark.parametrize("smiles", VARIED)
def test_edges_are_those_of_pyg(smiles):
    ours = from_smiles([smiles]).to_pyg()[0]
    theirs = pyg_from_smiles(smiles)
    assert torch.equal(ours.edge_index, theirs.edge_index)
    assert ours.num_nodes == theirs.num_nodes


@settings(max_examples=60, derandomize=True, deadline=None)
@given(smiles=st.sampled_from(VARIED), seed=st.integers(0, 2**31 - 1))
def test_one_molecule_has_one_graph_however_it_is_written(smiles, seed):
    molecule = Chem.MolFromSmiles(smiles)
    again = Chem.MolToRandomSmilesVect(molecule, 1, seed)[0]
    seen = []
    for graphs in (from_smiles([smiles]), from_smiles([again])):
        atoms = [tuple(row) for row in words(graphs)]
        edges = [(atoms[a], atoms[b], kind) for (a, b), kind in bonds(graphs).items()]
        seen.append((sorted(atoms), sorted(edges)))
    assert seen[0] == seen[1]


def test_save_and_load(tmp_path):
    graphs = from_smiles(["CCO", "C"], y=["b", "a"], ids=["ethanol", "methane"])
    graphs.save(tmp_path / "set.graphs")
    back = Graphs.load(tmp_path / "set.graphs")
    assert back.fingerprint == graphs.fingerprint
    assert back.class_names == ("a", "b")
    assert back.columns["id"].tolist() == ["ethanol", "methane"]
    assert back.columns["smiles"].tolist() == ["CCO", "C"]


# -------------------------------------------------------------------- classes


@pytest.mark.parametrize(
    ("y", "names", "numbers"),
    [
        (["10", "9", "10", "-1"], ("-1", "9", "10"), [2, 1, 2, 0]),
        ([1, 0, 1, 1], ("0", "1"), [1, 0, 1, 1]),
        (torch.tensor([2, 0, 2, 0]), ("0", "2"), [1, 0, 1, 0]),
        (np.array([1.0, 0.0, 0.0, 1.0]), ("0", "1"), [1, 0, 0, 1]),
        ([0.5, 1.5, 0.5, 0.5], ("0.5", "1.5"), [0, 1, 0, 0]),
        (["yes", "no", "No", "yes"], ("No", "no", "yes"), [2, 1, 0, 2]),
        (["1_0", "10", "10", "10"], ("10", "1_0"), [1, 0, 0, 0]),
    ],
)
def test_classes_are_sorted(y, names, numbers):
    graphs = from_smiles(["C"] * 4, y=y)
    assert graphs.class_names == names
    assert graphs.y.tolist() == numbers


def test_classes_in_a_given_order():
    names = ("low", "high", "never")
    by_name = from_smiles(["C", "N"], y=["high", "low"], class_names=names)
    by_place = from_smiles(["C", "N"], y=[1, 0], class_names=names)
    for graphs in (by_name, by_place):
        assert graphs.class_names == names
        assert graphs.y.tolist() == [1, 0]
    assert from_smiles(["C"]).y is None
    assert from_smiles(["C"]).class_names == ()


def test_wrong_classes_and_lists():
    assert message(from_smiles, ["C", "N"], y=[1]) == "There are 2 SMILES but 1 classes."
    assert message(from_smiles, ["C", "N"], ids=["a"]) == "There are 2 SMILES but 1 ids."
    assert "molecule 2: '' in y is not a class" in message(from_smiles, ["C", "N"], y=["a", None])
    assert "molecule 1: 'nan'" in message(from_smiles, ["C", "N"], y=[float("nan"), 1])
    assert "so 2 is no class" in message(from_smiles, ["C"], y=[2], class_names=["a", "b"])
    wrong = message(from_smiles, ["C"], y=["c"], class_names=["a", "b"])
    assert "molecule 1: 'c' in y is not a class; the classes are a, b." in wrong
    assert message(from_smiles, []) == "from_smiles: there are no molecules."
    assert message(from_smiles, ["C"], invalid="no") == "invalid is 'raise' or 'skip', not 'no'."


# -------------------------------------------------------------------- molecules that do not parse


@pytest.mark.parametrize(
    ("smiles", "reason"),
    [
        ("", "it is empty"),
        ("CC(", "not SMILES"),
        ("hello", "not SMILES"),
        ("C(C)(C)(C)(C)C", "Explicit valence for atom # 0 C, 5, is greater than permitted"),
        ("c1cccc1", "Can't kekulize mol."),
    ],
)
def test_what_does_not_parse_is_named(smiles, reason, capfd):
    RDLogger.EnableLog("rdApp.error")  # PyG's function turns it off for good
    text = message(from_smiles, ["C", smiles])
    assert text.startswith(f"molecule 2: {smiles!r} does not parse ({reason}")
    assert "invalid='skip' (--invalid skip)" in text
    assert capfd.readouterr().err == ""  # RDKit prints nothing of its own
    Chem.MolFromSmiles("hello")
    assert "hello" in capfd.readouterr().err  # and is left as it was


def test_skipped_molecules_are_listed_in_one_warning(tmp_path):
    path = written(tmp_path, "set.csv", "smiles,label,dose\nC,a,1\nCC(,b,2\n,,3\nN,c,4\n")
    with pytest.warns(SkippedMolecules) as caught:
        graphs = read_molecules(path, invalid="skip")
    assert [str(one.message) for one in caught] == [
        f"{path}: 2 of 4 molecules do not parse and are left out: "
        "line 3 (not SMILES), line 4 (it is empty)."
    ]
    assert caught[0].filename == __file__
    assert graphs.columns["id"].tolist() == ["2", "5"]
    assert graphs.columns["dose"].tolist() == [1, 4]
    assert graphs.class_names == ("a", "c")
    assert graphs.y.tolist() == [0, 1]


def test_many_skipped_molecules_are_counted():
    with pytest.warns(SkippedMolecules, match=r"molecule 11 \(not SMILES\) and 15 more\.$"):
        from_smiles(["C"] + ["x"] * 25, invalid="skip")
    text = message(from_smiles, ["x", "y"], invalid="skip")
    assert text.startswith("none of the 2 molecules parses: molecule 1 (not SMILES), molecule 2")


def test_nothing_is_warned_of_without_need():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        from_smiles(["C"], invalid="skip")


# -------------------------------------------------------------------- .smi


def test_smi(tmp_path):
    text = "smiles name\nCCO ethanol\n\n# a remark\nC\nc1ccccc1\tbenzene ring\t5.5\r\n"
    graphs = read_molecules(written(tmp_path, "few.smi", text))
    assert graphs.name == "few"
    assert graphs.columns["id"].tolist() == ["ethanol", "5", "benzene ring"]
    assert graphs.columns["smiles"].tolist() == ["CCO", "C", "c1ccccc1"]
    assert graphs.y is None
    assert_drawable(graphs)


def test_smi_without_header_and_with_a_bad_line(tmp_path):
    path = written(tmp_path, "few.smi", "CCO\nC\n\nfoo bar\n")
    assert message(read_molecules, path).startswith(f"{path}, line 4: 'foo' does not parse")
    assert "no named columns" in message(read_molecules, path, label_column="y")


# -------------------------------------------------------------------- .csv


def test_csv_finds_its_columns(tmp_path):
    text = (
        "Name,Canonical_SMILES,Class,logS,count,note\n"
        'ethanol,CCO,high,0.5,3,"fine, indeed"\n'
        " methane , C ,low,,4,\n"
        ",N,high,1e3,5,x\n"
    )
    graphs = read_molecules(written(tmp_path, "set.csv", text))
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
    graphs = read_molecules(path, smiles_column="other", label_column="GROUP", id_column="key")
    assert graphs.columns["smiles"].tolist() == ["N", "O"]
    assert graphs.class_names == ("a", "b")
    assert graphs.columns["id"].tolist() == ["k", "l"]
    assert graphs.columns["class"].tolist() == [1, 2]


@pytest.mark.parametrize("mark", [";", "\t"])
def test_csv_of_other_separators_and_a_byte_order_mark(tmp_path, mark):
    text = f"\ufeffid{mark}smiles{mark}y\r\na{mark}C{mark}1\r\n".encode()
    graphs = read_molecules(written(tmp_path, "set.csv", text))
    assert graphs.columns["id"].tolist() == ["a"]
    assert graphs.class_names == ("1",)


def test_csv_line_numbers_count_lines_not_rows(tmp_path):
    path = written(tmp_path, "set.csv", 'smiles,note\n\nC,"two\nlines"\n\nfoo,x\n')
    assert message(read_molecules, path).startswith(f"{path}, line 6: 'foo'")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "the file is empty."),
        (" \n\n", "the file is empty."),
        (",,\n", "the file is empty."),
        ("smiles,y\n", "there are no molecules."),
        ("a,b\nC,1\n", "line 1: no column of SMILES; the columns are a, b."),
        ("smiles,a,a\nC,1,2\n", "line 1: two columns are called 'a'."),
        ("smiles,y\nC,1\nN\n", "line 3: 1 fields, where the header has 2;"),
        ("smiles,y\nC,1\nN,2,3\n", "line 3: 3 fields, where the header has 2;"),
        ('smiles,y\nC,1\n"N,2\n', "line 3: not a line of a CSV file"),
        ("smiles,y\nC,1\nN,\n", "line 3: '' in the label column 'y' is not a class."),
        ("smiles,y\nC,1\nN,NaN\n", "line 3: 'NaN' in the label column 'y' is not a class."),
        ("smiles,y\nC,1\nN,-inf\n", "line 3: '-inf' in the label column 'y' is not a class."),
        (b"smiles,name\nC,a\nN,caf\xe9\n", "line 3: not UTF-8 text;"),
    ],
)
def test_wrong_csv(tmp_path, text, sentence):
    path = written(tmp_path, "set.csv", text)
    assert message(read_molecules, path).removeprefix(str(path)).lstrip(":, ").startswith(sentence)


@pytest.mark.parametrize("option", ["smiles_column", "label_column", "id_column"])
def test_csv_without_the_named_column(tmp_path, option):
    path = written(tmp_path, "set.csv", "smiles,y\nC,1\n")
    assert message(read_molecules, path, **{option: "z"}) == (
        f"{path}: no column is called 'z'; the columns are smiles, y. "
        f"Choose one of them for {option} (--{option.replace('_', '-')})."
    )


@pytest.mark.parametrize(
    "values",
    [
        [f"{i / 7:.3f}" for i in range(30)],
        ["0.1", "0.2", "0.3", "0.2"],
        [str(i) for i in range(30)],
        [f"name {i}" for i in range(30)],
    ],
)
def test_measured_values_are_no_classes(tmp_path, values):
    rows = "".join(f"C,{value}\n" for value in values)
    path = written(tmp_path, "set.csv", f"smiles,target\n{rows}")
    text = message(read_molecules, path)
    different = len(set(values))
    assert f"the label column 'target' has {different} different values for {len(values)}" in text
    assert "not a class; choose another column" in text


def test_many_real_classes_are_classes(tmp_path):
    rows = "".join(f"C,{i % 30}\n" for i in range(90))
    assert read_molecules(written(tmp_path, "s.csv", f"smiles,y\n{rows}")).num_classes == 30


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
    graphs = read_molecules(written(tmp_path, "set.sdf", text.replace("\n", "\r\n")))
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
    graphs = read_molecules(written(tmp_path, "set.sdf", text))
    assert_drawable(graphs)
    assert graphs.columns["smiles"].tolist() != VARIED
    assert len(graphs) == len(VARIED)


def test_sdf_options(tmp_path):
    text = sdf_record("C", "t", code="c1", kind="x") + sdf_record("N", "u", code="c2", kind="y")
    path = written(tmp_path, "set.sdf", text)
    assert read_molecules(path).y is None
    graphs = read_molecules(path, label_column="kind", id_column="code")
    assert graphs.class_names == ("x", "y")
    assert graphs.columns["id"].tolist() == ["c1", "c2"]
    assert "the columns are code, kind" in message(read_molecules, path, label_column="z")
    assert "leave out smiles_column" in message(read_molecules, path, smiles_column="smiles")


def test_sdf_that_is_wrong(tmp_path):
    good, bad = sdf_record("C", "one", y="1"), sdf_record("CC", "two", y="2")
    path = written(tmp_path, "set.sdf", good + bad.replace("M  END", "M  EN"))
    line = good.count("\n") + 1
    assert message(read_molecules, path).startswith(
        f"{path}, record 2 (line {line}): 'two' does not parse (not a mol block)"
    )
    with pytest.warns(SkippedMolecules, match=r"1 of 2 .*: record 2 \(line "):
        assert len(read_molecules(path, invalid="skip")) == 1
    path = written(tmp_path, "cut.sdf", good + bad[:60])
    assert f"record 2 (line {line}): 'two'" in message(read_molecules, path)
    path = written(tmp_path, "label.sdf", good + sdf_record("CC", "two"))
    assert f"record 2 (line {line}): '' in the label column 'y'" in message(read_molecules, path)
    path = written(tmp_path, "empty.sdf", sdf_record("", "nothing"))
    assert "'nothing' does not parse (it has no atoms)" in message(read_molecules, path)
    five = (
        sdf_record("CCCCCC", "five")
        .replace("  2  3  1", "  2  3  3")
        .replace(" 1  2  1", " 1  2  3")
    )
    path = written(tmp_path, "valence.sdf", five)
    assert "Explicit valence for atom # 1 C, 6" in message(read_molecules, path)
    path = written(tmp_path, "bytes.sdf", b"caf\xe9\n")
    assert message(read_molecules, path).startswith(f"{path}, line 1: not UTF-8 text")


# -------------------------------------------------------------------- files


def test_wrong_files(tmp_path):
    assert message(read_molecules, tmp_path / "no.smi") == f"{tmp_path / 'no.smi'}: no such file."
    assert "read from .smi, .csv, .sdf files" in message(read_molecules, tmp_path / "set.mol2")
    (tmp_path / "folder.csv").mkdir()
    assert "cannot be read" in message(read_molecules, tmp_path / "folder.csv")


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
            said = repr(read_molecules(path, invalid=invalid))
        except LookHopsError as error:
            said = str(error)
    assert said.startswith(("Graphs(", str(path)))
