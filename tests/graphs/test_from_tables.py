"""Graphs from frames: against NetworkX, and every way a table can be wrong."""

from __future__ import annotations

import warnings
from datetime import date, time
from decimal import Decimal

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lookhops import Graphs, LookHopsError, load

EDGES = {
    "graph": ["x", "x", "y", "y"],
    "source": ["a", "b", "a", "c"],
    "target": ["b", "c", "c", "d"],
    "amount": [0.5, 1.25, 2.0, 8.0],
    "kind": ["wire", "card", "card", "cash"],
}
NODES = {
    "graph": ["y", "x", "x", "x", "y", "y", "y"],
    "node": ["a", "c", "b", "a", "d", "c", "alone"],
    "age": [30.5, 20.0, 50.0, 41.0, 22.0, np.nan, 60.0],
    "role": ["old", "new", "new", None, "vip", "old", "new"],
    "level": [1, 2, 3, 1, 2, 3, 1],
    "member": [True, False, True, True, True, False, False],
}
GRAPHS = {"graph": ["y", "x"], "class": ["fraud", "fine"], "size": [10, 20], "note": ["", "n"]}


def refused(*args, named: tuple[str, ...], **options) -> None:
    """Tables are refused by a sentence with these names."""
    with pytest.raises(LookHopsError) as error:
        Graphs.from_tables(*args, **options)
    assert [name for name in named if name not in str(error.value)] == []


def test_three_tables():
    graphs = Graphs.from_tables(EDGES, NODES, GRAPHS, name="mine")
    assert (graphs.name, len(graphs)) == ("mine", 2)
    assert graphs.columns["id"].tolist() == ["y", "x"]
    assert graphs.columns["size"].tolist() == [10, 20]
    assert graphs.columns["note"].tolist() == ["", "n"]
    assert graphs.class_names == ("fine", "fraud")
    assert graphs.y.tolist() == [1, 0]
    assert graphs.nodes_per_graph.tolist() == [4, 3]
    assert graphs.is_undirected
    assert graphs.nodes.number_names == ("age",)
    np.testing.assert_array_equal(
        graphs.nodes.numbers[:, 0], np.float32([30.5, 22, np.nan, 60, 20, 50, 41])
    )
    assert graphs.nodes.label_names == ("role", "level", "member")
    assert graphs.nodes.label_values[0] == ("new", "old", "vip", "(blank)")
    assert graphs.nodes.label_values[1:] == (("1", "2", "3"), ("False", "True"))
    assert graphs.nodes.labels[:, 0].tolist() == [1, 2, 1, 0, 0, 0, 3]
    assert graphs.edges.number_names == ("amount",)
    assert graphs.edges.label_values == (("card", "cash", "wire"),)
    pairs = map(tuple, graphs.edge_index.t().tolist())
    assert dict(zip(pairs, graphs.edges.numbers[:, 0].tolist(), strict=True)) == {
        (0, 2): 2.0, (2, 0): 2.0, (1, 2): 8.0, (2, 1): 8.0,
        (6, 5): 0.5, (5, 6): 0.5, (5, 4): 1.25, (4, 5): 1.25,
    }  # fmt: skip


def test_an_edge_list_alone():
    edges = {**EDGES, "label": ["no", "no", "yes", "yes"], "weight": [1, 2, 1, 2]}
    graphs = Graphs.from_tables(edges)
    assert graphs.columns["id"].tolist() == ["x", "y"]
    assert graphs.class_names == ("no", "yes")
    assert graphs.nodes_per_graph.tolist() == [3, 3]
    assert graphs.num_features == 0
    assert graphs.edges.number_names == ("amount", "weight")
    assert graphs.edges.label_names == ("kind",)
    turned = Graphs.from_tables(edges, weight_column="amount", ignore="weight, kind")
    assert turned.edges.number_names == ("weight",)
    assert turned.edges.labels is None
    other = Graphs.from_tables({**edges, "label": ["no", "yes", "yes", "yes"]})
    assert other.y is None
    assert other.edges.label_names == ("kind", "label")


def test_columns_by_other_names():
    edges = pd.DataFrame(EDGES).rename(columns={"graph": "Case", "source": "From", "target": "TO"})
    graphs = Graphs.from_tables(edges, graph_column="case")
    assert graphs.fingerprint == Graphs.from_tables(EDGES).fingerprint
    strange = edges.rename(columns={"From": "payer", "TO": "payee"})
    told = {"graph_column": "Case", "source_column": "payer", "target_column": "payee"}
    assert Graphs.from_tables(strange, **told).fingerprint == graphs.fingerprint
    named = "edges", "Case, payer", "source_column (--source-column)"
    refused(strange, graph_column="Case", named=named)
    refused(EDGES, node_column="nowhere", named=("'nowhere'",))


def test_what_the_columns_are_can_be_told():
    graphs = Graphs.from_tables(EDGES, NODES, numbers="level", categories="age,role", ignore="kind")
    assert graphs.nodes.number_names == ("level",)
    assert graphs.nodes.label_names == ("age", "role", "member")
    ages = ("20.0", "22.0", "30.5", "41.0", "50.0", "60.0", "(blank)")
    assert graphs.nodes.label_values[0] == ages
    assert graphs.edges.labels is None


def test_directions():
    directed = Graphs.from_tables(EDGES, directed=True)
    assert directed.num_edges == 4
    assert not directed.is_undirected
    both = {key: [*EDGES[key], *EDGES[key]] for key in ("graph", "amount", "kind")}
    both["source"] = EDGES["source"] + EDGES["target"]
    both["target"] = EDGES["target"] + EDGES["source"]
    assert Graphs.from_tables(both).fingerprint == Graphs.from_tables(EDGES).fingerprint


def test_nodes_that_are_the_same_in_every_graph():
    accounts = {"id": ["a", "b", "c", "d", "z"], "country": ["de", "fr", "fr", "it", "de"]}
    with pytest.warns(UserWarning, match=r"1 of .*5 nodes"):
        graphs = Graphs.from_tables(EDGES, accounts)
    assert graphs.nodes.label_values == (("de", "fr", "it"),)
    assert graphs.nodes.labels[:, 0].tolist() == [0, 1, 1, 0, 1, 2]


def test_edges_whose_nodes_say_the_graph():
    nodes = {"graph": ["p", "q", "p", "q"], "node": [1, 2, 3, 4]}
    graphs = Graphs.from_tables({"source": [1, 2], "target": [3, 4]}, nodes)
    assert graphs.edge_index.tolist() == [[1, 0, 3, 2], [0, 1, 2, 3]]
    across = {"source": [1, 2], "target": [3, 3]}
    refused(across, nodes, named=("edges, row 1", "'2' of 'q'", "'3' of 'p'"))
    shared = {"graph": ["p", "q"], "node": [1, 1]}
    refused({"source": [1], "target": [1]}, shared, named=("edges", "column 'graph'"))


def test_frames_of_all_kinds():
    pa = pytest.importorskip("pyarrow")
    wanted = Graphs.from_tables(pd.DataFrame(EDGES), pd.DataFrame(NODES), pd.DataFrame(GRAPHS))
    arrow = [pa.Table.from_pandas(pd.DataFrame(table)) for table in (EDGES, NODES, GRAPHS)]
    assert Graphs.from_tables(*arrow).fingerprint == wanted.fingerprint
    records = pd.DataFrame(EDGES).to_records(index=False)
    alone = Graphs.from_tables(EDGES)
    assert Graphs.from_tables(np.asarray(records)).fingerprint == alone.fingerprint
    numbers = np.array([[0, 5, 7], [0, 7, 9], [4, 5, 7]])
    assert Graphs.from_tables(numbers).nodes_per_graph.tolist() == [3, 2]


def test_polars_frames():
    pl = pytest.importorskip("polars")
    frames = [pl.DataFrame(table, strict=False) for table in (EDGES, NODES, GRAPHS)]
    wanted = Graphs.from_tables(EDGES, NODES, GRAPHS)
    assert Graphs.from_tables(*frames).fingerprint == wanted.fingerprint


def test_rows_of_one_edge_are_kept():
    """Those that differ without a word, those that are the same with one."""
    twice = {name: [*cells, cells[0]] for name, cells in EDGES.items()}
    with pytest.warns(UserWarning, match=r"1 row of 5.*row 4"):
        graphs = Graphs.from_tables(twice)
    assert graphs.num_edges == 10
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        other = Graphs.from_tables({**twice, "amount": [0.5, 1.25, 2.0, 8.0, 0.75]})
    first = (other.source == 0) & (other.target == 1)
    assert sorted(other.edges.numbers[first, 0].tolist()) == [0.5, 0.75]


def test_ids_of_any_type():
    ids = pd.to_datetime(["2020-01-01", "2020-01-02", "2020-01-01", "2020-01-03"])
    graphs = Graphs.from_tables({**EDGES, "source": ids, "target": [1, 2.5, "a", ("t", 1)]})
    assert graphs.nodes_per_graph.tolist() == [4, 4]
    floats = {**EDGES, "source": [1.0, 2.0, 1.0, 3.0], "target": [2, 3, 3, 1]}
    assert Graphs.from_tables(floats).nodes_per_graph.tolist() == [3, 2]


def test_graphs_without_nodes():
    more = {"graph": ["y", "empty", "x"], "class": ["a", "b", "b"]}
    refused(EDGES, NODES, more, named=("graphs, row 1", "'empty'", "--invalid skip"))
    with pytest.warns(UserWarning, match=r"1 of 3 graphs.*row 1"):
        graphs = Graphs.from_tables(EDGES, NODES, more, invalid="skip")
    assert graphs.skipped == ((1, "empty", "it has no nodes"),)
    assert graphs.columns["id"].tolist() == ["y", "x"]
    assert graphs.y.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"edges": {**EDGES, "source": ["a", None, "a", "c"]}}, ("edges, row 1", "'source'")),
        ({"edges": {**EDGES, "source": ["a", "", "a", "c"]}}, ("edges, row 1", "'source'")),
        ({"edges": {**EDGES, "graph": [1, np.nan, 1, 2]}}, ("row 1", "'graph'")),
        ({"edges": {**EDGES, "source": ["q", "b", "a", "c"]}}, ("'q'", "graph 'x'", "nodes")),
        ({"edges": {**EDGES, "graph": ["x", "x", "z", "y"]}}, ("'z'", "graphs")),
        ({"edges": {**EDGES, "amount": [1, np.inf, 2, 3]}}, ("'inf'", "'amount'")),
        ({"edges": {**EDGES, "amount": [1, 1e300, 2, 3.5]}}, ("1e+300", "'amount'")),
        ({"edges": {k: [] for k in EDGES}, "nodes": None}, ("edges",)),
        ({"nodes": {**NODES, "node": list("accadce")}}, ("node 'c' of graph 'x'", "row 1")),
        ({"graphs": {**GRAPHS, "graph": ["x", "x"]}}, ("graph 'x'", "row 0")),
        ({"edges": {"graph": [1, 2], "source": [1], "target": [2]}}, ("edges",)),
        ({"edges": 5}, ("edges", "int")),
        ({"edges": np.zeros((2, 2), int)}, ("edges", "(2, 2)")),
        ({"edges": {"from": [1], "to": [2]}, "nodes": None}, ("edges", "graph_column")),
    ],
)
def test_bad_tables(changes, named):
    refused(**{"edges": EDGES, "nodes": NODES, "graphs": GRAPHS} | changes, named=named)


def test_a_column_of_numbers_with_a_text():
    amount = ["1.5"] * 19 + ["much"]
    edges = {"graph": [1] * 20, "source": range(20), "target": range(1, 21), "amount": amount}
    refused(edges, named=("row 19", "'much'", "'amount'", "95.0%"))
    assert Graphs.from_tables(edges, categories="amount").edges.label_values == (("1.5", "much"),)
    refused(edges, numbers="amount", named=("'much'", "'amount'"))


def test_columns_that_are_no_features_are_said():
    count = 30
    edges = {"graph": [1] * count, "source": range(count), "target": range(1, count + 1)}
    edges["when"] = pd.date_range("2020", periods=count)
    edges["remark"] = [f"remark {i}" for i in range(count)]
    edges["path"] = [[1, 2]] * count
    with pytest.warns(UserWarning, match=r"when .*remark .*path "):
        graphs = Graphs.from_tables(edges)
    assert graphs.num_edge_features == 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Graphs.from_tables(edges, ignore="when,remark,path")


def dated(cells) -> Graphs:
    return Graphs.from_tables({**EDGES, "when": cells})


def test_dates_of_every_kind_are_left_out():
    days = [date(2024, 1, 5), date(2024, 1, 5), None, date(2024, 2, 5)]
    times = ["2024-01-05 10:00", "2024-01-05 10:00:00.5", "2024-02-05T10:00:00Z", ""]
    kinds = [days, [time(10), time(11), time(11), time(10)], times]
    kinds += [["2024-01-05", "2024-01-05", "2024-02-05", None]]
    for cells in kinds:
        with pytest.warns(UserWarning, match=r"when \(dates\)"):
            assert dated([cell or None for cell in cells]).edges.label_names == ("kind",)
    assert dated(["2024-01", "2024-02", "10", "2024-02"]).edges.label_names == ("kind", "when")
    told = Graphs.from_tables({**EDGES, "when": kinds[-1]}, categories="when")
    assert told.edges.label_values[1] == ("2024-01-05", "2024-02-05", "(blank)")


def test_dates_and_decimals_of_arrow(tmp_path):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    cells = [Decimal("1.50"), Decimal("2.25"), None, Decimal("3.00")]
    days = [date(2024, 1, 5), date(2024, 1, 5), None, date(2024, 2, 5)]
    edges = pa.table(
        {**EDGES, "price": pa.array(cells, pa.decimal128(10, 2)), "day": pa.array(days)}
    )
    parquet.write_table(edges, tmp_path / "edges.parquet")
    mapping = {**EDGES, "price": cells, "day": days}
    for read, table in (
        (Graphs.from_tables, edges),
        (Graphs.from_tables, mapping),
        (Graphs.from_tables, edges.to_pandas(types_mapper=pd.ArrowDtype)),
        (load, tmp_path / "edges.parquet"),
    ):
        with pytest.warns(UserWarning, match=r"day \(dates\)"):
            graphs = read(table)
        assert graphs.edges.number_names == ("amount", "price")
        assert graphs.edges.numbers[:, 1].nan_to_num(-1).tolist().count(2.25) == 2
    known = {**GRAPHS, "class": [Decimal("0.5"), Decimal("1.25")], "size": cells[:2]}
    graphs = Graphs.from_tables(EDGES, NODES, known)
    assert graphs.y.tolist() == [0.5, 1.25]
    assert graphs.columns["size"].tolist() == [1.5, 2.25]


def test_what_is_to_be_learnt_may_stand_in_any_table():
    edges = {**EDGES, "risk": ["low", "low", "high", "high"]}
    for option in ({"label_column": "risk"}, {"target": "risk"}, {"target": "RISK"}):
        graphs = Graphs.from_tables(edges, NODES, **option)
        assert graphs.targets[0].name == "risk"
        assert graphs.class_names == ("high", "low")
        assert graphs.edges.label_names == ("kind",)
    alone = {key: values[:2] for key, values in EDGES.items()}
    assert Graphs.from_tables({**alone, "class": ["a", "a"]}).y.tolist() == [0]
    assert Graphs.from_tables({**alone, "label": ["a", "a"]}).y is None
    assert Graphs.from_tables({**alone, "label": ["a", "a"]}, label_column="label").y is not None


def test_a_class_that_changes_within_a_graph():
    edges = {**EDGES, "risk": [1, 2, 1, 1]}
    refused(edges, label_column="risk", named=("edges, row 1", "graph 'x'", "'risk'", "row 0"))


@settings(max_examples=40)
@given(
    st.lists(
        st.tuples(st.sampled_from("gh"), st.sampled_from("abcd"), st.sampled_from("abcd"),
                  st.integers(0, 50)),
        min_size=1, unique_by=lambda e: (e[0], *sorted(e[1:3])),
    ),
    st.randoms(),
)  # fmt: skip
def test_as_networkx_has_them(rows, random):
    graphs = sorted({row[0] for row in rows})
    nodes = [(g, n, random.random()) for g in graphs for n in random.sample("abcd", 4)]
    naive = []
    for name in graphs:
        graph = nx.Graph()
        graph.add_nodes_from((n, {"size": size}) for g, n, size in nodes if g == name)
        graph.add_edges_from((a, b, {"length": float(x)}) for g, a, b, x in rows if g == name)
        naive.append(graph)
    wanted = Graphs.from_networkx(naive)
    found = Graphs.from_tables(
        pd.DataFrame(rows, columns=["graph", "source", "target", "length"]),
        pd.DataFrame(nodes, columns=["graph", "node", "size"]),
        pd.DataFrame({"graph": graphs}),
        numbers="size,length",
    )
    assert found.edge_index.tolist() == wanted.edge_index.tolist()
    assert torch.equal(found.nodes.numbers, wanted.nodes.numbers)
    assert torch.equal(found.edges.numbers, wanted.edges.numbers)
    assert found.node_ptr.tolist() == wanted.node_ptr.tolist()


def test_nodes_keep_their_ids_in_the_order_of_each_graph():
    graphs = Graphs.from_tables(EDGES, NODES, GRAPHS)
    assert graphs.columns["id"].tolist() == ["y", "x"]
    assert graphs[0].node_ids.tolist() == ["a", "d", "c", "alone"]
    assert graphs[1].node_ids.tolist() == ["c", "b", "a"]
    source, target = (graphs.node_ids.take(graphs.edge_index[i].numpy()).tolist() for i in (0, 1))
    assert {("a", "c"), ("c", "d"), ("a", "b"), ("b", "c")} <= set(zip(source, target, strict=True))
    alone = Graphs.from_tables(EDGES)
    assert [one.node_ids.tolist() for one in alone] == [["a", "b", "c"], ["a", "c", "d"]]
    everywhere = {"node": ["d", "c", "b", "a"], "age": [1.5, 2.5, 3.5, 4.5]}
    same = Graphs.from_tables(EDGES, everywhere)
    ids = [
        dict(zip(one.node_ids.tolist(), one.nodes.numbers[:, 0].tolist(), strict=True))
        for one in same
    ]
    assert ids == [{"a": 4.5, "b": 3.5, "c": 2.5}, {"a": 4.5, "c": 2.5, "d": 1.5}]
    numbers = {"graph": [1, 1], "source": [10, 20], "target": [20, 30]}
    assert Graphs.from_tables(numbers).node_ids.tolist() == ["10", "20", "30"]
