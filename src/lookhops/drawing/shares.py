"""A graph whose nodes and edges are coloured by what each has of an answer, as SVG."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookhops.drawing.palette import BLUE, INK, VERMILLION
from lookhops.drawing.sketch import sketch
from lookhops.drawing.svg import CARD, templates
from lookhops.words import MINUS, visible

Array = NDArray[Any]

#: How dark the largest share is, and from which part of it on a share is drawn at all.
DARKEST, LEAST = 0.75, 0.04


def coloured(edges: Array, node: Array, edge: Array, words: str, smiles: str | None = None) -> str:
    """An SVG: what speaks for the answer is blue, what speaks against it red with a dashed line.

    Colours stand as attributes, which a page's style may override by the classes ``for`` and
    ``against``.

    Args:
        edges: Each edge once, the smaller node first, shape (e, 2).
        node: Share of each node, shape (n).
        edge: Share of each edge, shape (e).
        words: The picture in words, for who does not see it.
        smiles: The molecule, if it is one.
    """
    drawn = sketch(len(node), edges, smiles, *CARD)
    largest = max((float(np.abs(part).max()) for part in (node, edge) if len(part)), default=0.0)

    def shade(share: float) -> dict[str, str]:
        size = abs(share) / largest if largest > 0 else 0.0
        kind = "against" if share < 0 else "for"
        return {
            "kind": kind,
            "colour": VERMILLION if share < 0 else BLUE,
            "opacity": f"{DARKEST * size:.2f}" if size >= LEAST else "0",
            "share": f"{share:+.2g}".replace("-", MINUS),
        }

    nodes = [
        {"x": f"{x:.1f}", "y": f"{y:.1f}", "name": drawn.names[i], **shade(float(node[i]))}
        for i, (x, y) in enumerate(drawn.place.tolist())
    ]
    ends = drawn.place[edges].tolist()
    names = [" and ".join(drawn.names[i] for i in pair) for pair in edges.tolist()]
    lines = [
        {
            **{"x1": f"{x1:.1f}", "y1": f"{y1:.1f}", "x2": f"{x2:.1f}", "y2": f"{y2:.1f}"},
            **{"name": name, **shade(float(share))},
        }
        for ((x1, y1), (x2, y2)), name, share in zip(ends, names, edge.tolist(), strict=True)
    ]
    made = templates().get_template("shares.svg")
    return visible(
        made.render(
            width=CARD[0],
            height=CARD[1],
            words=words,
            drawn=drawn,
            radius=f"{drawn.radius:.1f}",
            thick=f"{1.1 * drawn.radius:.1f}",
            nodes=nodes,
            lines=lines,
            ink=INK,
        )
    )
