"""Columns of whole graphs as features, by running the commands."""

import csv
import json
import shutil

import pytest
from rdkit.Chem import MolFromSmiles, MolToSmiles, SDWriter

from lookhops.sources.loading import Reading, load
from molecule_sets import MEASURED as HEAD
from molecule_sets import measured as molecules

NETWORK = ("--hidden", 16, "--layers", 2, "--fingerprint", 1)
TRAINING = (
    "--descriptors",
    "none",
    "--epochs",
    60,
    "--batch-size",
    32,
    "--lr",
    0.01,
    "--device",
    "cpu",
)


def write(path, rows, head=HEAD, separator=","):
    lines = [separator.join(map(str, row)) for row in (head, *rows)]
    path.write_text("\n".join(lines) + "\n")
    return path


def answers(text):
    return list(csv.DictReader(text.splitlines()))


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """The file and a model that reads its temperatures and solvents."""
    from lookhops.core.options import RECOMMENDED, Protocol
    from lookhops.models import train_into
    from lookhops.models.folder import Provenance
    from lookhops.sources.loading import Reading, load

    folder = tmp_path_factory.mktemp("columns")
    path = write(folder / "measured.csv", molecules())
    network = RECOMMENDED.__class__(**{**vars(RECOMMENDED), "hidden": 16, "layers": 2})
    protocol = Protocol(seeds=(11,), max_epochs=2)
    reading = Reading(features="temperature,solvent")
    train_into(
        folder / "model",
        load(path, reading),
        network,
        protocol,
        device="cpu",
        provenance=Provenance(reading=reading),
    )
    return folder


@pytest.fixture
def folder(trained, tmp_path):
    return shutil.copytree(trained, tmp_path / "mine")


@pytest.mark.parametrize("features", ["temperature,solvent", None])
def test_structure_times_a_column_is_learnt(lookhops, tmp_path, features):
    path = write(tmp_path / "measured.csv", molecules())
    named = () if features is None else ("--features", features)
    code, _, err = lookhops("train", path, "-o", tmp_path / "m", *named, *NETWORK, *TRAINING)
    assert code == 0, err
    assert ("--features temperature,solvent,site" in err) == (features is None)
    code, out, err = lookhops("predict", tmp_path / "m", path, "--device", "cpu")
    assert code == 0, err
    right = [row["predicted"] == row["class"] for row in answers(out)]
    share = sum(right) / len(right)
    assert share > 0.95 if features else share < 0.75


def test_a_column_that_decides_the_split_is_no_feature(lookhops, tmp_path):
    rows = {MolToSmiles(MolFromSmiles(row[1])): row for row in molecules(120)}
    path = write(tmp_path / "measured.csv", rows.values())
    rest = ("--split", "group:site", *NETWORK, "--epochs", 1, "--device", "cpu")
    code, _, err = lookhops("train", path, "-o", tmp_path / "m", "--features", "site", *rest)
    assert code == 2
    assert "'site'" in err
    code, _, err = lookhops("train", path, "-o", tmp_path / "m", "--features", "all", *rest)
    assert code == 0, err
    config = json.loads((tmp_path / "m" / "config.json").read_text())
    whole = config["encoding"]["whole"]
    assert (whole["numbers"][-1:], whole["labels"]) == (["temperature"], ["solvent"])


@pytest.mark.parametrize("options", [("--model", "wl-oa"), ("--no-totals",)])
def test_a_model_that_reads_no_columns_says_so(lookhops, tmp_path, options):
    path = write(tmp_path / "measured.csv", molecules(40))
    out = ("-o", tmp_path / "m", "--features", "temperature")
    code, _, err = lookhops("train", path, *out, *options)
    assert code == 2
    assert "--features" in err
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize(
    ("features", "named"),
    [
        ("dose", "'dose'"),
        ("temperature,class", "'class'"),
        ("smiles", "'smiles'"),
        ("name", "'name'"),
    ],
)
def test_what_can_be_no_feature_is_refused_by_name(lookhops, tmp_path, features, named):
    path = write(tmp_path / "measured.csv", molecules(40))
    code, _, err = lookhops("train", path, "-o", tmp_path / "m", "--features", features)
    assert code == 2
    assert named in err
    assert not (tmp_path / "m").exists()


def test_other_rows_are_read_by_the_names_of_their_columns(lookhops, folder):
    """One row, whole numbers, blanks, another order, decimal commas: as among all others."""
    model, rows = folder / "model", molecules()[1:4]
    code, out, err = lookhops("predict", model, write(folder / "a.csv", rows), "--device", "cpu")
    assert code == 0, err
    expected = [row["p_y"] for row in answers(out)]
    turned = [(row[3], row[1], row[2].replace(".", ",")) for row in rows]
    head = ("solvent", "smiles", "temperature")
    path = write(folder / "b.csv", turned, head, separator=";")
    code, out, err = lookhops("predict", model, path, "--device", "cpu")
    assert (code, [row["p_y"] for row in answers(out)]) == (0, expected), err
    path = write(folder / "c.csv", turned[:1], head, separator=";")
    code, out, err = lookhops("predict", model, path, "--device", "cpu")
    assert (code, [row["p_y"] for row in answers(out)]) == (0, expected[:1]), err
    for whole in (write(folder / "d.csv", [(*rows[0][:2], 90, "water", "", "")], HEAD),):
        assert lookhops("predict", model, whole, "--device", "cpu")[0] == 0
    blank = write(folder / "e.csv", [(*rows[0][:2], "", "", "", "")], HEAD)
    code, out, err = lookhops("predict", model, blank, "--device", "cpu")
    assert code == 0, err
    assert "solvent" in err  # of which training had no blanks


@pytest.mark.parametrize("command", ["predict", "evaluate", "embed", "explain"])
@pytest.mark.parametrize(
    ("column", "cell", "named"),
    [(None, None, "'temperature'"), (2, "warm", "'warm'"), (2, "inf", "'inf'")],
)
def test_columns_that_lack_or_cannot_be_read(lookhops, folder, command, column, cell, named):
    rows = [list(row) for row in molecules(20)]
    if column is None:
        rows, head = [row[:2] + row[3:] for row in rows], HEAD[:2] + HEAD[3:]
    else:
        rows[7][column], head = cell, HEAD
    path, out = write(folder / "other.csv", rows, head), folder / "out.csv"
    rest = ("--device", "cpu") if command == "evaluate" else ("-o", out, "--device", "cpu")
    code, _, err = lookhops(command, folder / "model", path, *rest)
    assert code == 2, err
    assert named in err
    assert "temperature" in err
    assert column is None or "m7" in err
    assert not out.exists() or not any(out.iterdir())


def test_packed_files_keep_the_features(lookhops, folder):
    from lookhops.graphs import Graphs

    packed = folder / "packed.graphs"
    code, _, err = lookhops(
        "data", "convert", folder / "measured.csv", packed, "--features", "temperature,solvent"
    )
    assert code == 0, err
    whole = Graphs.load(packed).whole
    assert (whole.number_names[-1], whole.label_names) == ("temperature", ("solvent",))
    found = []
    for source in (packed, folder / "measured.csv"):
        code, out, err = lookhops("predict", folder / "model", source, "--device", "cpu")
        assert code == 0, err
        found.append([row["p_y"] for row in answers(out)])
    assert found[0] == found[1]


def test_a_test_set_has_the_same_features(lookhops, folder):
    rows = [(*row[:3], "brine", *row[4:]) for row in molecules(300)[240:]]
    rest = ("--features", "temperature,solvent", "--epochs", 1, "--device", "cpu", *NETWORK)
    test = write(folder / "test.csv", rows)
    code, _, err = lookhops(
        "train", folder / "measured.csv", "-o", folder / "m", "--test", test, *rest
    )
    assert code == 0, err


CASES = ("graph", "temperature", "country", "label")


def write_cases(folder, rows, head=CASES):
    """Tables of rings and chains, and what is known of each."""
    folder.mkdir(exist_ok=True)
    ends = [(row[0], a, (a + 1) % 4) for i, row in enumerate(rows) for a in range(3 + i % 2)]
    write(folder / "edges.csv", ends, ("graph", "source", "target"))
    write(folder / "graphs.csv", rows, head)
    return folder


def write_node_link(path, rows, head=CASES):
    lines = []
    for row in rows:
        known = dict(zip(head, row, strict=True))
        nodes = [{"id": node} for node in range(4)]
        edges = [{"source": a, "target": a + 1} for a in range(3)]
        graph = {"id": known.pop("graph"), "graph": known, "nodes": nodes, "edges": edges}
        lines.append(json.dumps(graph))
    path.write_text("\n".join(lines))
    return path


def write_sdf(path, rows, head=HEAD):
    with SDWriter(str(path)) as writer:
        for row in rows:
            known = dict(zip(head, row, strict=True))
            molecule = MolFromSmiles(known.pop("smiles"))
            for name, value in known.items():
                molecule.SetProp("_Name" if name == "name" else name, str(value))
            writer.write(molecule)
    return path


def some_cases(count):
    return [(f"g{i}", 20 + i / 7, ("CH", "DE", "")[i % 3], "ny"[i % 2]) for i in range(count)]


@pytest.fixture(scope="module")
def cases(tmp_path_factory):
    """A model of tables that reads a number and a label of whole graphs."""
    from lookhops.core.options import Protocol
    from lookhops.learners import learner_of
    from lookhops.models import train_into
    from lookhops.sources.loading import load

    folder = tmp_path_factory.mktemp("cases")
    graphs = load(write_cases(folder / "set", some_cases(40)), features="all")
    train_into(folder / "model", graphs, learner_of("descriptors-ridge"), Protocol(seeds=(11,)))
    return folder / "model"


@pytest.mark.parametrize("form", ["sdf", "jsonl", "tables"])
@pytest.mark.parametrize("cell", [None, "warm", "inf", 25])
def test_every_kind_of_file_is_read_and_refused_alike(
    lookhops, trained, cases, tmp_path, form, cell
):
    given, head = (molecules(6), HEAD) if form == "sdf" else (some_cases(6), CASES)
    rows, at = [list(row) for row in given], head.index("temperature")
    rows[4][at] = cell
    if cell is None:
        rows = [row[:at] + row[at + 1 :] for row in rows]
        head = head[:at] + head[at + 1 :]
    writers = {"sdf": write_sdf, "jsonl": write_node_link, "tables": write_cases}
    path, out = writers[form](tmp_path / f"new.{form}", rows, head), tmp_path / "out.csv"
    model = trained / "model" if form == "sdf" else cases
    code, _, err = lookhops("predict", model, path, "-o", out, "--device", "cpu")
    assert (code, out.exists()) == ((0, True) if cell == 25 else (2, False)), err
    assert cell == 25 or "'temperature'" in err
    assert cell in (None, 25) or (f"'{cell}'" in err and rows[4][0] in err)


def test_dates_and_units_are_no_numbers_and_said(lookhops, tmp_path):
    rows = [
        (*row[:2], f"{10 + i % 5} °C", f"{1 + i % 9}.{1 + i % 3}.2021", row[5])
        for i, row in enumerate(molecules(60))
    ]
    path = write(tmp_path / "m.csv", rows, ("name", "smiles", "temperature", "measured on", "y"))
    code, _, err = lookhops("train", path, "-o", tmp_path / "m", "--model", "mean")
    assert "--features temperature\n" in err
    code, _, err = lookhops("train", path, "-o", tmp_path / "n", "--features", "measured on")
    assert code == 2
    assert "'measured on' (dates)" in err
    rest = ("-o", tmp_path / "n", "--features", "temperature", "--model", "descriptors-ridge")
    code, _, err = lookhops("train", path, *rest)
    assert code == 0, err
    assert "looks like numbers" in err


def test_named_features_of_a_packed_set_are_all_that_is_read(lookhops, tmp_path):
    table = write(tmp_path / "m.csv", molecules())
    packed = tmp_path / "m.graphs"
    reading = ("--target", HEAD[-1]) if HEAD[-1] not in ("temperature", "solvent") else ()
    code, _, err = lookhops(
        "data", "convert", table, packed, "--features", "all", "--descriptors", "none", *reading
    )
    assert code == 0, err
    chosen = Reading(features="temperature")
    assert load(packed).whole.names.features != ("temperature",)
    assert load(packed, chosen).whole.names.features == ("temperature",)


def test_a_text_among_numbers_is_named_where_all_columns_are_features(lookhops, tmp_path):
    rows = [list(map(str, row)) for row in molecules()]
    rows[5][HEAD.index("temperature")] = "hot"
    table = write(tmp_path / "m.csv", rows)
    code, out, err = lookhops("train", table, "--features", "all", "-o", tmp_path / "model")
    assert (code, out) == (2, "")
    assert "'hot'" in err
    assert "line 7" in err
    assert not (tmp_path / "model").exists()
