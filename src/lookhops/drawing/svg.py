"""What pooling did to a graph, as SVG: still, a panel for each layer, or for a page to animate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookhops.drawing.palette import FAINT, INK, score_colour
from lookhops.drawing.sketch import Shape, Sketch, sketch

Array = NDArray[Any]

#: Size of a panel, and of what is written above all of them and under each; panels in a row.
WIDTH, HEIGHT, TITLE, CAPTION, ROW = 400, 260, 46, 52, 2
#: Size of a picture in a page.
CARD = (320, 210)
FADED = ' opacity="0.18"'


@dataclass(frozen=True, eq=False)
class LayeredGraph:
    """A graph, and what each of some layers made of it; layers are numbered from 1.

    Args:
        edges: Each edge once, the smaller node first, shape (e, 2).
        node_layer: The layer that drops each node, beyond the last where none does, shape (n).
        edge_layer: The same of each edge, which goes with the first of its ends, shape (e).
        scores: Of each node in each layer that it reached, from 0 for the layer's lowest to 1;
            NaN where it did not reach the layer; shape (layers, n).
        smiles: The molecule, if it is one.
    """

    edges: Array
    node_layer: Array
    edge_layer: Array
    scores: Array
    smiles: str | None = None

    def sketch(self, width: int, height: int) -> Sketch:
        """Where its parts are drawn."""
        return sketch(len(self.node_layer), self.edges, self.smiles, width, height)

    def shapes(self, drawn: Sketch) -> list[tuple[Shape, int]]:
        """The shapes, each with the layer that drops it: with an end, or as an edge itself."""
        pairs = map(tuple, self.edges.tolist())
        own = dict(zip(pairs, self.edge_layer.tolist(), strict=True))
        return [
            (shape, int(own.get(shape.nodes, self.node_layer[list(shape.nodes)].min())))
            for shape in drawn.shapes
        ]


# -------------------------------------------------------------------- for a page


def animated(graph: LayeredGraph, words: str) -> str:
    """An SVG whose shapes say when they go, for a page's script and style to show.

    A shape that a layer drops carries its number (``data-d``); the disc of each node carries its
    score in each layer (``data-s``, 0 to 100, commas between). Nothing is drawn twice.

    Args:
        graph: The graph.
        words: The picture in words, for who does not see it.
    """
    width, height = CARD
    drawn = graph.sketch(width, height)
    last = len(graph.scores)

    def drop(layer: int) -> str:
        return f' data-d="{layer}"' if layer <= last else ""

    shapes = "".join(
        f"<{_classed(shape) if drawn.molecule else shape.geometry}{drop(layer)}/>"
        for shape, layer in graph.shapes(drawn)
    )
    discs = ""
    for (x, y), score, layer, name in zip(
        drawn.place.tolist(), graph.scores.T, graph.node_layer.tolist(), drawn.names, strict=True
    ):
        shares = ",".join("" if np.isnan(one) else str(round(100 * one)) for one in score.tolist())
        discs += (
            f'<circle class="score" cx="{x:.1f}" cy="{y:.1f}" r="{drawn.radius:.1f}" '
            f'data-s="{shares}"{drop(layer)}><title>{escape(name)}</title></circle>'
        )
    body = (
        f"<g>{discs}</g><g>{shapes}</g>"
        if drawn.molecule
        else f'<g class="edges">{shapes}</g><g class="nodes">{discs}</g>'
    )
    box = f'viewBox="0 0 {width} {height}"'
    return f'<svg {box} role="img" aria-label="{escape(words)}">{body}</svg>'


def _classed(shape: Shape) -> str:
    element, geometry = shape.geometry.split(" ", 1)
    return f'{element} class="{shape.kind}" {geometry}'


# -------------------------------------------------------------------- still


def panels(
    graph: LayeredGraph, title: str, head: str, captions: Sequence[tuple[str, Sequence[str]]]
) -> str:
    """An SVG with a panel for each layer: nodes shaded by their score, what it dropped faded.

    Args:
        graph: The graph.
        title: What the graph is called.
        head: Written above all panels.
        captions: Written under each: a text, and its lowest and highest score for the legend.
    """
    drawn = graph.sketch(WIDTH, HEIGHT)
    rows = -(-len(captions) // ROW)
    width, height = WIDTH * min(len(captions), ROW), TITLE + rows * (HEIGHT + CAPTION)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" font-family="Helvetica, Arial, sans-serif">',
        f"<title>{escape(title)}</title>",
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
        _text(16, 28, head, 17, bold=True),
    ]
    for number, (caption, ends) in enumerate(captions):
        left, top = WIDTH * (number % ROW), TITLE + (number // ROW) * (HEIGHT + CAPTION)
        parts.append(
            f'<svg x="{left}" y="{top}" width="{WIDTH}" height="{HEIGHT}" '
            f'viewBox="0 0 {WIDTH} {HEIGHT}">\n{_panel(graph, drawn, number + 1)}\n</svg>'
        )
        parts.append(_text(left + 16, top + HEIGHT + 14, caption, 13))
        parts += _legend(left + 54, top + HEIGHT + 24, *ends) if ends else []
    return "\n".join([*parts, "</svg>", ""])


def _panel(graph: LayeredGraph, drawn: Sketch, layer: int) -> str:
    """A graph after one of the layers."""
    shapes = [_still(shape, goes <= layer, drawn) for shape, goes in graph.shapes(drawn)]
    discs = []
    for node, ((x, y), share) in enumerate(zip(drawn.place, graph.scores[layer - 1], strict=True)):
        reached, gone = not np.isnan(share), graph.node_layer[node] <= layer
        if drawn.molecule and not reached:
            continue
        look = FADED if gone else ""
        if not drawn.molecule:
            edge = f'stroke="{FAINT}" opacity="0.6"' if gone else f'stroke="{INK}"'
            look = f' {edge} stroke-width="{min(1.2, drawn.radius / 4):g}"'
        fill = score_colour(float(share)) if reached else "#ffffff"
        discs.append(
            f'<circle class="atom-{node}" cx="{x:.1f}" cy="{y:.1f}" r="{drawn.radius:.1f}" '
            f'fill="{fill}"{look}><title>{escape(drawn.names[node])}</title></circle>'
        )
    return "\n".join([*discs, *shapes] if drawn.molecule else [*shapes, *discs])


def _still(shape: Shape, gone: bool, drawn: Sketch) -> str:
    if shape.kind == "edge":
        look = f'stroke="{FAINT}" stroke-dasharray="3 3"' if gone else f'stroke="{INK}"'
        return f'<{shape.geometry} {look} stroke-width="{min(1.5, drawn.radius / 4):g}"/>'
    atoms = " ".join(f"atom-{node}" for node in shape.nodes)
    stroke = f'fill="none" stroke="{INK}" stroke-width="2" stroke-linecap="round"'
    look = f'fill="{INK}"' if shape.kind == "ink" else stroke
    return f'<{shape.geometry} class="{atoms}" {look}{FADED if gone else ""}/>'


def _legend(left: float, top: float, low: str, high: str) -> list[str]:
    """The colours of the scores, between their lowest and highest value."""
    steps = [
        f'<rect x="{left + 6 + 12 * i}" y="{top}" width="12" height="8" '
        f'fill="{score_colour(i / 7)}"/>'
        for i in range(8)
    ]
    ends = _text(left, top + 8, low, 11, anchor="end"), _text(left + 108, top + 8, high, 11)
    return [ends[0], *steps, ends[1]]


def _text(
    x: float, y: float, text: str, size: int, anchor: str = "start", bold: bool = False
) -> str:
    weight = ' font-weight="bold"' if bold else ""
    return (
        f'<text x="{x:g}" y="{y:g}" font-size="{size}" fill="{INK}" '
        f'text-anchor="{anchor}"{weight}>{escape(text, quote=False)}</text>'
    )
