"""What pooling kept: graphs chosen by how sure and how right the model was, layer by layer."""

from __future__ import annotations

import shlex
from collections.abc import Mapping

import numpy as np

from lookhops.core.errors import LookHopsError
from lookhops.core.words import counted
from lookhops.explain.drawing.pictures import LayeredGraph, animated
from lookhops.explain.kept import explain
from lookhops.graphs import Graphs
from lookhops.models.predictor import Predictor
from lookhops.nn import NodePooling
from lookhops.nn.others import is_other
from lookhops.report.content import Card, Gallery, Note, Section
from lookhops.report.folders import Answers, ModelFolder
from lookhops.tasks import Classification

#: Of each class so many most certain, least certain and wrong graphs; and so many in all.
OF_EACH, MOST = 2, 24
#: Larger graphs are not drawn: a picture of them would show a cloud and weigh the page down.
MOST_NODES = 250
GROUPS = ("certain", "unsure", "wrong")


def gallery_section(model: ModelFolder, graphs: Graphs | None) -> Section | None:
    """The gallery; a sentence instead where something is missing; none without pooling of ours.

    Poolings of other libraries do not say what became of each node.

    Args:
        model: The model's folder.
        graphs: The graphs it was trained on, or none where they are not at hand.
    """
    architecture = model.config["architecture"]
    pool = architecture["pool"]
    if pool == "none" or is_other(pool) or architecture["layers"] < 2:
        return None
    found = _gallery_or_reason(model, graphs)
    lead = (
        "Each pooling layer scores the nodes, keeps the best and drops the rest. Move a slider to "
        "walk through the layers: the stronger the colour of a node, the higher its score in that "
        "layer; what is dropped fades. What is kept need not be what matters: shares of the answer "
        "say that."
    )
    block, lead = (Note(found), "") if isinstance(found, str) else (found, lead)
    return Section("looked", "What pooling kept", lead, [block])


def _gallery_or_reason(model: ModelFolder, graphs: Graphs | None) -> Gallery | str:
    if graphs is None:
        again = shlex.join(["lookhops", "report", str(model.path), "--data", "SOURCE"])
        return (
            "To see which nodes each pooling layer kept, make this page with the graphs, SOURCE "
            f"and its options being those of the training: {again}"
        )
    check_same(model, graphs)
    if not model.task.class_names:
        return "Graphs are shown by class, and this model answers numbers or several targets."
    if model.answers is None:
        return "The folder has no predictions.csv to choose graphs by; models trained now have one."
    found = make_gallery(model, model.answers.of_seed(model.seeds[0]), graphs)
    return found or f"No test graph has at most {MOST_NODES} nodes, so that none is drawn."


def check_same(model: ModelFolder, graphs: Graphs) -> None:
    """Refuse graphs that the model was not trained on: its answers are not about them."""
    data = model.config["data"]
    if graphs.fingerprint != data["fingerprint"]:
        raise LookHopsError(
            f"{graphs.name}: not the graphs that {model.path} was trained on ({data['name']}, "
            f"{counted(data['graphs'], 'graph')}, fingerprint {data['fingerprint']}; these are "
            f"{len(graphs):,} with {graphs.fingerprint}). Give the same source and options as in "
            "training."
        )


def make_gallery(model: ModelFolder, answers: Answers, graphs: Graphs) -> Gallery | None:
    """Explain and draw the chosen graphs; none where there is none to draw."""
    small = graphs.nodes_per_graph.cpu().numpy()[answers.graph] <= MOST_NODES
    seed = model.seeds[0]
    assert isinstance(model.task, Classification)
    predicted = model.task.decided(answers.p, model.config["metrics"]["seeds"][str(seed)])
    chosen = choose(answers, small, predicted)
    if not chosen:
        return None
    rows = list(chosen)
    names = model.class_names
    predictor = Predictor(model.path, device="cpu")
    own_edges = isinstance(predictor.models[seed].pools[0], NodePooling)
    found = explain(predictor, graphs.select(answers.graph[rows]), seed)
    cards = []
    for row, explanation in zip(rows, found, strict=True):
        name, number = answers.ids[row], str(answers.graph[row])
        name = f"graph {number}" if name == number else name
        best = int(predicted[row])
        graph = explanation.layered()
        said = steps(graph, own_edges)
        what = "Molecule" if graph.smiles is not None else "Graph"
        cards.append(
            Card(
                name=name,
                true=names[answers.true[row]],
                predicted=names[best],
                probability=float(answers.p[row, best]),
                group=chosen[row],
                picture=animated(graph, f"{what} {name}: {'; '.join(said)}"),
                steps=said,
            )
        )
    left_out = int((~small).sum())
    note = f" Graphs of more than {MOST_NODES} nodes ({left_out}) are left out." if left_out else ""
    caption = (
        f"{counted(len(cards), 'graph')} of the {len(answers.true):,} test graphs of seed {seed}: "
        f"of each class the most certain right answers, the least certain answers and the most "
        f"certain wrong ones. Probabilities are that seed's, calibrated.{note}"
    )
    return Gallery(cards, caption)


def choose(
    answers: Answers, allowed: np.ndarray, predicted: np.ndarray | None = None
) -> Mapping[int, str]:
    """Rows of the answers to show, each once, with the reason; class after class.

    Args:
        answers: One seed's.
        allowed: Rows that can be drawn, shape (n).
        predicted: The class that is answered, shape (n); by default the likeliest.
    """
    predicted = answers.p.argmax(1) if predicted is None else predicted
    sure, right = answers.p.max(1), predicted == answers.true
    chosen: dict[int, str] = {}
    classes = np.unique(answers.true).tolist()
    each = max(1, min(OF_EACH, MOST // (len(GROUPS) * max(len(classes), 1))))
    for number in classes:
        mine = np.flatnonzero((answers.true == number) & allowed)
        by_certainty = mine[np.argsort(-sure[mine], kind="stable")]
        orders = {
            "certain": by_certainty[right[by_certainty]],
            "wrong": by_certainty[~right[by_certainty]],
            "unsure": by_certainty[::-1],
        }
        taken: dict[str, list[int]] = {}
        for group, order in orders.items():
            fresh = [row for row in order.tolist() if all(row not in t for t in taken.values())]
            taken[group] = fresh[:each]
        chosen.update({row: group for group in GROUPS for row in taken[group]})
    return dict(list(chosen.items())[:MOST])


def steps(graph: LayeredGraph, own_edges: bool = True) -> list[str]:
    """What to say at each position of the slider: how much is left after each layer.

    Args:
        graph: The graph.
        own_edges: Whether what is left has edges of the graph only: not where nodes are merged.
    """
    node, edge = ("nodes", "edges") if graph.smiles is None else ("atoms", "bonds")
    nodes, edges = len(graph.node_layer), len(graph.edge_layer)
    texts = [f"whole graph: {nodes} {node}, {edges} {edge}"]
    for layer in range(1, len(graph.scores) + 1):
        text = f"layer {layer}: {int((graph.node_layer > layer).sum())} of {nodes} {node}"
        if own_edges:
            text += f", {int((graph.edge_layer > layer).sum())} of {edges} {edge}"
        texts.append(text)
    return texts
