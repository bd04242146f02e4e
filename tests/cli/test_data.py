"""`lookhops data`: whole commands."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from lookhops import Graphs
from lookhops.sources.loading import read_tu
from tu_files import TINY, write_zip

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("LOOKHOPS_DATA", raising=False)
    write_zip(tmp_path / "TINY.zip", TINY)
    return tmp_path


def test_info(lookhops: Run, folder: Path):
    code, out, err = lookhops("data", "info", "TINY", "--data-dir", folder)
    assert (code, err) == (0, "")
    rows = {line[3:20].strip(): line[20:-1].split() for line in out.splitlines() if line.strip()}
    assert rows["graphs"] == ["2"]
    assert rows["nodes"] == ["5"]
    assert rows["undirected edges"] == ["4"]
    assert rows["nodes per graph"][0] == "2.5000"
    assert rows["edges per graph"] == ["2.0000"]
    assert rows["edges per node"] == ["0.8000"]
    assert rows["features"][0] == "6"
    assert rows["edge features"] == ["3"]
    assert rows["classes"] == ["2"]
    assert out.count("50.0 %") == 2
    assert max(map(len, out.splitlines())) <= 80


def test_tables(lookhops: Run, tmp_path: Path):
    table = pd.DataFrame({"graph": [1, 1, 2], "from": list("abc"), "to": list("bca")})
    table.to_parquet(tmp_path / "e.parquet")
    (tmp_path / "n.csv").write_text("graph,node,age\n1,a,3.5\n1,b,4\n1,c,5\n2,c,6\n2,a,7\n")
    (tmp_path / "g.csv").write_text("graph,label\n1,fine\n2,fraud\n")
    files = ("--graphs", tmp_path / "g.csv", "--nodes", tmp_path / "n.csv")
    edges, out = ("--edges", tmp_path / "e.parquet"), tmp_path / "mine.graphs"
    code, said, err = lookhops("data", "convert", *files, *edges, out)
    assert (code, err) == (0, "label: learnt as classes (fine, fraud)\n")
    assert "mine.graphs: 2 graphs" in said
    graphs = Graphs.load(out)
    assert (graphs.name, graphs.class_names) == ("mine", ("fine", "fraud"))
    code, said, _ = lookhops("data", "info", tmp_path / "e.parquet", "--directed", "--json")
    assert json.loads(said)["directed"] is True
    code, said, err = lookhops("data", "convert", *files, *edges, "x.csv", out)
    assert code == 2
    assert err == "lookhops: Name one source and OUT; or --edges (--nodes, --graphs), and OUT.\n"
    code, said, err = lookhops("data", "convert", *edges, "--smiles-column", "s", out)
    assert code == 2
    assert "smiles_column is an option of molecules alone" in err


def test_example(lookhops: Run, tmp_path: Path):
    code, out, err = lookhops("data", "example", tmp_path / "few")
    assert (code, err) == (0, "")
    assert out.endswith("few: edges.csv, nodes.csv, graphs.csv\n")
    code, _, err = lookhops("data", "example", tmp_path / "few")
    assert code == 2
    assert "is there already; name another folder" in err


def test_info_as_json(lookhops: Run, folder: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("LOOKHOPS_DATA", str(folder))
    code, out, err = lookhops("data", "info", "TINY", "--json")
    assert (code, err) == (0, "")
    facts = json.loads(out)
    assert facts["class_balance"] == {"-1": 1, "1": 1}
    assert facts["directed"] is False
    assert facts["largest_graph"] == 3
    assert facts["node_labels"] == {"label 0": ["3", "4", "5", "6"]}
    assert facts["node_numbers"] == ["number 0", "number 1"]
    assert list(facts["edge_labels"]) == ["label 0"]


# The paper's Table 1: graphs, nodes, edges, nodes per graph, edges per node, features, classes.
TABLE_1 = {
    "PROTEINS": (1113, 43471, 81044, 39.0575, 1.8643, 4, 2),
    "DD": (1178, 334925, 843046, 284.3166, 2.5171, 89, 2),
    "NCI1": (4110, 122747, 132753, 29.8655, 1.0815, 37, 2),
    "NCI109": (4127, 122494, 132604, 29.6811, 1.0825, 38, 2),
    "Mutagenicity": (4337, 131488, 133447, 30.3177, 1.0149, 14, 2),
}


@pytest.mark.data
@pytest.mark.parametrize("name", TABLE_1)
def test_info_prints_the_papers_table(lookhops: Run, data_dir: Path, name: str):
    code, out, _ = lookhops("data", "info", name, "--data-dir", data_dir, "--json")
    assert code == 0
    facts = json.loads(out)
    keys = ("graphs", "nodes", "undirected_edges", "nodes_per_graph", "edges_per_node")
    found = tuple(round(facts[key], 4) for key in (*keys, "features", "classes"))
    assert found == TABLE_1[name]


def test_info_of_odd_sets(lookhops: Run, tmp_path: Path):
    import torch

    none = torch.zeros(0, dtype=torch.long)
    sets = {
        "nothing": Graphs.from_edges(none, none, none),
        "empty graphs": Graphs.from_edges(none, none, torch.zeros(2, dtype=torch.long)),
        "one way": Graphs.from_edges(torch.tensor([0]), torch.tensor([1]), torch.tensor([2])),
    }
    for name, graphs in sets.items():
        graphs.save(tmp_path / f"{name}.graphs")
        code, out, _ = lookhops("data", "info", tmp_path / f"{name}.graphs")
        assert code == 0
        assert "column of ones" in out
        assert "not known" in out
        assert ("directed ones" in out) == (name == "one way")


def test_convert(lookhops: Run, folder: Path):
    target = folder / "out" / "tiny.graphs"
    code, out, err = lookhops("data", "convert", folder / "TINY.zip", target, "--json")
    assert (code, err) == (0, "")
    assert json.loads(out) == {"path": str(target), "graphs": 2, "bytes": target.stat().st_size}
    assert Graphs.load(target).fingerprint == read_tu(folder / "TINY.zip").fingerprint
    code, out, err = lookhops("data", "convert", target, folder / "again.graphs")
    assert code == 0
    assert "2 graphs" in out
    code, out, err = lookhops("data", "convert", target, folder / "TINY.zip")
    assert code == 2
    assert "ends in .graphs" in err
    assert len(read_tu(folder / "TINY.zip")) == 2


def test_convert_of_a_task(lookhops: Run, tmp_path: Path):
    target = tmp_path / "task.graphs"
    options = ("--task-size", 12, "--task-seed", 1)
    code, _, _ = lookhops("data", "convert", "hops-1", target, *options)
    assert code == 0
    assert len(Graphs.load(target)) == 12


def test_list(lookhops: Run, folder: Path):
    code, out, _ = lookhops("data", "list", "--data-dir", folder)
    assert code == 0
    assert "TINY*" in out
    assert "NCI1" in out
    assert "solubility" in out
    assert max(map(len, out.splitlines())) <= 80
    code, out, _ = lookhops("data", "list", "--data-dir", folder, "--json")
    found = {entry["name"]: entry for entry in json.loads(out)["sets"]}
    assert found["TINY"]["local"]
    assert not found["NCI1"]["local"]
    assert {"solubility", "hops-1", "hops-6", "Tox21_AhR_training"} <= set(found)


def test_fetch(lookhops: Run, folder: Path):
    code, out, _ = lookhops("data", "fetch", "TINY", "--data-dir", folder, "--json")
    assert code == 0
    expected = {"name": "TINY", "path": str(folder / "TINY.zip"), "downloaded": False}
    assert json.loads(out) == [expected]
    code, _, err = lookhops("data", "fetch", "NCI2", "--data-dir", folder)
    assert code == 2
    assert "did you mean NCI1" in err
    code, _, err = lookhops("data", "fetch", "solubility", "--data-dir", folder)
    assert code == 2
    assert "nothing to fetch" in err


@pytest.mark.parametrize(
    "arguments",
    [
        ("data",),
        ("data", "info"),
        ("data", "nothing"),
        ("data", "info", "TINY", "--no-such-option"),
        ("data", "info", "hops-1", "--task-size", "0"),
        ("data", "info", "hops-1", "--task-size", "many"),
        ("data", "info", "hops-1", "--invalid", "ignore"),
        ("data", "info", "hops-0"),
        ("data", "info", "hops-1", "--label-column", "y"),
        ("data", "fetch"),
    ],
)
def test_wrong_calls_exit_with_2(lookhops: Run, arguments: tuple[str, ...]):
    code, _, err = lookhops(*arguments)
    assert code == 2
    assert "Traceback" not in err


def test_skipped_molecules_are_warned_of_on_stderr(lookhops: Run, tmp_path: Path):
    path = tmp_path / "some.csv"
    path.write_text("smiles,class\nCCO,no\nc1ccccc1,yes\nC1CC,yes\n")
    code, out, err = lookhops("data", "info", path, "--invalid", "skip", "--json")
    assert code == 0
    assert json.loads(out)["graphs"] == 2
    assert "warning:" in err
    assert "line 4" in err


def test_as_a_module_in_a_process_of_its_own(folder: Path):
    def run(path: Path) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "lookhops", "data", "info", str(path), "--json"]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    done = run(folder / "TINY.zip")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["graphs"] == 2
    done = run(folder / "none.zip")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"lookhops: {folder / 'none.zip'}: no such file or folder.\n"


def test_info_of_numbers_and_several_targets(lookhops: Run):
    code, out, err = lookhops("data", "info", "solubility", "--target", "value")
    assert code == 0, err
    assert "numbers from -11.62 to 1.58" in out
    code, out, err = lookhops("data", "info", "solubility", "--target", "class,value", "--json")
    assert code == 0, err
    first, second = json.loads(out)["targets"]
    assert (first["classes"], second["known"]) == (["low", "medium", "high"], 1282)
