"""Pictures of shares: small, whole where they can be, and readable as XML."""

import re
import xml.etree.ElementTree as ET
from dataclasses import replace

import networkx as nx
import numpy as np
import pytest

from lookhops.core.words import MINUS
from lookhops.explain.drawing.shares import (
    FAINTEST,
    MOST_NODES,
    SharedGraph,
    digits_for,
    draw_shares,
    wrapped,
    written,
)


def of(graph: nx.Graph, seed: int = 0) -> SharedGraph:
    rng = np.random.default_rng(seed)
    edges = np.array([sorted(edge) for edge in graph.edges], dtype=int).reshape(-1, 2)
    names = [f"node {i}" for i in graph]
    return SharedGraph(edges, names, rng.normal(size=len(graph)), rng.normal(size=len(edges)))


def test_every_node_and_every_visible_edge_has_its_colour():
    graph = of(nx.cycle_graph(6))
    limit = graph.largest
    root = ET.fromstring(draw_shares(graph, limit, "log-odds", "a <b> & c", ["What it says."]))
    numbers = [e.text for e in root.iter() if e.get("dy")]
    assert numbers == ["0", "1", "2", "3", "4", "5"]
    assert "a <b> & c" in "".join(root.itertext())
    titles = [e for e in root.iter() if e.tag.endswith("circle") and "fill-opacity" in e.attrib]
    assert len(titles) == 6
    for circle, share in zip(titles, graph.node, strict=True):
        assert circle.attrib["class"] == ("for" if share >= 0 else "against")
        strength = min(abs(share) / limit, 1)
        wanted = strength if strength >= FAINTEST else 0
        assert float(circle.attrib["fill-opacity"]) == pytest.approx(wanted, abs=0.006)


def test_nodes_are_labelled_by_their_ids_where_there_is_room():
    graph = replace(of(nx.cycle_graph(6)), ids=[f"a<{i}" for i in range(6)])
    root = ET.fromstring(draw_shares(graph, graph.largest, "log-odds"))
    assert [e.text for e in root.iter() if e.get("dy")] == graph.ids
    assert graph.part(np.array([1, 4])).ids == ["a<1", "a<4"]
    long = replace(graph, ids=[f"customer number {i}" for i in range(6)])
    root = ET.fromstring(draw_shares(long, graph.largest, "log-odds"))
    assert not [e for e in root.iter() if e.get("dy")]


@pytest.mark.parametrize("nodes", [260, 2000])
def test_a_large_graph_is_drawn_in_part_and_stays_small(nodes):
    graph = of(nx.barabasi_albert_graph(nodes, 3, seed=1))
    text = draw_shares(graph, 2.0, "log-odds")
    assert len(text.encode()) < 300_000
    part = graph.what_matters()
    assert 0 < len(part) <= MOST_NODES
    assert int(np.abs(graph.node).argmax()) in part or len(part) == 0 or nodes > 260
    assert f"{len(part)} nodes of {nodes:,}" in text
    ET.fromstring(text)


def test_what_matters_stands_with_its_neighbours():
    graph = nx.path_graph(400)
    edges = np.array(graph.edges)
    node = np.zeros(400)
    node[200] = 5
    shared = SharedGraph(edges, [str(i) for i in graph], node, np.zeros(len(edges)))
    assert {199, 200, 201} <= set(shared.what_matters(10).tolist())
    part = shared.part(np.array([199, 200, 201]))
    assert part.edges.tolist() == [[0, 1], [1, 2]]
    assert part.names == ["199", "200", "201"]


def test_of_a_node_with_many_neighbours_some_are_drawn():
    graph = of(nx.star_graph(2000))
    graph.node[0] = 10 * np.abs(graph.node).max()
    part = graph.what_matters()
    assert len(part) == MOST_NODES
    assert 0 in part


def test_what_is_cut_has_its_whole_text_as_a_tooltip():
    name = "Unwahrscheinlichkeitsverteilungsfunktionskategorie" * 2
    text = draw_shares(of(nx.path_graph(3)), 1.0, f"log-odds of '{name}'", name, [f"Of {name} +1."])
    svg = "{http://www.w3.org/2000/svg}"
    titles, texts = (
        [one.text for one in ET.fromstring(text).iter(svg + kind)] for kind in ("title", "text")
    )
    assert {name, f"log-odds of '{name}'", f"Of {name} +1."} <= set(titles)
    assert not any(name in shown for shown in texts)


def test_a_graph_without_edges_or_shares_is_drawn():
    empty = SharedGraph(np.zeros((0, 2), int), ["node 0"], np.zeros(1), np.zeros(0))
    ET.fromstring(draw_shares(empty, empty.largest, "log-odds"))


def test_features_of_the_whole_graph_have_bars():
    graph = replace(of(nx.path_graph(3)), features={"pH": -2.0, "tiny <x>": 1e-6, "dose": 0.5})
    root = ET.fromstring(draw_shares(graph, 1.0, "logS"))
    bars = [e for e in root.iter() if e.tag.endswith("rect") and "fill-opacity" not in e.attrib]
    bars = [(e.get("class"), float(e.get("width"))) for e in bars if e.get("class") != "back"]
    found = [(side, width) for side, width in bars if side]
    assert [side for side, _ in found] == ["against", "for"]
    assert found[0][1] == pytest.approx(4 * found[1][1], abs=0.2)
    words = " ".join(root.itertext())
    assert "pH" in words
    assert f"{MINUS}2.00" in words
    assert "tiny" not in words


def test_lines_break_between_words():
    lines = wrapped("one two three " * 20, 30)
    assert all(len(line) <= 30 for line in lines)
    assert " ".join(lines).split() == ("one two three " * 20).split()
    assert not re.search(r"\s$", "".join(lines))


def test_a_share_is_said_with_its_sign_and_nothing_has_none():
    said = [written(value) for value in (0.914, -1.5, -0.001, 0.0, 1234.5, -250.0)]
    assert said == ["+0.91", f"{MINUS}1.50", "0.00", "0.00", "+1234", f"{MINUS}250"]


def test_small_shares_keep_two_digits_that_count():
    assert [digits_for(size) for size in (0.0, 12.0, 0.1, 0.034, 0.0034, 1e-30)] == [
        2,
        2,
        2,
        3,
        4,
        9,
    ]
    assert written(0.0034, 4) == "+0.0034"
    assert written(-0.00001, 4) == "0.0000"
    assert "+0.0034" in draw_shares(of(nx.path_graph(3)), 0.0034, "log-odds")
