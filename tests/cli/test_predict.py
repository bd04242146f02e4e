"""``lookhops predict`` by running it."""

import csv
import gzip
import io
import json
import pickle
import shutil
import subprocess
import sys

import pandas as pd
import pytest

from deadly import Deadly


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    from lookhops.models import train_into
    from lookhops.nn import Architecture
    from lookhops.sources.loading import load
    from lookhops.training import Protocol

    folder = tmp_path_factory.mktemp("models") / "model"
    protocol = Protocol(seeds=(11, 22), max_epochs=2, batch_size=64)
    network = Architecture(pool="lookhops", hidden=8, layers=2)
    train_into(folder, load("solubility")[:300], network, protocol, device="cpu")
    return folder


@pytest.fixture
def model(trained, tmp_path):
    return shutil.copytree(trained, tmp_path / "model")


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_a_csv_of_molecules(lookhops, model, tmp_path):
    (tmp_path / "mine.csv").write_text('name,smiles\nethanol,CCO\n"a, b",c1ccccc1\n')
    code, out, _ = lookhops("predict", model, tmp_path / "mine.csv")
    assert code == 0
    found = rows(out)
    p = ["p_low", "p_medium", "p_high"]
    sure = ["set_90", "agreement", "spread", "similarity", "warning"]
    assert list(found[0]) == ["name", "smiles", "predicted", *p, *sure]
    assert [row["name"] for row in found] == ["ethanol", "a, b"]
    for row in found:
        p = {name: float(row[f"p_{name}"]) for name in ("low", "medium", "high")}
        assert sum(p.values()) == pytest.approx(1, abs=2e-4)
        assert p[row["predicted"]] == max(p.values())
        assert float(row["agreement"]) in (0.5, 1.0)
        assert row["predicted"] in row["set_90"].split(" | ")
        assert 0 < float(row["similarity"]) <= 1
    code, out, err = lookhops("predict", model, tmp_path / "mine.csv", "-o", tmp_path / "out.csv")
    assert (code, out) == (0, "")
    assert "out.csv: 2 rows" in err
    assert rows((tmp_path / "out.csv").read_text()) == found


@pytest.mark.parametrize("options", [(), ("--duplicates", "merge"), ("--invalid", "raise")])
def test_a_row_of_separators_is_a_row(lookhops, model, tmp_path, options):
    """A line without any is none, as for other readers of CSV."""
    (tmp_path / "mine.csv").write_text("name,smiles\nethanol,CCO\n,\n\nmethane,C\n , \n")
    code, out, err = lookhops("predict", model, tmp_path / "mine.csv", *options)
    assert code == 0, err
    assert [row["name"].strip() for row in rows(out)] == ["ethanol", "", "methane", ""]
    assert [row["warning"] for row in rows(out)][1::2] == ["skipped: it is empty"] * 2
    assert "2 of 4 molecules do not parse and are left out: line 3 (it is empty), line 6" in err


def test_a_packed_file_of_smiles(lookhops, model, tmp_path):
    text = "smiles name\nCCO ethanol\nC methane\n"
    (tmp_path / "few.smi").write_text(text)
    (tmp_path / "few.smi.gz").write_bytes(gzip.compress(text.encode()))
    _, plain, _ = lookhops("predict", model, tmp_path / "few.smi")
    code, out, _ = lookhops("predict", model, tmp_path / "few.smi.gz")
    assert (code, out) == (0, plain)


def test_json(lookhops, model, tmp_path):
    (tmp_path / "mine.smi").write_text("CCO ethanol\n")
    code, out, _ = lookhops("predict", model, tmp_path / "mine.smi", "--json")
    assert code == 0
    [record] = json.loads(out)
    assert record["id"] == "ethanol"
    assert sum(record["probabilities"].values()) == pytest.approx(1)


def test_an_unlike_graph_is_warned_about(lookhops, model, tmp_path):
    (tmp_path / "mine.smi").write_text("CCO ethanol\n[SiH3][SiH2][SiH2][SiH2][SiH3] odd\n")
    code, out, err = lookhops("predict", model, tmp_path / "mine.smi", "--coverage", "0.5")
    assert code == 0
    assert [row["warning"] for row in rows(out)] == ["", "unlike the training graphs"]
    assert "set_50" in out
    assert "1 graph is unlike all that the model was trained on" in err
    code, _, err = lookhops("predict", model, tmp_path / "mine.smi", "--coverage", "90")
    assert code == 2
    assert "A coverage is between 0 and 1, not 90" in err


def test_neighbours(lookhops, model, tmp_path):
    """Columns for each, also where the first rows give no graph; the same as JSON and Parquet."""
    lines = ["C(", "CCO ethanol", "c1ccccc1 benzene"]
    (tmp_path / "mine.smi").write_text("\n".join(lines) + "\n")
    ask = ["predict", model, tmp_path / "mine.smi", "--neighbours", "2"]
    code, out, err = lookhops(*ask)
    assert code == 0, err
    found = rows(out)
    assert [row["neighbour_1"] == "" for row in found] == [True, False, False]
    _, out, _ = lookhops(*ask, "--json")
    for row, record in list(zip(found, json.loads(out), strict=True))[1:]:
        assert len(record["neighbours"]) == 2
        for rank, one in enumerate(record["neighbours"], 1):
            assert row[f"neighbour_{rank}"] == one["id"]
            assert row[f"neighbour_{rank}_smiles"] == one["smiles"]
            assert row[f"neighbour_{rank}_target"] == one["target"]
            assert float(row[f"neighbour_{rank}_similarity"]) == pytest.approx(
                one["similarity"], abs=1e-3
            )
        assert record["neighbours"][0]["similarity"] == record["similarity"]
    code, _, err = lookhops(*ask[:-1], "-2")
    assert code == 2
    assert "-2" in err


@pytest.mark.parametrize("name", ["reference.safetensors", "model.safetensors", "config.json"])
def test_a_folder_without_one_of_its_files_is_refused(lookhops, model, tmp_path, name):
    (model / name).unlink()
    (tmp_path / "mine.smi").write_text("CCO ethanol\n")
    code, _, err = lookhops("predict", model, tmp_path / "mine.smi")
    assert code == 2
    assert name in err


def test_new_graphs_are_read_as_those_of_the_training(lookhops, tmp_path):
    molecules = ["CC", "CCC", "CCCC", "CCCCC", "CO", "CCO", "CCCO", "CCCCO"] * 3
    lines = [f"{s},C,{'O' in s}" for s in molecules]
    table = "\n".join(["drawn,smiles,alcohol", *lines, "C(,C,True"]) + "\n"
    (tmp_path / "mine.csv").write_text(table)
    read = ["--smiles-column", "drawn", "--label-column", "alcohol", "--invalid", "skip"]
    network = ["--hidden", "8", "--layers", "2", "--epochs", "2"]
    model = tmp_path / "model"
    code, _, err = lookhops("train", tmp_path / "mine.csv", "-o", model, *read, *network)
    assert code == 0, err
    code, out, err = lookhops("predict", model, tmp_path / "mine.csv")
    assert code == 0, err
    found = rows(out)
    assert [row["drawn"] for row in found] == [*molecules, "C("]
    assert found[-1]["predicted"] == ""
    assert found[-1]["warning"].startswith("skipped: ")
    right = sum(row["predicted"] == row["alcohol"] for row in found[:-1])
    assert f"\n{right} of 24 as labelled" in f"\n{err}"
    code, out, err = lookhops("predict", model, tmp_path / "mine.csv", "--json")
    assert [list(record) for record in json.loads(out)][-1] == ["id", "skipped"]
    code, out, err = lookhops("explain", model, tmp_path / "mine.csv", "--json")
    assert code == 0, err
    explained = json.loads(out)["graphs"]
    assert (len(explained), list(explained[-1])) == (25, ["id", "skipped"])


def test_smiles_on_standard_input(model):
    command = [sys.executable, "-m", "lookhops", "predict", str(model), "-"]
    text = "# a remark\nCCO ethanol\n\nc1ccccc1\n"
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert [row["id"] for row in rows(done.stdout)] == ["ethanol", "c1ccccc1"]


def test_bad_smiles_on_standard_input(lookhops, model, monkeypatch):
    def typed(text: bytes):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text)))

    typed(b"CCO\nC(\n")
    code, out, err = lookhops("predict", model, "-", "--invalid", "raise")
    assert (code, out) == (2, "")
    assert "standard input, line 2" in err
    typed(b"CCO\nC(\n")
    code, out, err = lookhops("predict", model, "-")
    assert code == 0
    assert [row["predicted"] != "" for row in rows(out)] == [True, False]
    assert "line 2" in err
    typed(b"CCO \xff\n")
    code, _, err = lookhops("predict", model, "-")
    assert code == 2
    assert "not UTF-8" in err


@pytest.mark.parametrize("command", ["predict", "explain"])
def test_a_header_on_standard_input(lookhops, model, monkeypatch, command):
    def asked(text: bytes):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text)))
        return lookhops(command, model, "-", "--json")

    code, out, err = asked(b"SMILES name\nCCO ethanol\nC\n")
    assert code == 0, err
    found = json.loads(out)
    graphs = found if command == "predict" else found["graphs"]
    assert [graph["id"] for graph in graphs] == ["ethanol", "C"]
    tables = b"smiles,name\nCCO,a\n", b'name;"Smiles"\na;CCO\n', b"name\tsmiles\na\tCCO\n"
    for text in (*tables, b"sep=;\r\nsmiles;name\r\nCCO;a\r\n"):
        code, _, err = asked(text)
        assert code == 2
        assert "standard input, line 1: the header of a table, where each line is a SMILES" in err
        assert "write the table to a .csv file" in err


def test_labels_are_compared(lookhops, model):
    code, out, err = lookhops("predict", model, "solubility")
    assert code == 0
    hits = [row["predicted"] for row in rows(out)]
    assert len(hits) == 1282
    assert "of 1,282 as labelled" in err


@pytest.mark.parametrize(
    ("source", "what"),
    [
        ("hops-2", "made by 'hop-tasks-1'; the model was trained on solubility"),
        ("nowhere.csv", "nowhere.csv: no such file"),
    ],
)
def test_input_that_does_not_fit(lookhops, model, source, what):
    code, out, err = lookhops("predict", model, source)
    assert (code, out) == (2, "")
    assert what in err


def test_a_model_folder_that_is_none(lookhops, model, tmp_path):
    code, _, err = lookhops("predict", tmp_path / "nothing", "hops-1")
    assert code == 2
    assert "no such model folder" in err
    (model / "model.safetensors").write_bytes(pickle.dumps(["malice"]))
    code, _, err = lookhops("predict", model, "solubility")
    assert code == 2
    assert "model.safetensors: not a safetensors file" in err
    (model / "model.safetensors").unlink()
    code, _, err = lookhops("predict", model, "solubility")
    assert code == 2
    assert "model.safetensors: no such file" in err


def test_an_output_that_cannot_be_written(lookhops, model, tmp_path):
    (tmp_path / "file").write_text("")
    code, _, err = lookhops("predict", model, "solubility", "-o", tmp_path / "file" / "out.csv")
    assert code == 2
    assert "cannot be written" in err


@pytest.mark.parametrize("name", ["x.json", "x.xlsx", "x.csv.gz", "x.tsv"])
def test_a_file_of_another_kind_is_refused(lookhops, model, tmp_path, name):
    code, _, err = lookhops("predict", model, "solubility", "-o", tmp_path / name)
    assert code == 2
    said = "add --json > FILE" if name == "x.json" else "is written as .csv or .parquet"
    assert said in err
    assert not list(tmp_path.glob("x.*"))


def test_the_input_is_not_overwritten(lookhops, model, tmp_path, monkeypatch):
    text = "smiles\nCCO\n"
    (tmp_path / "mine.csv").write_text(text)
    (tmp_path / "link.csv").symlink_to("mine.csv")
    monkeypatch.chdir(tmp_path)
    for command in ("predict", "embed"):
        for name in ("mine.csv", "./new/../mine.csv", "link.csv"):
            code, _, err = lookhops(command, model, "mine.csv", "-o", name)
            assert code == 2
            assert f"{name.removeprefix('./')}: is the input itself; write to another file" in err
    assert (tmp_path / "mine.csv").read_text() == text
    (tmp_path / "cases").mkdir()
    (tmp_path / "cases" / "edges.csv").write_text("graph,source,target\n1,a,b\n")
    (tmp_path / "cases" / "graphs.csv").write_text("graph,class\n1,a\n")
    code, _, err = lookhops("predict", model, "cases", "-o", "cases/graphs.csv")
    assert code == 2
    assert "cases/graphs.csv: is the input itself" in err


def test_tables_are_read_as_they_were_for_training(lookhops, tmp_path):
    folder = tmp_path / "cases"
    folder.mkdir()
    rows = [(g, a, b, 1 + (g * a) % 13) for g in range(30) for a, b in ((0, 1), (1, 2), (2, 0))]
    lines = "\n".join(f"{g},{a},{b},{days}" for g, a, b, days in rows)
    (folder / "edges.csv").write_text(f"case,payer,payee,days\n{lines}\n")
    (folder / "graphs.csv").write_text(
        "case,class\n" + "\n".join(f"{g},{'ab'[g % 2]}" for g in range(30))
    )
    names = ("--graph-column", "case", "--source-column", "payer", "--target-column", "payee")
    small = ("--epochs", 1, "--hidden", 4, "--layers", 1, "--edges", "use")
    code, _, err = lookhops("train", folder, "-o", tmp_path / "m", *names, *small)
    assert code == 0, err
    reading = json.loads((tmp_path / "m" / "config.json").read_text())["reading"]
    assert (reading["graph_column"], reading["numbers"]) == ("case", "days")
    (tmp_path / "new.csv").write_text("case,payer,payee,days\nx,a,b,3\nx,b,c,4\ny,a,b,3\n")
    code, out, err = lookhops("predict", tmp_path / "m", tmp_path / "new.csv")
    assert code == 0, err
    assert [line.split(",")[0] for line in out.splitlines()] == ["id", "x", "y"]


def test_the_data_fields_of_an_sdf_file_come_back(lookhops, model, tmp_path):
    from rdkit import Chem

    fields = "> <logS>\n-1.50\n\n> <Long Name>\nthe {}\n\n$$$$\n"
    blocks = [Chem.MolToMolBlock(Chem.MolFromSmiles(s)) for s in ("CCO", "CCN")]
    records = [f"m{i}{b}{fields.format(i)}" for i, b in enumerate([*blocks, "\nbroken\n\n\n"])]
    (tmp_path / "mine.sdf").write_text("".join(records))
    (tmp_path / "mine.sdf.gz").write_bytes(gzip.compress("".join(records).encode()))
    code, out, err = lookhops("predict", model, tmp_path / "mine.sdf", "--target", "logS")
    assert code == 0, err
    assert lookhops("predict", model, tmp_path / "mine.sdf.gz", "--target", "logS")[:2] == (0, out)
    assert [list(row.values())[:4] for row in rows(out)] == [
        ["m0", "CCO", "-1.50", "the 0"],
        ["m1", "CCN", "-1.50", "the 1"],
        ["m2", "", "-1.50", "the 2"],
    ]
    assert list(rows(out)[0])[:5] == ["id", "smiles", "logS", "Long Name", "predicted"]


@pytest.mark.parametrize("blank", [False, True])
def test_all_columns_of_a_table_of_graphs_come_back(lookhops, tmp_path, blank):
    folder = tmp_path / "cases"
    folder.mkdir()
    edges = "\n".join(f"{g},{a},{b}" for g in range(30) for a, b in ((0, 1), (1, 2)))
    (folder / "edges.csv").write_text(f"graph,source,target\n{edges}\n")
    table = [f"{g},{'ab'[g % 2]},{'' if g == 2 else g / 4}" for g in range(30)]
    (folder / "graphs.csv").write_text("\n".join(["graph,class,size", *table]))
    small = ("--epochs", 1, "--hidden", 4, "--layers", 1)
    code, _, err = lookhops("train", folder, "-o", tmp_path / "m", *small)
    assert code == 0, err
    if blank:
        table = [row.replace(",a,", ",,").replace(",b,", ",,") for row in table]
        (folder / "graphs.csv").write_text("\n".join(["graph,class,size", *table]))
    code, out, err = lookhops("predict", tmp_path / "m", folder)
    assert code == 0, err
    found = rows(out)
    assert [row["class"] for row in found[:3]] == (["", "", ""] if blank else ["a", "b", "a"])
    assert [row["size"] for row in found[:3]] == ["0.0", "0.25", ""]


# -------------------------------------------------------------------- large inputs


@pytest.fixture
def many(tmp_path):
    """More molecules than one part takes, the second of them bad; and a row with a comma."""
    texts = [f'{"C" * (1 + i % 9)}O,m{i},"a, {i}",high' for i in range(1300)]
    texts[1] = "C(,m1,x,"
    (tmp_path / "many.csv").write_text("smiles,id,note,class\n" + "\n".join(texts) + "\n")
    return tmp_path / "many.csv"


def test_parts_make_no_difference_and_parquet_has_the_same_answers(
    lookhops, model, many, tmp_path, monkeypatch
):
    code, out, err = lookhops("predict", model, many)
    assert code == 0, err
    assert "1 of 1,300 molecules does not parse and is left out: line 3 (not SMILES)" in err
    monkeypatch.setattr("lookhops.sources.streams.PART", 100)
    code, again, _ = lookhops("predict", model, many, "--processes", "0")
    assert again == out
    found = rows(out)
    assert [row["id"] for row in found] == [f"m{i}" for i in range(1300)]
    assert found[5]["note"] == "a, 5"
    assert found[1]["warning"] == "skipped: not SMILES"
    code, _, err = lookhops("predict", model, many, "-o", tmp_path / "x.parquet")
    assert code == 0, err
    frame = pd.read_parquet(tmp_path / "x.parquet")
    assert list(frame) == list(found[0])
    assert frame["p_low"].dtype == float
    assert frame["p_low"].isna().tolist() == [i == 1 for i in range(1300)]
    told = [float(row["p_low"] or "nan") for row in found]
    assert frame["p_low"].tolist() == pytest.approx(told, abs=1e-4, nan_ok=True)
    assert frame["set_90"].fillna("").tolist() == [row["set_90"] for row in found]


def interrupt_the_third_part(monkeypatch):
    """Ctrl-C comes in the third of small parts; the sizes of all parts that are asked for."""
    from lookhops.models.predictor import Predictor

    monkeypatch.setattr("lookhops.sources.streams.PART", 100)
    answer, asked = Predictor.predict, []

    def interrupted(self, graphs, **options):
        asked.append(len(graphs))
        if len(asked) == 3:
            raise KeyboardInterrupt
        return answer(self, graphs, **options)

    monkeypatch.setattr(Predictor, "predict", interrupted)
    return asked


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_an_interrupted_prediction_goes_on(lookhops, model, many, tmp_path, monkeypatch, kind):

    whole, output = tmp_path / f"whole.{kind}", tmp_path / f"x.{kind}"
    code, _, err = lookhops("predict", model, many, "-o", whole)
    assert code == 0
    assert f"{whole}: 1,300 rows\n" in err
    assert "of 1,299 as labelled" in err
    asked = interrupt_the_third_part(monkeypatch)
    code, _, err = lookhops("predict", model, many, "-o", output)
    assert code == 130
    assert "holds the first 1,024 rows; the same command with --resume goes on" in err
    [part] = tmp_path.glob("x.part-*")
    assert not output.exists()
    code, _, err = lookhops("predict", model, many, "-o", output, "--resume")
    assert code == 0, err
    assert "going on after 1,024 rows" in err
    assert sum(asked[3:]) == 1300 - 1024
    assert f"{output}: 1,300 rows\n" in err
    assert "of 276 answered now as labelled" in err
    assert not part.exists()
    if kind == "csv":
        assert output.read_text() == whole.read_text()
    else:
        pd.testing.assert_frame_equal(pd.read_parquet(output), pd.read_parquet(whole))


def test_nothing_is_said_to_be_kept_where_nothing_was_written(
    lookhops, model, many, tmp_path, monkeypatch
):
    from lookhops.models.predictor import Predictor

    def interrupted(self, graphs, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(Predictor, "predict", interrupted)
    code, _, err = lookhops("predict", model, many, "-o", tmp_path / "x.csv")
    assert code == 130
    assert "lookhops: interrupted." in err
    assert "kept" not in err
    assert "holds" not in err
    assert not list(tmp_path.glob("x.*"))


def test_columns_of_a_parquet_file_keep_their_types(lookhops, model, tmp_path, monkeypatch):
    import decimal

    import pyarrow as pa
    from pyarrow import parquet

    rows, days = range(1300), pd.date_range("2024-01-01", periods=1300, tz="Europe/Berlin")
    columns = {
        "smiles": pa.array([f"{'C' * (1 + i % 9)}O" for i in rows]),
        "count": pa.array([i if i % 7 and i < 1100 else None for i in rows], pa.int32()),
        "value": pa.array([None if i % 5 == 0 else i / 8 for i in rows], pa.float32()),
        "half": pa.array(pd.Series(rows).to_numpy("float16")),
        "good": pa.array([i % 3 == 0 if i % 4 else None for i in rows]),
        "day": pa.array(days),
        "price": pa.array([decimal.Decimal(i) / 100 for i in rows]),
        "text": pa.array(["" if i == 3 else None if i == 4 else "=x" for i in rows]),
        "kind": pa.array(["ab"[i % 2] for i in rows]).dictionary_encode(),
        "list": pa.array([[i] for i in rows]),
    }
    table = pa.table(columns)
    path, output = tmp_path / "typed.parquet", tmp_path / "x.parquet"
    parquet.write_table(table, path)
    interrupt_the_third_part(monkeypatch)
    code, _, err = lookhops("predict", model, path, "-o", output)
    assert code == 130, err
    code, _, err = lookhops("predict", model, path, "-o", output, "--resume")
    assert code == 0, err
    assert "going on after 1,024 rows" in err
    found = parquet.read_table(output)
    for name in columns:
        if name != "list":
            assert found[name].type == table[name].type, name
            assert found[name].to_pylist() == table[name].to_pylist(), name
    assert found["list"].to_pylist()[:2] == ["[0]", "[1]"]
    assert set(found["warning"].to_pylist()) <= {None, "unlike the training graphs"}
    code, _, err = lookhops("predict", model, path, "-o", tmp_path / "x.csv")
    assert code == 0, err
    first = pd.read_csv(tmp_path / "x.csv", dtype=str, keep_default_na=False).iloc[0]
    assert first["day"] == "2024-01-01 00:00:00+01:00"
    assert (first["count"], first["value"], first["good"], first["text"]) == ("", "", "", "'=x")
    merged = ("-o", tmp_path / "m.parquet", "--duplicates", "merge")
    code, _, err = lookhops("predict", model, path, *merged)
    assert code == 0, err
    assert parquet.read_table(tmp_path / "m.parquet").schema.field("day") == table.schema.field(
        "day"
    )


def test_numbers_that_packed_graphs_carry_are_numbers_in_parquet(lookhops, model, tmp_path):
    from dataclasses import replace

    import numpy as np

    from lookhops.sources.loading import load

    graphs = load("solubility")[:3]
    more = {"count": np.array([1, 2, 3]), "value": np.array([0.5, np.nan, 1.0])}
    replace(graphs, columns={**graphs.columns, **more}).save(tmp_path / "mine.graphs")
    for kind in ("parquet", "csv"):
        to = tmp_path / f"x.{kind}"
        code, _, err = lookhops("predict", model, tmp_path / "mine.graphs", "-o", to)
        assert code == 0, err
    frame = pd.read_parquet(tmp_path / "x.parquet")
    assert (frame["count"].tolist(), frame["count"].dtype) == ([1, 2, 3], np.int64)
    assert frame["value"].isna().tolist() == [False, True, False]
    assert frame["class"].tolist() == [graphs.class_names[c] for c in graphs.y]
    found = rows((tmp_path / "x.csv").read_text())
    assert [row["value"] for row in found] == ["0.5", "", "1.0"]


def test_a_molecule_that_crashes_rdkit_costs_its_own_row(lookhops, model, many, monkeypatch):
    from lookhops.sources.molecule_streams import MoleculeStream

    plain = MoleculeStream.structures

    def deadly(stream, rows):
        pairs = zip(rows, plain(stream, rows), strict=True)
        return [Deadly(text) if row.number == 5 else text for row, text in pairs]

    monkeypatch.setattr(MoleculeStream, "structures", deadly)
    code, out, err = lookhops("predict", model, many, "--processes", "1")
    assert code == 0, err
    found = rows(out)
    assert found[3]["warning"] == "skipped: RDKit crashes on it"
    assert sum(bool(row["predicted"]) for row in found) == 1298
    assert "line 5 (RDKit crashes on it)" in err


def test_resume_needs_a_file(lookhops, model, many):
    code, _, err = lookhops("predict", model, many, "--resume")
    assert code == 2
    assert "--resume goes on with a file" in err
    code, _, err = lookhops("predict", model, many, "--processes", "-1")
    assert code == 2
    assert "--processes is a number from 0, not -1" in err


def test_what_is_read_otherwise_is_said_once(lookhops, tmp_path):
    """Tables are read when they are opened, and again in parts."""
    for name, size in (("known", "1.5"), ("blank", "")):
        folder = tmp_path / name
        folder.mkdir()
        graphs = range(30)
        (folder / "edges.csv").write_text(
            "graph,source,target\n" + "".join(f"{g},0,1\n{g},1,2\n" for g in graphs)
        )
        (folder / "nodes.csv").write_text(
            "graph,node,size\n"
            + "".join(
                f"{g},{n},{size if (g, n) == (3, 0) else g + n / 2}\n"
                for g in graphs
                for n in range(3)
            )
        )
        (folder / "graphs.csv").write_text(
            "graph,class\n" + "".join(f"{g},{'ab'[g % 2]}\n" for g in graphs)
        )
    model = tmp_path / "model"
    small = ("--epochs", 1, "--seeds", 1, "--hidden", 4, "--layers", 1, "--device", "cpu")
    code, _, err = lookhops("train", tmp_path / "known", "-o", model, *small)
    assert code == 0, err
    for command in (("predict",), ("evaluate",), ("embed", "-o", tmp_path / "x.npy")):
        code, _, err = lookhops(command[0], model, tmp_path / "blank", *command[1:])
        assert code == 0, err
        assert err.count("of which the model knows no blanks") == 1
