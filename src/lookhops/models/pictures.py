"""Pictures of what a model looked at: an SVG with one panel for each pooling layer.

Nodes are shaded by their score, and what a layer dropped is faded. Molecules are drawn by RDKit,
other graphs by a force layout.
"""

from __future__ import annotations

import re
from typing import Any
from xml.sax.saxutils import escape

import numpy as np
from numpy.typing import NDArray

from lookhops.models.explain import Explanation, LayerView
from lookhops.models.layout import layout
from lookhops.palette import FAINT, INK, SCORE_HIGH, SCORE_LOW, channels

Array = NDArray[Any]

#: Size of a panel, and of what is written above all of them and under each; panels in a row.
WIDTH, HEIGHT, TITLE, CAPTION, ROW = 400, 260, 46, 52, 2
#: From the lowest score to the highest.
LOW, HIGH = np.array(channels(SCORE_LOW)), np.array(channels(SCORE_HIGH))
FADED = 0.18


def picture(explanation: Explanation) -> str:
    """The SVG of one graph."""
    panels = _molecule_panels(explanation) or _graph_panels(explanation)
    rows = -(-len(panels) // ROW)
    width, height = WIDTH * min(len(panels), ROW), TITLE + rows * (HEIGHT + CAPTION)
    likely = explanation.probabilities[explanation.predicted]
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" font-family="Helvetica, Arial, sans-serif">',
        f"<title>{escape(explanation.id)}</title>",
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
        _text(16, 28, f"{explanation.id}: {explanation.predicted} ({likely:.0%})", 17, bold=True),
    ]
    for number, (panel, view) in enumerate(zip(panels, explanation.layers, strict=True)):
        left, top = WIDTH * (number % ROW), TITLE + (number // ROW) * (HEIGHT + CAPTION)
        parts.append(
            f'<svg x="{left}" y="{top}" width="{WIDTH}" height="{HEIGHT}" '
            f'viewBox="0 0 {WIDTH} {HEIGHT}">{panel}</svg>'
        )
        parts += _caption(left, top + HEIGHT, number + 1, view)
    return "\n".join([*parts, "</svg>", ""])


def _caption(left: float, top: float, number: int, view: LayerView) -> list[str]:
    """What a panel shows: the layer, how many nodes it kept, and the scores' range."""
    kept = f"layer {number}: {int(view.kept.sum())} of {len(view.kept)} kept"
    lines = [_text(left + 16, top + 14, kept, 13)]
    if len(view.score):
        low, high = (f"{value:.3g}" for value in (view.score.min(), view.score.max()))
        steps = [
            f'<rect x="{left + 60 + 12 * i}" y="{top + 24}" width="12" height="8" '
            f'fill="{_hex(_colour(i / 7))}"/>'
            for i in range(8)
        ]
        lines += [
            _text(left + 54, top + 32, low, 11, anchor="end"),
            *steps,
            _text(left + 162, top + 32, high, 11),
        ]
    return lines


def _text(
    x: float, y: float, text: str, size: int, anchor: str = "start", bold: bool = False
) -> str:
    weight = ' font-weight="bold"' if bold else ""
    return (
        f'<text x="{x:g}" y="{y:g}" font-size="{size}" fill="{INK}" '
        f'text-anchor="{anchor}"{weight}>{escape(text)}</text>'
    )


def _colour(share: float) -> tuple[float, float, float]:
    red, green, blue = LOW + (HIGH - LOW) * share
    return float(red), float(green), float(blue)


def _hex(colour: tuple[float, float, float]) -> str:
    return "#" + "".join(f"{round(255 * value):02x}" for value in colour)


def _shades(view: LayerView) -> dict[int, tuple[float, float, float]]:
    """Colour of each node that reached the layer, between its lowest score and its highest."""
    if not len(view.score):
        return {}
    low, span = view.score.min(), np.ptp(view.score)
    share = (view.score - low) / span if span > 0 else np.ones(len(view.score))
    return {int(node): _colour(float(s)) for node, s in zip(view.nodes, share, strict=True)}


# -------------------------------------------------------------------- graphs


def _graph_panels(explanation: Explanation) -> list[str]:
    place = _fit(layout(explanation.num_nodes, explanation.edges))
    ends = place[explanation.edges]
    length = np.median(np.linalg.norm(ends[:, 0] - ends[:, 1], axis=1)) if len(ends) else WIDTH
    radius = float(np.clip(0.36 * length, 1.5, 11))
    return [_graph_panel(explanation, view, place, radius) for view in explanation.layers]


def _fit(place: Array) -> Array:
    """Places within the panel, one scale for both directions."""
    if not len(place):
        return place
    size, margin = np.array([WIDTH, HEIGHT]), 28
    low, high = place.min(0), place.max(0)
    scale = ((size - 2 * margin) / np.maximum(high - low, 1e-9)).min()
    return size / 2 + (place - (low + high) / 2) * min(scale, 60)


def _graph_panel(explanation: Explanation, view: LayerView, place: Array, radius: float) -> str:
    shades, kept = _shades(view), set(view.nodes[view.kept].tolist())
    dropped = {tuple(pair) for pair in view.dropped_edges.tolist()}
    parts = []
    for i, j in explanation.edges.tolist():
        stays = i in kept and j in kept and (i, j) not in dropped
        (x1, y1), (x2, y2) = place[i], place[j]
        look = f'stroke="{INK}"' if stays else f'stroke="{FAINT}" stroke-dasharray="3 3"'
        parts.append(
            f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" {look} '
            f'stroke-width="{min(1.5, radius / 4):g}"/>'
        )
    for node, (x, y) in enumerate(place):
        look = f'stroke="{INK}"' if node in kept else f'stroke="{FAINT}" opacity="0.6"'
        fill = _hex(shades[node]) if node in shades else "#ffffff"
        parts.append(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}" fill="{fill}" {look} '
            f'stroke-width="{min(1.2, radius / 4):g}"><title>node {node}</title></circle>'
        )
    return "\n".join(parts)


# -------------------------------------------------------------------- molecules


def drawable(explanation: Explanation, **options: Any) -> Any | None:
    """The molecule for RDKit to draw; none where this is not one, or RDKit is not there.

    Args:
        explanation: The graph.
        options: Of RDKit's ``PrepareMolForDrawing``.
    """
    if explanation.smiles is None:
        return None
    try:
        from rdkit import Chem, rdBase
        from rdkit.Chem.Draw import rdMolDraw2D
    except ImportError:
        return None
    with rdBase.BlockLogs():
        molecule = Chem.MolFromSmiles(explanation.smiles)
        if molecule is None or molecule.GetNumAtoms() != explanation.num_nodes:
            return None
        return rdMolDraw2D.PrepareMolForDrawing(molecule, **options)


def drawer_of(width: int, height: int, padding: float) -> Any:
    """RDKit's drawer of SVG: black on nothing."""
    from rdkit.Chem.Draw import rdMolDraw2D

    drawer = rdMolDraw2D.MolDraw2DSVG(width, height)
    options: Any = drawer.drawOptions()
    options.clearBackground = False
    options.useBWAtomPalette()
    options.padding = padding
    return drawer


def _molecule_panels(explanation: Explanation) -> list[str] | None:
    """RDKit's drawing for each layer; none where this is not a molecule that RDKit knows."""
    molecule = drawable(explanation)
    if molecule is None:
        return None
    return [_molecule_panel(molecule, view) for view in explanation.layers]


def _molecule_panel(molecule: Any, view: LayerView) -> str:
    drawer = drawer_of(WIDTH, HEIGHT, padding=0.08)
    shades = _shades(view)
    drawer.DrawMolecule(
        molecule,
        highlightAtoms=list(shades),
        highlightAtomColors=shades,
        highlightBonds=[],
        highlightAtomRadii=dict.fromkeys(shades, 0.42),
    )
    drawer.FinishDrawing()
    drawing = drawer.GetDrawingText()
    body = drawing[drawing.index(">", drawing.index("<svg")) + 1 : drawing.rindex("</svg>")]
    kept = set(view.nodes[view.kept].tolist())
    return _fade(body, set(range(molecule.GetNumAtoms())) - kept)


def _fade(body: str, dropped: set[int]) -> str:
    """Fade what RDKit drew for dropped atoms and their bonds: its shapes name their atoms."""

    def mark(match: re.Match[str]) -> str:
        shape = match.group()
        atoms = {int(number) for number in re.findall(r"atom-(\d+)", shape)}
        if not atoms:  # corners where two bonds meet, which round ends make superfluous
            return ""
        return f"{shape[:-2]} opacity='{FADED}'/>" if atoms & dropped else shape

    rounded = body.replace("stroke-linecap:butt", "stroke-linecap:round")
    return re.sub(r"<(?:path|ellipse)\b[^>]*/>", mark, rounded)
