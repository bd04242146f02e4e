"""Explanations against a run of the network layer by layer, and the pictures of them."""

import json
import xml.etree.ElementTree as ET
from dataclasses import replace

import numpy as np
import pytest
import torch

from lookhops.core.errors import LookHopsError
from lookhops.explain.kept import explain
from lookhops.graphs.features import Features
from lookhops.models.predictor import Predictor
from lookhops.nn import Architecture
from lookhops.sources.loading import load
from lookhops.sources.molecules import from_smiles

SVG = "{http://www.w3.org/2000/svg}"


def test_scores_and_kept_nodes_of_one_graph_at_a_time(model_folder, tasks):
    """Each graph alone, its decisions followed by hand."""
    predictor = Predictor(model_folder, "cpu")
    model = predictor.models[22]
    for number, explanation in enumerate(explain(predictor, tasks[:12], seed=22)):
        graph = tasks[number]
        with torch.no_grad():
            _, decisions = model.classify(model.batch(graph))
        nodes = list(range(graph.num_nodes))
        assert len(explanation.layers) == len(decisions) == 2
        for view, pooled in zip(explanation.layers, decisions, strict=True):
            assert view.nodes.tolist() == nodes
            assert np.allclose(view.score, pooled.score.numpy(), atol=1e-5)
            nodes = [n for n, stays in zip(nodes, pooled.node.tolist(), strict=True) if stays]
            assert view.nodes[view.kept].tolist() == nodes
            last = np.sort(view.score)[::-1][int(np.ceil(0.7 * len(view.nodes) - 1e-9)) - 1]
            assert len(nodes) == np.count_nonzero(view.score >= last - 1e-5)
        pairs = {tuple(sorted(pair)) for pair in graph.edge_index.T.tolist()}
        assert {tuple(pair) for pair in explanation.edges.tolist()} == pairs
        answer = predictor.predict(graph)
        assert explanation.record["class"] == answer.classes[0]
        likely = list(explanation.record["probabilities"].values())
        assert likely == pytest.approx(answer.probabilities[0])


def with_random_features(graphs):
    """No two nodes are alike."""
    noise = torch.randn(graphs.num_nodes, 4, generator=torch.Generator().manual_seed(0))
    return replace(graphs, nodes=Features(numbers=noise), featuriser="")


def test_batches_do_not_show(trained, tasks, monkeypatch):
    graphs = with_random_features(tasks)
    architecture = Architecture(pool="lookhops", hidden=8, layers=3, ratio=0.7)
    predictor = trained(graphs, architecture, max_epochs=1)
    whole = [e.as_json() for e in explain(predictor, graphs)]
    monkeypatch.setattr("lookhops.explain.kept.BATCH_SIZE", 7)
    parts = [e.as_json() for e in explain(predictor, graphs)]
    for one, two in zip(whole, parts, strict=True):
        assert one["id"] == two["id"]
        assert [layer["kept"] for layer in one["layers"]] == [
            layer["kept"] for layer in two["layers"]
        ]
    json.dumps(whole)


def test_dropped_edges_join_kept_nodes(trained, tasks):
    architecture = Architecture(pool="lookhops", hidden=8, layers=3, edge_ratio=0.5)
    graphs = with_random_features(tasks)
    for explanation in explain(trained(graphs, architecture, max_epochs=1), graphs[:10]):
        edges = {tuple(pair) for pair in explanation.edges.tolist()}
        for view in explanation.layers:
            kept = set(view.nodes[view.kept].tolist())
            between = {(i, j) for i, j in edges if i in kept and j in kept}
            dropped = {tuple(pair) for pair in view.dropped_edges.tolist()}
            assert dropped <= between
            assert len(between - dropped) == int(np.ceil(0.5 * len(between) - 1e-9))
            edges = between - dropped


@pytest.mark.parametrize("pool", ["topk", "sag", "edge", "asap"])
def test_other_poolings_are_explained_too(trained, tasks, pool):
    architecture = Architecture(pool=pool, conv="gcn", hidden=8, layers=3, ratio=0.5)
    for explanation in explain(trained(tasks, architecture, max_epochs=1), tasks[:5]):
        for view in explanation.layers:
            kept = set(view.nodes[view.kept].tolist())
            assert 0 < len(kept) < len(view.nodes)
            assert set(view.group[view.group >= 0].tolist()) <= kept
            if pool == "edge":  # nothing is lost, nodes are merged two by two
                assert (view.group >= 0).all()
        ET.fromstring(explanation.picture())
        json.dumps(explanation.as_json())


def test_no_pooling_nothing_to_explain(trained, tasks, model_folder):
    predictor = trained(tasks, Architecture(hidden=8), max_epochs=1)
    with pytest.raises(LookHopsError, match="--pool"):
        list(explain(predictor, tasks[:1]))
    with pytest.raises(LookHopsError, match=r"5.*11, 22"):
        list(explain(Predictor(model_folder, "cpu"), tasks[:1], seed=5))


# -------------------------------------------------------------------- pictures


def test_a_molecule_is_drawn_with_its_dropped_atoms_faded(molecule_folder):
    molecules = from_smiles(["CC(=O)Oc1ccccc1C(=O)O"], ids=["<aspirin> & more"])
    [explanation] = explain(Predictor(molecule_folder, "cpu"), molecules)
    drawing = explanation.picture()
    root = ET.fromstring(drawing)
    panels = root.findall(f"{SVG}svg")
    assert len(panels) == len(explanation.layers) == 2
    assert root.find(f"{SVG}title").text == "<aspirin> & more"
    for panel, view in zip(panels, explanation.layers, strict=True):
        kept = set(view.nodes[view.kept].tolist())
        discs = panel.findall(f"{SVG}circle")
        assert len(discs) == len(view.nodes)
        shapes = discs + panel.findall(f"{SVG}path")
        for shape in shapes:
            words = shape.get("class").split()
            atoms = {int(word[5:]) for word in words if word.startswith("atom-")}
            assert (shape.get("opacity") is not None) == (not atoms <= kept)
    assert drawing == explanation.picture()


def test_other_graphs_are_laid_out(model_folder, tasks):
    [explanation] = explain(Predictor(model_folder, "cpu"), tasks[:1])
    root = ET.fromstring(explanation.picture())
    for panel in root.findall(f"{SVG}svg"):
        circles = panel.findall(f"{SVG}circle")
        assert len(circles) == explanation.num_nodes
        places = {(circle.get("cx"), circle.get("cy")) for circle in circles}
        assert len(places) == len(circles)
        assert len(panel.findall(f"{SVG}line")) == len(explanation.edges)
        assert all(0 < float(circle.get("cx")) < 400 for circle in circles)


def test_a_molecule_in_two_parts_and_a_single_atom(molecule_folder):
    molecules = from_smiles(["[Na+].[Cl-]", "C"])
    for explanation in explain(Predictor(molecule_folder, "cpu"), molecules):
        ET.fromstring(explanation.picture())


def test_a_graph_without_edges_is_drawn(model_folder):
    lonely = load("hops-1", size=2)
    bare = replace(lonely, row_ptr=torch.zeros_like(lonely.row_ptr), source=lonely.source[:0])
    for explanation in explain(Predictor(model_folder, "cpu"), bare):
        ET.fromstring(explanation.picture())
