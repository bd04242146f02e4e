"""From and to NetworkX."""

import sys
from dataclasses import replace

import pandas as pd
import pytest
import torch
from hypothesis import given

from lookhops import Graphs, LookHopsError
from lookhops.graphs.features import Features
from strategies import graph_sets, unpacked

nx = pytest.importorskip("networkx", reason="needs networkx (in the extra `dev`)")


def by_name(graphs: Graphs) -> list[dict]:
    """Each graph in plain Python, its features by name, labels as texts."""
    found = unpacked(graphs, columns=False)
    for graph in found:
        graph["x"] = [named(graphs.nodes, row) for row in graph["x"]]
        edges = [(u, v, named(graphs.edges, row)) for u, v, row in graph["edges"]]
        graph["whole"] = named(graphs.whole, graph["whole"])
        graph["edges"] = sorted(edges, key=str)  # parallel edges have no order of their own
    return found


def named(features: Features, row: list[float] | None) -> dict:
    """A row of columns, by the names of those that are not zero."""
    names = features.names.columns  # nodes without features have a column of ones, without one
    return {name: one for name, one in zip(names, row or (), strict=False) if one}


@given(graph_sets(min_nodes=1))
def test_there_and_back(graphs: Graphs):
    names = (*graphs.whole.number_names, *graphs.whole.label_names)
    rest = {"class_names": graphs.class_names or None, "graph_features": names}
    again = Graphs.from_networkx(graphs.to_networkx(), **rest)
    assert by_name(again) == by_name(graphs)
    assert again.class_names == graphs.class_names
    for owner, count in (("nodes", graphs.num_nodes), ("edges", graphs.num_edges)):
        if count:
            assert again.features[owner].label_names == graphs.features[owner].label_names


@given(graph_sets(min_nodes=1))
def test_there_and_back_without_names(graphs: Graphs):
    bare = {
        owner: replace(own, number_names=(), label_names=())
        for owner, own in graphs.features.items()
    }
    graphs = replace(graphs, **bare)
    rest = {"graph_features": ["u"]} if graphs.whole.width else {}
    again = Graphs.from_networkx(
        graphs.to_networkx(), class_names=graphs.class_names or None, **rest
    )
    before, after = unpacked(graphs, columns=False), unpacked(again, columns=False)
    for graph in (*before, *after):
        graph["edges"].sort(key=str)
    assert after == before


def test_what_tables_brought_has_its_names():
    columns = ["graph", "source", "target", "key", "kind"]
    edges = pd.DataFrame([(1, "a", "b", 2.5, "card"), (1, "b", "b", 0.5, None)], columns=columns)
    columns = ["graph", "node", "self", "role"]
    nodes = pd.DataFrame([(1, "a", 1700.25, "shop"), (1, "b", None, "bank")], columns=columns)
    graphs = Graphs.from_tables(edges, nodes)
    [graph] = graphs.to_networkx()
    assert graph.nodes[0] == {"self": 1700.25, "role": "shop"}
    assert graph.nodes[1]["role"] == "bank"
    assert graph.edges[0, 1] == {"key": 2.5, "kind": "card"}
    assert graph.edges[1, 1] == {"key": 0.5, "kind": "(blank)"}
    again = Graphs.from_networkx(graph)
    assert (again.nodes.number_names, again.nodes.label_names) == (("self",), ("role",))
    assert again.nodes.label_values == graphs.nodes.label_values == (("bank", "shop"),)
    assert torch.equal(again.nodes.numbers.isnan(), graphs.nodes.numbers.isnan())
    assert again.edges.label_names == ("kind",)


def test_nodes_keep_their_names():
    graph = nx.Graph([("b", 7), (7, ("a", 1))])
    graphs = Graphs.from_networkx([graph, nx.path_graph(2)])
    assert graphs[0].node_ids.tolist() == ["b", "7", "('a', 1)"]
    assert graphs[1].node_ids.tolist() == ["0", "1"]


def test_kinds_of_graphs():
    one = nx.Graph([("a", "b"), ("b", "b")])
    two = nx.DiGraph([(5, 3)])
    three = nx.MultiGraph([(0, 1), (0, 1)])
    packed = Graphs.from_networkx([one, two, three])
    assert [graph["edges"] for graph in unpacked(packed)] == [
        [(1, 0, None), (0, 1, None), (1, 1, None)],
        [(0, 1, None)],
        [(1, 0, None), (1, 0, None), (0, 1, None), (0, 1, None)],
    ]
    assert packed.y is None
    assert unpacked(Graphs.from_networkx(one)) == unpacked(packed[:1])


def test_what_is_no_graph_or_has_no_nodes_is_said():
    with pytest.raises(LookHopsError, match=r"Graph 1.*'a'"):
        Graphs.from_networkx([nx.path_graph(2), "a"])
    with pytest.raises(LookHopsError, match="Graph 1"):
        Graphs.from_networkx([nx.path_graph(2), nx.Graph(), nx.Graph()])


def test_numbers_text_and_lists_as_features():
    graph = nx.path_graph(3)
    for node, (colour, size) in enumerate([("red", 1), ("blue", 2.5), ("red", True)]):
        graph.nodes[node].update(size=size, colour=colour, place=(node, -node))
    nx.set_edge_attributes(graph, {(0, 1): "single", (1, 2): "double"}, "bond")
    packed = Graphs.from_networkx([graph])
    assert packed.nodes.label_sizes == (2,)
    assert packed.x.tolist() == [[1, 0, 0, 0, 1], [2.5, 1, -1, 1, 0], [1, 2, -2, 0, 1]]
    assert packed.edges.label_sizes == (2,)
    assert packed.edges.labels is not None
    assert packed.edges.labels.flatten().tolist() == [1, 1, 0, 0]
    assert packed.nodes.number_names == ("size", "place 0", "place 1")
    assert packed.nodes.label_names == ("colour",)
    assert packed.nodes.label_values == (("blue", "red"),)
    assert packed.edges.label_names == ("bond",)
    assert packed.edges.label_values == (("double", "single"),)
    chosen = Graphs.from_networkx([graph], node_features=["colour"], edge_features=[])
    assert chosen.num_features == 2
    assert chosen.num_edge_features == 0


def test_known_texts_make_a_label_mean_the_same_in_every_set():
    one, other = nx.path_graph(2), nx.path_graph(2)
    nx.set_node_attributes(one, {0: "red", 1: "blue"}, "colour")
    nx.set_node_attributes(other, "red", "colour")
    known = {"colour": ["blue", "red"]}
    assert Graphs.from_networkx([other], node_features=known).x.tolist() == [[0, 1], [0, 1]]
    nx.set_node_attributes(one, 2.0, "size")
    numbers = Graphs.from_networkx([one], node_features={"size": None, **known})
    assert numbers.x.tolist() == [[2, 0, 1], [2, 1, 0]]
    for value in ("green", 1, ["red"]):
        other.nodes[1]["colour"] = value
        with pytest.raises(LookHopsError, match="Graph 0, node 1: 'colour'"):
            Graphs.from_networkx([other], node_features=known)


def test_a_feature_that_only_some_nodes_have_is_refused_and_never_dropped():
    one, other = nx.path_graph(2), nx.path_graph(3)
    nx.set_node_attributes(one, 1.0, "size")
    with pytest.raises(LookHopsError, match=r"Graph 1, node 0 .*'size'.* 2 .*node_features"):
        Graphs.from_networkx([one, other])
    assert Graphs.from_networkx([one, other], node_features=[]).num_features == 0
    one.edges[0, 1]["bond"] = "single"
    nx.set_node_attributes(other, 1.0, "size")
    with pytest.raises(LookHopsError, match=r"Graph 1, edge 0 to 1.*'bond'"):
        Graphs.from_networkx([one, other])


def test_a_list_of_numbers_that_is_one_hot_everywhere_is_a_label():
    graph = nx.path_graph(3)
    nx.set_node_attributes(graph, {0: [0, 1], 1: [1, 0], 2: [0, 1]}, "side")
    nx.set_node_attributes(graph, 1.0, "age")
    packed = Graphs.from_networkx([graph])
    assert packed.nodes.number_names == ("age",)
    assert (packed.nodes.label_names, packed.nodes.label_values) == (("side",), (("0", "1"),))
    assert packed.x.tolist() == [[1, 0, 1], [1, 1, 0], [1, 0, 1]]


def test_numbers_may_be_blank():
    graph = nx.path_graph(3)
    nx.set_node_attributes(graph, {0: None, 1: 2.0, 2: float("nan")}, "size")
    nx.set_node_attributes(graph, {0: [1, None], 1: [2, 3], 2: [3, 4]}, "place")
    packed = Graphs.from_networkx([graph])
    assert packed.nodes.numbers.isnan().tolist() == [
        [True, False, True],
        [False, False, False],
        [True, False, False],
    ]


def test_text_may_be_blank_as_in_tables():
    graph = nx.path_graph(4)
    nx.set_node_attributes(graph, {0: None, 1: "old", 2: float("nan"), 3: "None"}, "role")
    packed = Graphs.from_networkx([graph])
    assert packed.nodes.label_values == (("(blank)", "None", "old"),)
    assert packed.nodes.labels.flatten().tolist() == [0, 2, 0, 1]
    known = {"role": ["None", "old"]}
    with pytest.raises(LookHopsError, match="node 0: 'role'"):
        Graphs.from_networkx([graph], node_features=known)


def test_classes_by_name_or_number():
    graphs = [nx.path_graph(2) for _ in range(3)]
    named = Graphs.from_networkx(graphs, y=["toxic", "safe", "toxic"])
    assert named.class_names == ("safe", "toxic")
    assert named.y is not None
    assert named.y.tolist() == [1, 0, 1]
    for graph, value in zip(graphs, (-1, 1, 1), strict=True):
        graph.graph["y"] = value
    numbered = Graphs.from_networkx(graphs)
    assert numbered.class_names == ("-1", "1")
    with pytest.raises(LookHopsError, match=r"3 graphs.* 2 "):
        Graphs.from_networkx(graphs, y=[0, 1])
    with pytest.raises(LookHopsError, match="class_names"):
        Graphs.from_networkx(graphs, class_names=["only"])


@pytest.mark.parametrize("value", ["text", float("inf"), [1, 2], object()])
def test_a_feature_that_is_not_one_is_said(value: object):
    graph = nx.path_graph(2)
    graph.nodes[0]["size"] = 1.0
    graph.nodes[1]["size"] = value
    with pytest.raises(LookHopsError, match="Graph 0, node 1: 'size'"):
        Graphs.from_networkx([graph])
    with pytest.raises(LookHopsError, match=r"Graph 0, node 0.*'mass'"):
        Graphs.from_networkx([graph], node_features=["mass"])


def test_without_networkx_it_is_named(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "networkx", None)
    graphs = Graphs.from_edges(torch.tensor([0]), torch.tensor([0]), torch.tensor([1]))
    with pytest.raises(LookHopsError, match="networkx"):
        graphs.to_networkx()
