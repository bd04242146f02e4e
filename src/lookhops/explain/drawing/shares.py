"""Shares of an answer as SVG: what pulls towards it and what pulls away, in two colours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import floor, log10
from textwrap import wrap
from typing import Any

import numpy as np
from scipy.sparse import coo_array

from lookhops.core.arrays import Array
from lookhops.core.charts import PAGE
from lookhops.core.words import counted, short, signed
from lookhops.explain.drawing.pictures import fill_in
from lookhops.explain.drawing.sketch import DrawnGraph, fit, layout, sketch

#: Width and height of a picture, and of the small one of a whole large graph.
SIZE, OVERVIEW = (480, 320), (150, 110)
#: Larger graphs are drawn in part: so many nodes at most; of the whole so many edges and nodes.
MOST_NODES, MOST_EDGES = 250, 4000
#: Characters for which there is room in a line, in the head and in the legend.
LINE, HEAD, UNIT = 62, 48, 56
#: Letters smaller than this cannot be read; a node's label may be so many radii long.
SMALLEST, ROOM = 6.3, 3.9
#: Features of whole graphs that have a bar, its height, and how far bars reach to each side.
MOST_BARS, BAR, REACH = 5, 16, 110
#: Characters of a feature's name for which there is room.
FEATURE = 22
#: Weaker colours than this cannot be seen.
FAINTEST = 0.03


@dataclass(frozen=True, eq=False)
class SharedGraph(DrawnGraph):
    """A graph, and what each part of it has of an answer."""

    names: Sequence[str]  # of the nodes
    node: Array  # share of each node, (n)
    edge: Array  # share of each edge, (e)
    features: Mapping[str, float] = field(default_factory=dict, kw_only=True)  # of the whole graph

    @property
    def largest(self) -> float:
        """The largest share of a node or an edge, whichever way it pulls."""
        return float(max(np.abs(self.node).max(initial=0), np.abs(self.edge).max(initial=0)))

    def part(self, nodes: Array) -> SharedGraph:
        """The graph of some nodes, numbered in their order, and the edges between them."""
        edges, inside = self.edges_among(nodes, len(self.node))
        names = [self.names[node] for node in nodes.tolist()]
        shares = self.node[nodes], self.edge[inside]
        return SharedGraph(edges, names, *shares, ids=self.ids_of(nodes))

    def what_matters(self, most: int = MOST_NODES) -> Array:
        """At most so many nodes, ascending: those with the largest shares and their neighbours."""
        weight = with_edges(np.abs(self.node), self.edges, np.abs(self.edge))
        n, ones = len(weight), np.ones(len(self.edges))
        links = coo_array((ones, (self.edges[:, 0], self.edges[:, 1])), shape=(n, n)).tocsr()
        links = (links + links.T).tocsr()
        chosen: dict[int, None] = {}
        for node in np.argsort(-weight, kind="stable").tolist():
            around = links.indices[links.indptr[node] : links.indptr[node + 1]]
            around = around[np.argsort(-weight[around], kind="stable")]
            wanted = [one for one in (node, *around.tolist()) if one not in chosen]
            if chosen and len(chosen) + len(wanted) > most:
                break
            chosen.update(dict.fromkeys(wanted[:most]))  # the first may have too many neighbours
        return np.array(sorted(chosen), dtype=int)


def with_edges(node: Array, edges: Array, edge: Array) -> Array:
    """What nodes (n) have together with half of what each of their edges (e) has, shape (n)."""
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

    Graphs of more than 250 nodes are drawn in part, what matters with its surroundings, beside the
    whole in small. The features of the whole graph with the largest shares have bars below. Nodes
    have their ids or numbers where these fit, and no letters of atoms.

    Args:
        graph: The graph.
        limit: The share with the full colour: the same for pictures that are shown side by side.
        unit: What shares are counted in, for the legend.
        head, lines: Written above, and below.
        styled: Whether it brings its colours; a page that shows it may have them.
        words: The picture in words, where nothing is written in it.
    """
    limit = limit if limit > 0 else 1.0
    shown, overview = graph, None
    if len(graph.node) > MOST_NODES:
        nodes = graph.what_matters()
        shown, overview = graph.part(nodes), _overview(graph, nodes, limit)
    beside = 0 if overview is None else OVERVIEW[0]  # the width of the small picture
    drawn = sketch(len(shown.node), shown.edges, shown.smiles, SIZE[0] - beside, SIZE[1])
    return fill_in(
        "shares.svg",
        drawn,
        drawn.place,
        _nodes(shown, limit),
        edges=_edges(shown, limit),
        size=SIZE,
        styled=styled,
        words=words or " ".join((head, *lines)),
        page=PAGE,
        head=short(head, HEAD),
        full_head=head,
        lines=[line for text in lines for line in _titled(text)],
        unit=short(unit, UNIT),
        full_unit=unit,
        ends=(written(-limit, digits_for(limit)), written(limit, digits_for(limit))),
        overview=overview,
        bars=_bars(graph.features, limit),
        bar=BAR,
        letters=0 if drawn.molecule or overview else _letters(shown, drawn.radius),
        overview_size=OVERVIEW,
    )


def written(value: float, digits: int = 2) -> str:
    """``+0.91``, ``−1230``: so many digits after the point, of large numbers none; 0 unsigned."""
    digits = digits if abs(value) < 100 else 0
    return signed(value, digits) if round(value, digits) else f"{0:.{digits}f}"


def digits_for(largest: float) -> int:
    """Digits after the point with which the largest of several shares has two that count."""
    return 2 if largest >= 0.1 or largest <= 0 else min(1 - floor(log10(largest)), 9)


def wrapped(text: str, width: int = LINE) -> list[str]:
    """A text in lines of at most so many characters, broken between words; longer ones are cut."""
    plain = " ".join(short(word, width) for word in text.split())
    return wrap(plain, width, break_long_words=False, break_on_hyphens=False)


def _titled(text: str) -> list[tuple[str, str]]:
    """The lines of a text, each with all of it where a word had to be cut, else with nothing."""
    cut = any(len(word) > LINE for word in text.split())
    return [(line, text if cut else "") for line in wrapped(text)]


def _letters(graph: SharedGraph, radius: float) -> float:
    """The size of letters with which there is room for the label of every node; 0 for none."""
    longest = max(map(len, graph.ids or [str(len(graph.node) - 1)]), default=1)
    size = min(0.9 * radius, ROOM * radius / max(longest, 1))
    return size if size >= SMALLEST else 0.0


def _nodes(graph: SharedGraph, limit: float) -> list[dict[str, Any]]:
    labels = graph.ids or [str(number) for number in range(len(graph.node))]
    return [
        {"name": _said(name, share, limit), "label": label, **_colour(share, limit)}
        for name, label, share in zip(graph.names, labels, graph.node, strict=True)
    ]


def _edges(graph: SharedGraph, limit: float) -> list[dict[str, Any]]:
    """The edges whose colour can be seen, the strongest last."""
    found = []
    for number in np.argsort(np.abs(graph.edge), kind="stable").tolist():
        share, (i, j) = graph.edge[number], graph.edges[number].tolist()
        name = _said(f"{graph.names[i]}, {graph.names[j]}", share, limit)
        found.append({"i": i, "j": j, "name": name, **_colour(share, limit)})
    return [edge for edge in found if edge["opacity"] is not None]


def _said(name: str, share: float, limit: float) -> str:
    return f"{name}: {written(share, digits_for(limit))}"


def _colour(share: float, limit: float) -> dict[str, Any]:
    """Which colour a share has, and how strong it is; no strength where it cannot be seen."""
    strength = min(abs(float(share)) / limit, 1.0)
    side = "for" if share >= 0 else "against"
    return {"side": side, "opacity": f"{strength:.2f}" if strength >= FAINTEST else None}


def _bars(features: Mapping[str, float], limit: float) -> list[dict[str, Any]]:
    """The features with the largest shares, those that can be seen, the largest first."""
    order = sorted(features, key=lambda name: -abs(features[name]))[:MOST_BARS]
    shown = [name for name in order if abs(features[name]) >= FAINTEST * limit]
    longest = max((abs(features[name]) for name in shown), default=limit)
    return [
        {
            "name": short(name, FEATURE),
            "full_name": name,
            "value": written(features[name], digits_for(limit)),
            "length": f"{REACH * abs(features[name]) / max(longest, limit):.1f}",
            "left": f"{REACH * min(features[name] / max(longest, limit), 0):.1f}",
            "side": _colour(features[name], limit)["side"],
        }
        for name in shown
    ]


def _overview(graph: SharedGraph, nodes: Array, limit: float) -> dict[str, Any]:
    """The whole graph in small: its edges as one line, the nodes that are shown large as dots."""
    place = fit(layout(len(graph.node), graph.edges), *OVERVIEW)
    edges = graph.edges
    if len(edges) > MOST_EDGES:
        edges = edges[np.linspace(0, len(edges) - 1, MOST_EDGES).astype(int)]
    ends = place[edges].round(0).astype(int).tolist()
    dots = zip(place[nodes].tolist(), graph.node[nodes], strict=True)
    return {
        "path": "".join(f"M{x1} {y1}L{x2} {y2}" for (x1, y1), (x2, y2) in ends),
        "dots": [{"x": f"{x:.0f}", "y": f"{y:.0f}", **_colour(s, limit)} for (x, y), s in dots],
        "words": f"{counted(len(nodes), 'node')} of {len(graph.node):,}",
    }
