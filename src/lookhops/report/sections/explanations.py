"""What answers rest on, drawn: shares of some test graphs, neighbourhoods, what pooling kept."""

from __future__ import annotations

import shlex
from collections.abc import Mapping

import numpy as np

from lookhops.core.arrays import Array
from lookhops.core.errors import LookHopsError
from lookhops.core.tables import Table
from lookhops.core.words import counted, joined, signed
from lookhops.explain import attribute
from lookhops.explain.attributions import common_limit
from lookhops.explain.drawing.pictures import LayeredGraph, animated
from lookhops.explain.drawing.shares import draw_shares
from lookhops.explain.kept import explain
from lookhops.explain.neighbourhoods import SHOWN, top_neighbourhoods
from lookhops.graphs import Graphs
from lookhops.models.predictor import Predictor
from lookhops.nn import NodePooling
from lookhops.nn.others import is_other
from lookhops.report.folders import ModelFolder
from lookhops.report.page import Block, Card, Gallery, Note, Picture, Pictures, Section, Subheading
from lookhops.tasks.answers import TestAnswers

#: Graphs whose shares are shown: of each kind of answer a few.
MOST_SHARED = 12
#: Of each class so many most certain, least certain and wrong graphs; and so many in all.
OF_EACH, MOST = 2, 24
#: Training graphs that are named beside each.
MOST_ALIKE = 3
#: Larger graphs are not drawn: a picture of them would show a cloud and weigh the page down.
MOST_NODES = 250
GROUPS = ("certain", "unsure", "wrong")
KEPT = (
    "Each pooling layer scores the nodes, keeps the best and drops the rest. Move a slider to walk "
    "through the layers: the stronger the colour of a node, the higher its score in that layer; "
    "what is dropped fades. What is kept need not be what matters: shares of the answer say that."
)


def explanation_sections(model: ModelFolder, graphs: Graphs | None) -> list[Section | None]:
    """Shares, neighbourhoods and what pooling kept, of the graphs that the model was trained on.

    Of several targets, and of learners that cannot be explained, there are the training graphs that
    test graphs are like.
    """
    found: list[Section | None] = []
    again = shlex.join(["lookhops", "report", str(model.path), "--data", "SOURCE"])
    kept: Gallery | Note = Note(
        "To see which nodes each pooling layer kept, make this page with the graphs, SOURCE and "
        f"its options being those of the training: {again}"
    )
    if graphs is not None:
        check_same(model, graphs)
        predictor = Predictor(model.path, device="cpu")
        shown = graphs.select(_chosen(model))
        if len(model.task.heads) > 1 or not model.learner.explains:
            found = [_alike(model, predictor, shown)]
        else:
            found = [_shares(model, predictor, shown), _neighbourhoods(predictor, graphs)]
        if _pools(model):
            kept = _gallery(model, predictor, graphs)
    if _pools(model):
        lead = KEPT if isinstance(kept, Gallery) else ""
        found.append(Section("looked", "What pooling kept", lead, [kept]))
    return found


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


def likenesses(predictor: Predictor, graphs: Graphs) -> list[list[str]]:
    """The training graphs that each is most similar to, but itself; none where none are known."""
    if not predictor.knows_neighbours:
        return [[] for _ in range(len(graphs))]
    found = predictor.neighbours(graphs, MOST_ALIKE + 1)
    return [found.said(n, MOST_ALIKE, name) for n, name in enumerate(graphs.ids)]


def _alike(model: ModelFolder, predictor: Predictor, shown: Graphs) -> Section | None:
    """Some test graphs, each with the training graphs that it is most similar to."""
    if not len(shown) or not predictor.knows_neighbours:
        return None
    measured = [", ".join(model.task.labels(one)) for one in model.task.targets(shown).tolist()]
    cells = list(zip(shown.ids, measured, likenesses(predictor, shown), strict=True))
    lead = (
        "Test graphs beside the training graphs that they are most similar to, and what was "
        "measured of those. Similar are graphs that share neighbourhoods within two hops."
    )
    note = f"{counted(len(cells), 'test graph')} of seed {model.seeds[0]}."
    table = Table(("test graph", "measured", "most similar training graphs"), cells, note)
    return Section("alike", "Similar training graphs", lead, [table])


def _shares(model: ModelFolder, predictor: Predictor, shown: Graphs) -> Section | None:
    """Some test graphs with each part's share of the answer."""
    if not len(shown):
        return None
    found = attribute(predictor, shown)
    every = [found[number] for number in range(len(found))]
    limit, like = common_limit(every), likenesses(predictor, shown)
    pictures = [
        Picture(
            f"{one.id}: {one.answer}",
            draw_shares(one, limit, one.unit, styled=False, words=one.sentence),
            [one.sentence, *([f"Like {joined(alike)}."] if alike else [])],
        )
        for one, alike in zip(every, like, strict=True)
    ]
    lead = (
        "Each node's and edge's share of the answer, in its units. Orange pulls towards the "
        "answer, blue away from it; with an average graph and the graph as a whole all "
        "shares add up to it."
    )
    caption = (
        f"{counted(len(pictures), 'test graph')} of seed {model.seeds[0]}; the same colours for "
        "the same shares in all of them. Shares are those of all networks together."
    )
    return Section("shares", "What answers rest on", lead, [Pictures(pictures, caption)])


def _chosen(model: ModelFolder) -> Array:
    """Numbers of the test graphs to show."""
    found = model.answers(model.task.heads[0])
    if found is None:
        return np.zeros(0, dtype=int)
    answers = found.of_seed(model.seeds[0])
    rows = np.argsort(answers.graph, kind="stable").tolist()
    if model.task.class_names:
        rows = list(choose(answers, np.ones(len(answers), dtype=bool)))
    return np.asarray(answers.graph[rows[:MOST_SHARED]], dtype=int)


def _neighbourhoods(predictor: Predictor, graphs: Graphs) -> Section | None:
    """The neighbourhoods with most weight, class after class."""
    try:
        every = top_neighbourhoods(predictor, graphs)
    except LookHopsError:  # a network that reads none
        return None
    blocks: list[Block] = []
    [head] = predictor.task.heads
    for side, found in every.items():
        title = f"For {side}" if head.task.class_names else f"For {side} values"
        sign = -1 if title == "For low values" else 1  # a class may be called low too
        if not found:
            blocks += [Subheading(title), Note("No neighbourhood raises it.")]
            continue
        pictures = [
            Picture(
                one.words,
                one.picture(styled=False),
                [
                    f"{signed(sign * one.weight, 3)} each, in "
                    f"{counted(one.graphs, 'graph')}, {counted(one.hops, 'hop')}",
                    *(f"in {example}" for example in one.examples),
                ],
            )
            for one in found
        ]
        caption = f"The {len(pictures)} with most weight, of at least five graphs each."
        blocks += [Subheading(title), Pictures(pictures, caption, small=True)]
    lead = (
        f"The model adds up what exact neighbourhoods say. These {SHOWN} or fewer weigh most: what "
        f"each adds to {head.task.unit} wherever it stands, on average, how many graphs hold it, "
        "and two of them. The coloured node is the one in the middle."
    )
    return Section("neighbourhoods", "The neighbourhoods with most weight", lead, blocks)


def _pools(model: ModelFolder) -> bool:
    """Whether the model has pooling of ours: others do not say what became of each node."""
    options = model.config["learner"]["options"]
    pool = options.get("pool", "none")
    return pool != "none" and not is_other(pool) and options["layers"] >= 2


def _gallery(model: ModelFolder, predictor: Predictor, graphs: Graphs) -> Gallery | Note:
    """Chosen graphs with what was kept of each; why there are none otherwise."""
    names = model.task.class_names
    if not names:
        return Note("Graphs are shown by class, and this model answers numbers or several targets.")
    seed, [head] = model.seeds[0], model.task.heads
    every = model.answers(head)
    if every is None:
        return Note("The folder has no predictions.csv to choose graphs by.")
    answers = every.of_seed(seed)
    small = graphs.nodes_per_graph.cpu().numpy()[answers.graph] <= MOST_NODES
    predicted = head.task.decided(answers.values, model.config["metrics"]["seeds"][str(seed)])
    chosen = {} if predicted is None else choose(answers, small, predicted)
    if predicted is None or not chosen:
        return Note(f"No test graph has at most {MOST_NODES} nodes, so that none is drawn.")
    shown = graphs.select(answers.graph[list(chosen)])
    has_edges = isinstance(predictor.models[seed].pools[0], NodePooling)
    found = zip(chosen, explain(predictor, shown, seed), likenesses(predictor, shown), strict=True)
    cards = []
    for row, explanation, alike in found:
        name, number, best = answers.ids[row], str(answers.graph[row]), int(predicted[row])
        name = f"graph {number}" if name == number else name
        graph = explanation.layered()
        said = steps(graph, has_edges)
        what = "Molecule" if graph.smiles is not None else "Graph"
        card = Card(
            name=name,
            true=names[int(answers.truth[row])],
            predicted=names[best],
            probability=float(answers.values[row, best]),
            group=chosen[row],
            picture=animated(graph, f"{what} {name}: {'; '.join(said)}"),
            steps=said,
            like=f"Like {joined(alike)}." if alike else "",
        )
        cards.append(card)
    left_out = int((~small).sum())
    note = f" Graphs of more than {MOST_NODES} nodes ({left_out}) are left out." if left_out else ""
    caption = (
        f"{counted(len(cards), 'graph')} of the {len(answers):,} test graphs of seed {seed}: "
        f"of each class the most certain right answers, the least certain answers and the most "
        f"certain wrong ones. Probabilities are that seed's, calibrated.{note}"
    )
    return Gallery(cards, caption)


def choose(
    answers: TestAnswers, allowed: Array, predicted: Array | None = None
) -> Mapping[int, str]:
    """Rows of one seed's answers to show, each once, with the reason; class after class.

    ``allowed`` are those that can be drawn, ``predicted`` the classes that are answered (by default
    the likeliest), both of shape (n).
    """
    predicted = answers.values.argmax(1) if predicted is None else predicted
    sure, right = answers.values.max(1), predicted == answers.truth
    chosen: dict[int, str] = {}
    classes = np.unique(answers.truth).tolist()
    each = max(1, min(OF_EACH, MOST // (len(GROUPS) * max(len(classes), 1))))
    for number in classes:
        mine = np.flatnonzero((answers.truth == number) & allowed)
        by_certainty = mine[np.argsort(-sure[mine], kind="stable")]
        orders = {
            "certain": by_certainty[right[by_certainty]],
            "wrong": by_certainty[~right[by_certainty]],
            "unsure": by_certainty[::-1],
        }
        taken: dict[int, str] = {}
        for group, order in orders.items():
            fresh = [row for row in order.tolist() if row not in taken]
            taken |= dict.fromkeys(fresh[:each], group)
        chosen |= {row: group for group in GROUPS for row in taken if taken[row] == group}
    return dict(list(chosen.items())[:MOST])


def steps(graph: LayeredGraph, has_edges: bool = True) -> list[str]:
    """What to say at each position of the slider: how much is left after each layer.

    Where nodes are merged, the edges that are left are not the graph's and are not counted.
    """
    node, edge = ("nodes", "edges") if graph.smiles is None else ("atoms", "bonds")
    nodes, edges = len(graph.node_layer), len(graph.edge_layer)
    texts = [f"whole graph: {nodes} {node}, {edges} {edge}"]
    for layer in range(1, len(graph.scores) + 1):
        text = f"layer {layer}: {int((graph.node_layer > layer).sum())} of {nodes} {node}"
        if has_edges:
            text += f", {int((graph.edge_layer > layer).sum())} of {edges} {edge}"
        texts.append(text)
    return texts
