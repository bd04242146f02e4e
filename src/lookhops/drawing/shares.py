"""Shares of an answer as SVG: what pulls towards it and what pulls away, in two colours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import Any

import numpy as np
from scipy.sparse import coo_array

from lookhops.arrays import Array
from lookhops.drawing.layout import fit, layout
from lookhops.drawing.palette import PAGE
from lookhops.drawing.sketch import DrawnGraph, Sketch, sketch
from lookhops.drawing.svg import fill_in
from lookhops.words import counted, short, signed

#: Width and height of a picture, and of the small one of a whole large graph.
SIZE, OVERVIEW = (480, 320), (150, 110)
#: Larger graphs are drawn in part: so many nodes at most; of the whole so many edges and nodes.
MOST_NODES, MOST_EDGES = 250, 4000
#: Characters for which there is room in a line, in the head and in the legend.
LINE, HEAD, UNIT = 68, 50, 40
#: Nodes with at least this radius have room for their number.
NUMBERED = 7.0
#: Weaker colours than this cannot be seen.
FAINTEST = 0.03


@dataclass(frozen=True, eq=False)
class SharedGraph(DrawnGraph):
    """A graph, and what each part of it has of an answer.

    Args:
        edges, smiles: As for :class:`~lookhops.drawing.sketch.DrawnGraph`.
        names: What each node is called, n of them.
        node: Share of each node, shape (n).
        edge: Share of each edge, shape (e).
    """

    names: Sequence[str]
    node: Array
    edge: Array

    @property
    def largest(self) -> float:
        """The largest share of any part, whichever way it pulls."""
        return float(max(np.abs(self.node).max(initial=0), np.abs(self.edge).max(initial=0)))

    def part(self, nodes: Array) -> SharedGraph:
        """The graph of some nodes, numbered in their order, and the edges between them."""
        edges, inside = self.edges_among(nodes, len(self.node))
        names = [self.names[node] for node in nodes.tolist()]
        return SharedGraph(edges, names, self.node[nodes], self.edge[inside])

    def what_matters(self, most: int = MOST_NODES) -> Array:
        """Numbers of at most so many nodes, ascending: those with the largest shares, in the
        company of their neighbours."""
        weight = with_edges(np.abs(self.node), self.edges, np.abs(self.edge))
        n, ones = len(weight), np.ones(len(self.edges))
        links = coo_array((ones, (self.edges[:, 0], self.edges[:, 1])), shape=(n, n)).tocsr()
        links = (links + links.T).tocsr()
        chosen: dict[int, None] = {}
        for node in np.argsort(-weight, kind="stable").tolist():
            around = links.indices[links.indptr[node] : links.indptr[node + 1]]
            wanted = [one for one in (node, *around.tolist()) if one not in chosen]
            if len(chosen) + len(wanted) > most:
                break
            chosen.update(dict.fromkeys(wanted))
        return np.array(sorted(chosen), dtype=int)


def with_edges(node: Array, edges: Array, edge: Array) -> Array:
    """What nodes have together with half of what each of their edges has, shape (n).

    Args:
        node: Of each node, shape (n).
        edges: Each edge once, shape (e, 2).
        edge: Of each edge, shape (e).
    """
    return sum((np.bincount(end, edge / 2, len(node)) for end in edges.T), start=node)


def draw_shares(
    graph: SharedGraph,
    limit: float,
    unit: str,
    head: str = "",
    lines: Sequence[str] = (),
    styled: bool = True,
    words: str = "",
) -> str:
    """An SVG with every part coloured by its share: orange towards the answer, blue away from it.

    The stronger the colour, the larger the share; ``limit`` has the full colour. Graphs of more
    than 250 nodes are drawn in part, what matters with its surroundings, beside the whole in small.
    Nodes have their numbers where there is room, and no letters of atoms.

    Args:
        graph: The graph.
        limit: The share with the full colour: the same for pictures that are shown side by side.
        unit: What shares are counted in, for the legend.
        head: Written above.
        lines: Written below.
        styled: Whether it brings its own colours; a page that shows it may have them.
        words: The picture in words, where nothing is written in it, for who does not see it.
    """
    limit = limit if limit > 0 else 1.0
    shown, overview = graph, None
    if len(graph.node) > MOST_NODES:
        nodes = graph.what_matters()
        shown, overview = graph.part(nodes), _overview(graph, nodes, limit)
    drawn = sketch(len(shown.node), shown.edges, shown.smiles, *SIZE)
    return fill_in(
        "shares.svg",
        drawn,
        size=SIZE,
        styled=styled,
        words=words or " ".join((head, *lines)),
        page=PAGE,
        head=short(head, HEAD),
        full_head=head,
        lines=[line for text in lines for line in wrapped(text)],
        unit=short(unit, UNIT),
        ends=(written(-limit), written(limit)),
        nodes=_nodes(shown, drawn, limit),
        edges=_edges(shown, drawn, limit),
        overview=overview,
        numbered=not (drawn.molecule or overview) and drawn.radius >= NUMBERED,
        overview_size=OVERVIEW,
    )


def written(value: float) -> str:
    """``+0.91``, ``−1230``: two digits after the point, of large numbers none; no sign of zero."""
    digits = 2 if abs(value) < 100 else 0
    return signed(value, digits) if round(value, digits) else "0.00"


def wrapped(text: str, width: int = LINE) -> list[str]:
    """A text in lines of at most so many characters, broken between words."""
    plain = " ".join(text.split())
    return wrap(plain, width, break_long_words=False, break_on_hyphens=False)


def _nodes(graph: SharedGraph, drawn: Sketch, limit: float) -> list[dict[str, Any]]:
    return [
        {
            "x": f"{x:.1f}",
            "y": f"{y:.1f}",
            "name": f"{name}: {written(share)}",
            **_colour(share, limit),
        }
        for (x, y), name, share in zip(drawn.place.tolist(), graph.names, graph.node, strict=True)
    ]


def _edges(graph: SharedGraph, drawn: Sketch, limit: float) -> list[dict[str, Any]]:
    """The edges whose colour can be seen, the strongest last."""
    order = np.argsort(np.abs(graph.edge), kind="stable")
    found = []
    for number in order.tolist():
        colour = _colour(graph.edge[number], limit)
        if colour["opacity"] is None:
            continue
        i, j = graph.edges[number].tolist()
        places = (*drawn.place[i].tolist(), *drawn.place[j].tolist())
        ends = dict(zip(("x1", "y1", "x2", "y2"), (f"{v:.1f}" for v in places), strict=True))
        name = f"{graph.names[i]}, {graph.names[j]}: {written(graph.edge[number])}"
        found.append({**ends, "name": name, **colour})
    return found


def _colour(share: float, limit: float) -> dict[str, Any]:
    """Which colour a share has, and how strong it is; no strength where it cannot be seen."""
    strength = min(abs(float(share)) / limit, 1.0)
    side = "for" if share >= 0 else "against"
    return {"side": side, "opacity": f"{strength:.2f}" if strength >= FAINTEST else None}


def _overview(graph: SharedGraph, nodes: Array, limit: float) -> dict[str, Any]:
    """The whole graph in small: its edges as one line, the nodes that are shown large as dots."""
    place = fit(layout(len(graph.node), graph.edges), *OVERVIEW)
    edges = graph.edges
    if len(edges) > MOST_EDGES:
        edges = edges[np.linspace(0, len(edges) - 1, MOST_EDGES).astype(int)]
    ends = place[edges].round(0).astype(int).tolist()
    dots = []
    for node in nodes.tolist():
        colour = _colour(graph.node[node], limit)
        dots.append({"x": f"{place[node, 0]:.0f}", "y": f"{place[node, 1]:.0f}", **colour})
    return {
        "path": "".join(f"M{x1} {y1}L{x2} {y2}" for (x1, y1), (x2, y2) in ends),
        "dots": dots,
        "words": f"{counted(len(nodes), 'node')} of {len(graph.node):,}",
    }
