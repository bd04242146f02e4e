"""Tables in files of every kind, and every way a file can be wrong."""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path

import networkx as nx
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

import lookhops
from lookhops import Graphs, LookHopsError
from lookhops.sources.tables import read_tables

EDGES = "graph,source,target,amount,kind\nx,01,1,0.5,wire\nx,1,c,1.25,card\ny,01,NA,2.5,card\n"
NODES = "graph,node,age,role\nx,01,30.5,old\nx,1,20,new\nx,c,,new\ny,01,41,old\ny,NA,22,vip\n"
GRAPHS = "graph,class,note\nx,fine,a\ny,fraud,\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "bank").mkdir()
    for name, text in (("edges", EDGES), ("nodes", NODES), ("graphs", GRAPHS)):
        (tmp_path / "bank" / f"{name}.csv").write_text(text)
    return tmp_path / "bank"


def message(source: Path | str, **options) -> str:
    with pytest.raises(LookHopsError) as error:
        lookhops.load(source, **options)
    return str(error.value)


def test_a_folder(folder: Path):
    graphs = lookhops.load(folder)
    assert graphs.name == "bank"
    assert graphs.columns["id"].tolist() == ["x", "y"]
    assert graphs.nodes_per_graph.tolist() == [3, 2]  # 01 is not 1, NA is a node
    assert graphs.class_names == ("fine", "fraud")
    assert graphs.nodes.number_names == ("age",)
    assert graphs.nodes.numbers[:, 0].isnan().tolist() == [False, False, True, False, False]
    assert graphs.nodes.label_values == (("new", "old", "vip"),)
    assert graphs.columns["note"].tolist() == ["a", ""]


def test_files_of_all_kinds_are_the_same(folder: Path, tmp_path: Path):
    wanted = lookhops.load(folder).fingerprint
    ids = dict.fromkeys(("graph", "source", "target", "node"), str)
    frames = {
        name: pd.read_csv(
            folder / f"{name}.csv", dtype=ids, keep_default_na=False, na_values={"age": [""]}
        )
        for name in ("edges", "nodes", "graphs")
    }
    for kind in ("tsv", "csv.gz", "parquet"):
        (tmp_path / kind).mkdir()
        for name, frame in frames.items():
            path = tmp_path / kind / f"{name}.{kind}"
            if kind == "parquet":
                frame.to_parquet(path)
            else:
                frame.to_csv(path, sep="\t" if kind == "tsv" else ",")  # with its row numbers
        assert lookhops.load(tmp_path / kind).fingerprint == wanted
    files = {name: folder / f"{name}.csv" for name in frames}
    assert read_tables(**files, name="bank").fingerprint == wanted
    semicolons = tmp_path / "semicolons.csv"
    semicolons.write_text("\ufeff\n" + EDGES.replace(",", " ; ").replace("\n", "\r\n"))
    assert lookhops.load(semicolons).columns["id"].tolist() == ["x", "y"]


def test_what_excel_writes_for_errors_is_blank(folder: Path):
    text = NODES.replace("20,new", "#DIV/0!,new").replace("41,old", "41,#N/A").replace("vip", "Na")
    (folder / "nodes.csv").write_text(text)
    graphs = lookhops.load(folder)
    assert graphs.nodes.numbers[:, 0].isnan().tolist() == [False, True, True, False, False]
    assert graphs.nodes.label_values == (("Na", "new", "old", "(blank)"),)


def test_decimal_commas_are_points_where_they_separate_no_fields(folder: Path):
    text = (folder / "nodes.csv").read_text().replace(",", ";").replace("30.5", "30,5")
    (folder / "nodes.csv").write_text(text)
    with pytest.warns(UserWarning, match=r"nodes\.csv.*age"):
        graphs = lookhops.load(folder)
    assert graphs.nodes.number_names == ("age",)
    assert graphs.nodes.numbers[[0, 1, 3], 0].tolist() == [30.5, 20, 41]
    told = lookhops.load(folder, categories="age")
    assert told.nodes.label_values[0] == ("20", "22", "30,5", "41", "(blank)")


@pytest.mark.parametrize("cells", [("1,200.50", "900"), ("12%", "7.5%"), ("8,4", "9")])
def test_what_looks_like_numbers_is_said(tmp_path: Path, cells: tuple[str, str]):
    rows = "".join(f'x,{i},{i + 1},"{cells[i % 2]}"\n' for i in range(30))
    (tmp_path / "edges.csv").write_text(f"graph,source,target,amount\n{rows}")
    with pytest.warns(UserWarning, match=f"line 2: '{cells[0]}'.*'amount'"):
        graphs = lookhops.load(tmp_path)
    assert graphs.edges.label_names == ("amount",)


def test_an_edge_list(folder: Path):
    graphs = lookhops.load(folder / "edges.csv")
    assert graphs.name == "edges"
    assert graphs.edges.number_names == ("amount",)
    assert graphs.edges.label_names == ("kind",)
    assert lookhops.load(folder / "edges.csv", directed=True).num_edges == 3


def test_an_edge_list_with_other_names_is_asked_for_its_columns(tmp_path: Path):
    path = tmp_path / "transfers.csv"
    path.write_text("case,payer,payee\n1,a,b\n2,a,c\n")
    said = message(path)
    assert said.startswith(f"{path}: neither molecules nor edges of graphs; the columns are case")
    assert "--source-column" in said
    told = {"graph_column": "case", "source_column": "payer", "target_column": "payee"}
    graphs = lookhops.load(path, **told)
    assert len(graphs) == 2
    path.write_text("from,to,weight\n1,2,3\n")
    said = message(path)
    assert "no column says to which graph an edge belongs; the columns are from, to" in said
    assert "SMILES" not in said


def test_molecules_in_tables_of_other_kinds(tmp_path: Path):
    frame = pd.DataFrame({"SMILES": ["CCO", "C"], "class": ["a", "b"], "mass": [46.0, 16.0]})
    frame.to_parquet(tmp_path / "m.parquet")
    frame.to_csv(tmp_path / "m.tsv", sep="\t", index=False)
    frame.to_csv(tmp_path / "m.csv.gz", index=False)
    for name in ("m.parquet", "m.tsv", "m.csv.gz"):
        graphs = lookhops.load(tmp_path / name)
        assert graphs.columns["smiles"].tolist() == ["CCO", "C"]
        assert graphs.class_names == ("a", "b")
        assert graphs.columns["mass"].tolist() == [46.0, 16.0]
        assert graphs.name == "m"


# -------------------------------------------------------------------- node-link


def test_node_link_as_networkx_writes_it(tmp_path: Path):
    graphs = [nx.path_graph(4), nx.star_graph(3)]
    for number, graph in enumerate(graphs):
        graph.graph.update({"id": f"g{number}", "class": "star" if number else "path"})
        for node in graph:
            graph.nodes[node].update(role="end" if graph.degree[node] == 1 else "mid")
        for a, b in graph.edges:
            graph.edges[a, b]["length"] = a + b / 2
    lines = [json.dumps(nx.node_link_data(graph, edges="links")) for graph in graphs]
    (tmp_path / "few.jsonl").write_text("\n\n".join(lines) + "\n")
    found = lookhops.load(tmp_path / "few.jsonl")
    wanted = Graphs.from_networkx(graphs, [graph.graph["class"] for graph in graphs])
    assert found.edge_index.tolist() == wanted.edge_index.tolist()
    assert found.nodes.labels.tolist() == wanted.nodes.labels.tolist()
    assert found.edges.numbers.tolist() == wanted.edges.numbers.tolist()
    assert found.y.tolist() == wanted.y.tolist()
    assert found.columns["id"].tolist() == ["g0", "g1"]


@pytest.mark.parametrize(
    ("lines", "sentence"),
    [
        ("", "the file is empty"),
        ("{", "line 1: not JSON"),
        ('{"id": ' + "1" * 5000 + "}", "line 1: not JSON"),
        (
            '{"nodes": [{"id": 1}]}\n[]',
            "not a graph (the content is [], not an object); one is",
        ),
        ('{"nodes": [{"name": 1}], "edges": []}', "line 1: not a graph (nodes[0].id is missing)"),
        ('{"nodes": [{"id": 1}], "edges": [{"source": 1}]}', "(edges[0].target is missing)"),
        (
            '{"nodes": [{"id": 1}], "edges": [{"source": 1, "target": 2}]}',
            "line 1, edge 1: node '2' of graph '1' is in no row",
        ),
        (
            '{"nodes": [{"id": 1}, {"id": 1}], "edges": [{"source": 1, "target": 1}]}',
            "line 1, node 2: node '1' of graph '1' stands in line 1, node 1 already",
        ),
        (
            '{"nodes": [{"id": 1}]}\n{"nodes": [{"id": 1}], "directed": true}',
            "of lines 1 and 2 one graph is directed",
        ),
    ],
)
def test_node_link_that_is_none(tmp_path: Path, lines: str, sentence: str):
    path = tmp_path / "bad.jsonl"
    path.write_text(lines)
    said = message(path)
    assert said.startswith(str(path))
    assert sentence in said


def test_node_link_without_edges(tmp_path: Path):
    (tmp_path / "points.jsonl").write_text('{"nodes": [{"id": 1}, {"id": 2}]}\n')
    assert lookhops.load(tmp_path / "points.jsonl").num_edges == 0


# -------------------------------------------------------------------- bad files


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", ": the file is empty"),
        ("graph,source,target\n", ": there are no rows below the columns' names"),
        ("graph,source,source,target\n1,2,3,4\n", ", line 1: two columns are called 'source'"),
        ("graph,source,target\n1,a,b\n\n1,a\n", ", line 4: 2 fields, where the header has 3"),
        ("graph,source,target\n1,a,b\n1,a,b,c\n", ", line 3: 4 fields, where the header has 3"),
        ('graph,source,target\n1,"a,b\n1,a,b\n', ", line 2: not a line of a CSV"),
        ("graph,source,target\n1,a,b\n1,,b\n", ", line 3: the column 'source' is empty there"),
        ("graph,source,target,w\n" + "1,a,b,2.5\n" * 19 + "1,a,b,x\n", ", line 21: 'x' in the"),
        ('graph,source,target,w\n1,"a\nb",b,1\n1,a,b,inf\n', ", line 4: 'inf' in the column 'w'"),
        (b"graph,source,target\n1,a,b\n1,\xff,b\n", ", line 3: not UTF-8 text"),
    ],
)
@pytest.mark.filterwarnings("ignore:.*repeat earlier ones")
def test_bad_files(tmp_path: Path, text: str | bytes, sentence: str):
    path = tmp_path / "bad.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    assert f"{path}{sentence}" in message(path)


def test_files_that_are_not_what_they_are_called(tmp_path: Path):
    (tmp_path / "a.csv.gz").write_bytes(b"graph,source\n")
    assert "a.csv.gz: not a whole gzip file" in message(tmp_path / "a.csv.gz")
    bomb = gzip.compress(EDGES.encode() + b"1,1,2\n" * (7 << 20), 1)
    assert len(bomb) < 1 << 20
    (tmp_path / "bomb.csv.gz").write_bytes(bomb)
    assert "bomb.csv.gz: would have over 33,554,432 bytes" in message(tmp_path / "bomb.csv.gz")
    (tmp_path / "b.csv.gz").write_bytes(gzip.compress(EDGES.encode())[:-9])
    assert "b.csv.gz: not a whole gzip file" in message(tmp_path / "b.csv.gz")
    numbers, texts = pa.array([1.0, 2.0]), pa.array([b"CCO", b"\xff\xfe"])
    parquet.write_table(
        pa.table([texts, numbers, numbers], ["smiles", "y", "y"]), tmp_path / "d.parquet"
    )
    assert "d.parquet: two columns are called 'y'" in message(tmp_path / "d.parquet")
    texts = pa.Array.from_buffers(pa.string(), 2, texts.buffers())  # which are not UTF-8
    parquet.write_table(pa.table([texts, numbers], ["smiles", "y"]), tmp_path / "e.parquet")
    assert "e.parquet: not a Parquet file" in message(tmp_path / "e.parquet")
    (tmp_path / "c.parquet").write_bytes(b"graph,source\n")
    assert "c.parquet: not a Parquet file" in message(tmp_path / "c.parquet")


def test_a_list_beside_an_edge_that_is_repeated(tmp_path: Path):
    path = tmp_path / "edges.parquet"
    edges = {"graph": [1, 1], "source": [1, 1], "target": [2, 2], "parts": [[1], [1]]}
    pd.DataFrame(edges).to_parquet(path)
    with pytest.warns(UserWarning, match="1 row of 2"):
        assert len(lookhops.load(path)) == 1


def test_two_tables_of_one_kind(folder: Path):
    (folder / "edges.tsv").write_text(EDGES)
    assert "which table of edges? There are edges.csv and edges.tsv" in message(folder)


@pytest.mark.parametrize("blank", ["", "  ", "\t"])
def test_blank_lines_are_left_out_and_counted(tmp_path: Path, blank: str):
    path = tmp_path / "edges.csv"
    lines = [blank, "graph,source,target", "x,a,b", blank, "x,b,c", blank, blank, "x,,d"]
    path.write_text("\n".join(lines))
    with pytest.raises(LookHopsError, match=r"edges\.csv, line 8.*'source'"):
        read_tables(path)
    path.write_text("\n".join(lines[:-1]))
    assert read_tables(path).num_edges == 4


def test_parquet_without_pyarrow(tmp_path: Path, monkeypatch):
    pd.DataFrame({"graph": [1], "source": [1], "target": [2]}).to_parquet(tmp_path / "e.parquet")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert "e.parquet: Parquet files are read with pyarrow: pip" in message(tmp_path / "e.parquet")
