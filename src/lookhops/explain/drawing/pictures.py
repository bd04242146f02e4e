"""Graphs as SVG: what pooling did, still or for a page to animate; and parts of a graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from lookhops.core.arrays import Array
from lookhops.core.charts import FAINT, INK, PAGE, score_colour, templates_of
from lookhops.core.words import visible
from lookhops.explain.drawing.sketch import DrawnGraph, Shape, Sketch, read_molecule, sketch

if TYPE_CHECKING:
    from jinja2 import Environment

#: Width and height of a still panel, and of a picture in a page.
PANEL, CARD = (400, 260), (320, 210)


@dataclass(frozen=True, eq=False)
class LayeredGraph(DrawnGraph):
    """A graph, and what each of some layers made of it; layers are numbered from 1."""

    node_layer: Array  # the layer that drops each node, beyond the last where none does, (n)
    edge_layer: Array  # the same of each edge, which goes with the first of its ends, (e)
    scores: Array  # of each node in each layer, from 0 for the lowest to 1, or NaN, (layers, n)

    def lasting(self, most: int) -> LayeredGraph:
        """The graph of at most so many nodes: those that stay longest, of equals the first."""
        if len(self.node_layer) <= most:
            return self
        nodes = np.sort(np.argsort(-self.node_layer, kind="stable")[:most])
        edges, inside = self.edges_among(nodes, len(self.node_layer))
        kept = edges, self.node_layer[nodes], self.edge_layer[inside]
        return LayeredGraph(*kept, self.scores[:, nodes], ids=self.ids_of(nodes))

    def shapes(self, drawn: Sketch) -> list[tuple[Shape, int]]:
        """The shapes, each with the layer that drops it: with an end, or as an edge itself."""
        pairs = map(tuple, self.edges.tolist())
        of_edges = dict(zip(pairs, self.edge_layer.tolist(), strict=True))
        return [
            (shape, int(of_edges.get(shape.nodes, self.node_layer[list(shape.nodes)].min())))
            for shape in drawn.shapes
        ]


def animated(graph: LayeredGraph, words: str) -> str:
    """An SVG whose shapes say when they go, for a page's script and style to show.

    A shape that a layer drops carries its number (``data-d``); the disc of each node carries its
    score in each layer (``data-s``, 0 to 100, commas between).
    """
    return _render("animated.svg", graph, CARD, words=words)


def panels(
    graph: LayeredGraph, title: str, head: str, captions: Sequence[tuple[str, Sequence[str]]]
) -> str:
    """An SVG with a panel for each layer: nodes shaded by their score, what it dropped faded.

    Under each stands its caption: a text, and its lowest and highest score for the legend.
    """
    return _render("panels.svg", graph, PANEL, title=title, head=head, captions=captions)


def _render(template: str, graph: LayeredGraph, size: tuple[int, int], **texts: Any) -> str:
    """A template with the parts of a graph, placed in a picture of this size."""
    drawn = sketch(len(graph.node_layer), graph.edges, graph.smiles, *size)
    names = drawn.names if graph.ids is None else [f"node {one}" for one in graph.ids]
    scores = [[None if np.isnan(one) else one for one in row] for row in graph.scores.T.tolist()]
    each = zip(range(len(names)), names, graph.node_layer.tolist(), scores, strict=True)
    keys = ("number", "name", "layer", "scores")
    return fill_in(
        template,
        drawn,
        drawn.place,
        [dict(zip(keys, node, strict=True)) for node in each],
        width=size[0],
        height=size[1],
        shapes=graph.shapes(drawn),
        layers=len(graph.scores),
        **texts,
    )


def fill_in(
    template: str, drawn: Sketch, place: Array, nodes: Sequence[Mapping[str, Any]], **parts: Any
) -> str:
    """A picture from its template, with nodes at their places."""
    made = _templates().get_template(template)
    at = zip(place.tolist(), nodes, strict=True)
    placed = [{"x": f"{x:.1f}", "y": f"{y:.1f}", **node} for (x, y), node in at]
    text = made.render(drawn=drawn, radius=f"{drawn.radius:.1f}", nodes=placed, **parts)
    return visible(text)  # names with control characters would make it no XML


@cache
def _templates() -> Environment:
    found = templates_of("lookhops.explain.drawing", keep_trailing_newline=True)
    found.filters["e"] = escape
    names = {"INK": INK, "FAINT": FAINT, "faded": ' opacity="0.18"', "score_colour": score_colour}
    found.globals.update(names, percent=lambda share: round(100 * share))
    return found


#: Width and height of the whole that a molecule's part is cut out of, and of any other picture.
WHOLE, SIZE = (480, 320), (200, 140)


@dataclass(frozen=True, eq=False)
class Fragment(DrawnGraph):
    """A part of a graph."""

    names: Sequence[str]  # of each node of the graph
    nodes: Array  # those in the part, ascending
    centre: int  # the node in the middle

    @property
    def as_smiles(self) -> str | None:
        """The part of a molecule as SMILES; none of other graphs, and without RDKit."""
        if self.smiles is None or (molecule := read_molecule(self.smiles, len(self.names))) is None:
            return None
        from rdkit import Chem

        return str(Chem.MolFragmentToSmiles(molecule, self.nodes.tolist()))


def draw_fragment(fragment: Fragment, words: str, styled: bool = True) -> str:
    """An SVG of the part, its middle marked; ``words`` and ``styled`` as for ``draw_shares``."""
    nodes = fragment.nodes.tolist()
    drawn = sketch(len(fragment.names), fragment.edges, fragment.smiles, *WHOLE)
    shapes = [shape for shape in drawn.shapes if set(nodes).issuperset(shape.nodes)]
    place = drawn.place[fragment.nodes]
    if not drawn.molecule:
        edges, _ = fragment.edges_among(fragment.nodes, len(fragment.names))
        drawn = sketch(len(nodes), edges, None, *SIZE)
        shapes, place = list(drawn.shapes), drawn.place
    margin = 2.2 * drawn.radius
    low, high = place.min(0) - margin, place.max(0) + margin
    box = np.maximum(high - low, (6 * drawn.radius, 4 * drawn.radius))
    low = (low + high - box) / 2
    return fill_in(
        "fragment.svg",
        drawn,
        place,
        [{"name": fragment.names[node], "centre": node == fragment.centre} for node in nodes],
        box=" ".join(f"{value:.1f}" for value in (*low, *box)),
        height=round(min(140.0, 200 * box[1] / box[0])),
        words=words,
        styled=styled,
        page=PAGE,
        shapes=shapes,
    )
