"""Pictures of layers: every shape says, or shows, when it goes."""

import builtins
import xml.etree.ElementTree as ET
from dataclasses import replace

import numpy as np
import pytest

from lookhops.core.charts import SCORE_HIGH, SCORE_LOW, score_colour
from lookhops.explain.drawing.pictures import LayeredGraph, animated, panels

SVG = "{http://www.w3.org/2000/svg}"
CAPTIONS = [("layer 1", ["0", "1"]), ("layer 2", [])]


@pytest.fixture
def ethanol():
    """Layer 1 drops the bond of atoms 0 and 1 but neither atom; layer 2 drops atom 2."""
    return LayeredGraph(
        edges=np.array([[0, 1], [1, 2]]),
        node_layer=np.array([3, 3, 2]),
        edge_layer=np.array([1, 2]),
        scores=np.array([[0.0, 0.5, 1.0], [1.0, 0.25, 0.0]]),
    )


def still(graph):
    root = ET.fromstring(panels(graph, "<a> & b", "a: high", CAPTIONS))
    assert root.find(f"{SVG}title").text == "<a> & b"
    return root.findall(f"{SVG}svg")


def test_what_a_layer_dropped_stays_dropped(ethanol):
    dashed = [
        [line.get("stroke-dasharray") is not None for line in panel.findall(f"{SVG}line")]
        for panel in still(ethanol)
    ]
    assert dashed == [[True, False], [True, True]]
    faded = [
        [disc.get("opacity") is not None for disc in panel.findall(f"{SVG}circle")]
        for panel in still(ethanol)
    ]
    assert faded == [[False, False, False], [False, False, True]]


def test_the_same_of_a_molecule(ethanol):
    for number, panel in enumerate(still(replace(ethanol, smiles="CCO")), 1):
        bonds = [p for p in panel.findall(f"{SVG}path") if p.get("fill") == "none"]
        assert len(bonds) >= 2
        for bond in bonds:
            gone = {"atom-0 atom-1": 1, "atom-1 atom-2": 2}[bond.get("class")]
            assert (bond.get("opacity") is not None) == (gone <= number)


def test_shapes_of_the_page_carry_their_layer(ethanol):
    root = ET.fromstring(animated(ethanol, 'a "graph"'))
    assert root.get("aria-label") == 'a "graph"'
    edges, nodes = root
    assert [line.get("data-d") for line in edges] == ["1", "2"]
    assert [disc.get("data-d") for disc in nodes] == [None, None, "2"]
    assert [disc.get("data-s") for disc in nodes] == ["0,100", "50,25", "100,0"]


def test_without_rdkit_a_molecule_is_a_graph(ethanol, monkeypatch):
    real = builtins.__import__

    def without(name, *rest):
        if name.startswith("rdkit"):
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    assert animated(replace(ethanol, smiles="CCO"), "") == animated(ethanol, "")


def test_scores_are_colours_between_two():
    assert score_colour(0) == SCORE_LOW.lower()
    assert score_colour(1) == SCORE_HIGH.lower()


def test_of_a_large_graph_the_nodes_that_stay_longest_are_drawn():
    edges = np.array([(i, i + 1) for i in range(999)])
    node_layer = np.where(np.arange(1000) % 10 == 0, 3, 1)
    graph = LayeredGraph(edges, node_layer, np.minimum(*node_layer[edges].T), np.zeros((2, 1000)))
    part = graph.lasting(250)
    assert (part.node_layer == 3).sum() == 100
    assert len(part.node_layer) == part.scores.shape[1] == 250
    assert part.edges.max() < 250
    assert len(part.edges) == len(part.edge_layer)
    assert len(panels(part, "a", "a", [("one", []), ("two", [])]).encode()) < 300_000
    assert graph.lasting(1000) is graph
