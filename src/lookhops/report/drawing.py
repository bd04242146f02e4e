"""One SVG for each graph of the gallery, whose shapes say when they go.

A shape that pooling drops carries the layer that drops it (``data-d``); the disc behind each node
carries its score in each layer that it reached (``data-s``, 0 to 100, commas between). The page's
script does the rest: nothing is drawn twice.
"""

from __future__ import annotations

import re
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookhops.models.explain import Explanation
from lookhops.models.layout import layout
from lookhops.models.pictures import drawable, drawer_of

Array = NDArray[Any]

WIDTH, HEIGHT, MARGIN = 320, 210, 16


def drawing(explanation: Explanation, own_edges: bool = True) -> str:
    """The SVG of a graph: a molecule as chemists draw it, any other by a force layout.

    Args:
        explanation: What the layers kept.
        own_edges: Whether what is left has edges of the graph only: not where nodes are merged.
    """
    body = _molecule(explanation) or _graph(explanation)
    what = "Molecule" if explanation.smiles is not None else "Graph"
    words = f"{what} {explanation.id}: {'; '.join(steps(explanation, own_edges))}"
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(words)}">{body}</svg>'
    )


def steps(explanation: Explanation, own_edges: bool = True) -> list[str]:
    """What to say at each position of the slider: how much is left after each layer."""
    molecule = explanation.smiles is not None
    node, edge = ("atoms", "bonds") if molecule else ("nodes", "edges")
    total, edges = explanation.num_nodes, len(explanation.edges)
    texts = [f"whole graph: {total} {node}, {edges} {edge}"]
    gone, lost = dropped_at(explanation), edges_dropped_at(explanation)
    for layer in range(1, len(explanation.layers) + 1):
        text = f"layer {layer}: {int((gone > layer).sum())} of {total} {node}"
        if own_edges:
            text += f", {int((lost > layer).sum())} of {edges} {edge}"
        texts.append(text)
    return texts


def dropped_at(explanation: Explanation) -> Array:
    """The layer that drops each node, or merges it into another; beyond the last if none does."""
    gone = np.full(explanation.num_nodes, len(explanation.layers) + 1)
    for number, view in reversed(list(enumerate(explanation.layers, 1))):
        gone[view.nodes[~view.kept]] = number
    return gone


def edges_dropped_at(explanation: Explanation) -> Array:
    """The layer that drops each edge, itself or with one of its ends."""
    edges = explanation.edges
    last = len(explanation.layers) + 1
    own = {
        tuple(pair): number
        for number, view in reversed(list(enumerate(explanation.layers, 1)))
        for pair in view.dropped_edges.tolist()
    }
    itself = np.array([own.get(tuple(pair), last) for pair in edges.tolist()], dtype=int)
    return np.minimum(itself, dropped_at(explanation)[edges].min(1)) if len(edges) else itself


def _scores(explanation: Explanation) -> list[str]:
    """Of each node, its score in each layer that it reached, between the layer's extremes."""
    texts = [["" for _ in explanation.layers] for _ in range(explanation.num_nodes)]
    for number, view in enumerate(explanation.layers):
        if not len(view.score):
            continue
        low, span = view.score.min(), np.ptp(view.score)
        share = (view.score - low) / span if span > 0 else np.ones(len(view.score))
        for node, value in zip(view.nodes.tolist(), share.tolist(), strict=True):
            texts[node][number] = str(round(100 * value))
    return [",".join(row) for row in texts]


def _discs(explanation: Explanation, place: Array, radius: float, names: list[str]) -> str:
    gone, last = dropped_at(explanation), len(explanation.layers)
    return "".join(
        f'<circle class="score" cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}" data-s="{score}"'
        f"{_drop(gone[i], last)}><title>{escape(name)}</title></circle>"
        for i, ((x, y), score, name) in enumerate(
            zip(place.tolist(), _scores(explanation), names, strict=True)
        )
    )


def _drop(layer: int, last: int) -> str:
    return f' data-d="{layer}"' if layer <= last else ""


# -------------------------------------------------------------------- graphs


def _graph(explanation: Explanation) -> str:
    place = _fit(layout(explanation.num_nodes, explanation.edges))
    ends = place[explanation.edges]
    length = np.median(np.linalg.norm(ends[:, 0] - ends[:, 1], axis=1)) if len(ends) else WIDTH
    radius = float(np.clip(0.36 * length, 1.5, 9))
    last = len(explanation.layers)
    lines = "".join(
        f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"{_drop(layer, last)}/>'
        for ((x1, y1), (x2, y2)), layer in zip(
            ends.tolist(), edges_dropped_at(explanation).tolist(), strict=True
        )
    )
    names = [f"node {i}" for i in range(explanation.num_nodes)]
    discs = _discs(explanation, place, radius, names)
    return f'<g class="edges">{lines}</g><g class="nodes">{discs}</g>'


def _fit(place: Array) -> Array:
    """Places within the picture, one scale for both directions."""
    if not len(place):
        return place
    size = np.array([WIDTH, HEIGHT])
    low, high = place.min(0), place.max(0)
    scale = ((size - 2 * MARGIN) / np.maximum(high - low, 1e-9)).min()
    return size / 2 + (place - (low + high) / 2) * min(scale, 48)


# -------------------------------------------------------------------- molecules


def _molecule(explanation: Explanation) -> str | None:
    """RDKit's drawing; none where this is not a molecule that RDKit knows."""
    molecule = drawable(explanation, addChiralHs=False)
    if molecule is None:
        return None
    drawer = drawer_of(WIDTH, HEIGHT, padding=0.07)
    options: Any = drawer.drawOptions()
    options.minFontSize, options.maxFontSize = 9, 16
    options.fixedBondLength = 34
    drawer.DrawMolecule(molecule)
    drawer.FinishDrawing()
    points = [drawer.GetDrawCoords(i) for i in range(molecule.GetNumAtoms())]
    place = np.array([(point.x, point.y) for point in points])
    names = [f"{atom.GetSymbol()} (atom {atom.GetIdx()})" for atom in molecule.GetAtoms()]
    discs = _discs(explanation, place, _radius(place, molecule), names)
    return f"<g>{discs}</g><g>{_shapes(drawer.GetDrawingText(), explanation)}</g>"


def _radius(place: Array, molecule: Any) -> float:
    """Half of a short bond: the discs of neighbours touch, and no more."""
    bonds = [(bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()) for bond in molecule.GetBonds()]
    if not bonds:
        return 12.0
    lengths = [float(np.linalg.norm(place[i] - place[j])) for i, j in bonds]
    return float(np.clip(0.42 * np.median(lengths), 3, 14))


def _shapes(text: str, explanation: Explanation) -> str:
    """RDKit's shapes, in the page's ink, each with the layer that drops one of its atoms."""
    gone, last = dropped_at(explanation), len(explanation.layers)
    bond = {
        tuple(pair): layer
        for pair, layer in zip(
            explanation.edges.tolist(), edges_dropped_at(explanation).tolist(), strict=True
        )
    }
    found = []
    for shape in re.findall(r"<(?:path|ellipse)\b[^>]*/>", text):
        atoms = sorted({int(number) for number in re.findall(r"atom-(\d+)", shape)})
        if not atoms:  # corners where two bonds meet, which round ends make superfluous
            continue
        layer = min(int(gone[atom]) for atom in atoms)
        if len(atoms) == 2:
            layer = min(layer, bond.get((atoms[0], atoms[1]), layer))
        found.append(_in_ink(shape, _drop(layer, last)))
    return "".join(found)


def _in_ink(shape: str, drop: str) -> str:
    """A shape of RDKit's with its geometry kept and its look shortened."""
    geometry = " ".join(re.findall(r"\b(?:d|cx|cy|rx|ry)='[^']*'", shape)).replace("\n", " ")
    width = re.search(r"stroke-width:([\d.]+)", shape)
    filled = re.search(r"fill:#|fill='#", shape)
    look = f' style="stroke-width:{width.group(1)}"' if width and width.group(1) != "2.0" else ""
    kind = shape[1 : shape.index(" ")]
    mark = "ink" if filled else "bond"
    return f'<{kind} class="{mark}" {geometry}{look}{drop}/>'
