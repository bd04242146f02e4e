"""A part of a graph as SVG: of a molecule as chemists draw it, cut out of the whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lookhops.core.arrays import Array
from lookhops.core.palette import PAGE
from lookhops.explain.drawing.sketch import DrawnGraph, sketch
from lookhops.explain.drawing.svg import fill_in

#: Width and height of the whole that a molecule's part is cut out of, and of any other picture.
WHOLE, SIZE = (480, 320), (200, 140)


@dataclass(frozen=True, eq=False)
class Fragment:
    """A part of a graph.

    Args:
        names: What each of its nodes is called.
        edges: The edges between them, each once, shape (e, 2).
        nodes: Their numbers in the whole graph, ascending.
        centre: Which of them is in the middle.
        smiles: The whole molecule, if it is one.
        whole_edges: The edges of the whole graph, shape (f, 2).
        whole_size: How many nodes it has.
    """

    names: Sequence[str]
    edges: Array
    nodes: Array
    centre: int
    smiles: str | None
    whole_edges: Array
    whole_size: int

    @classmethod
    def of(
        cls, names: Sequence[str], edges: Array, nodes: Array, centre: int, smiles: str | None
    ) -> Fragment:
        """Some nodes of a graph, given its names and edges and the number of the middle one."""
        own, _ = DrawnGraph(edges).edges_among(nodes, len(names))
        kept, middle = [names[node] for node in nodes.tolist()], nodes.tolist().index(centre)
        return cls(kept, own, nodes, middle, smiles, edges, len(names))


def fragment_smiles(fragment: Fragment) -> str | None:
    """The part of a molecule as SMILES; none of other graphs, and without RDKit."""
    if fragment.smiles is None:
        return None
    try:
        from rdkit import Chem, rdBase
    except ImportError:
        return None
    with rdBase.BlockLogs():
        molecule = Chem.MolFromSmiles(fragment.smiles)
        if molecule is None or molecule.GetNumAtoms() != fragment.whole_size:
            return None
        return str(Chem.MolFragmentToSmiles(molecule, fragment.nodes.tolist()))


def draw_fragment(fragment: Fragment, words: str, styled: bool = True) -> str:
    """An SVG of the part, its middle marked.

    Args:
        fragment: The part.
        words: The picture in words, for who does not see it.
        styled: Whether it brings its own colours; a page that shows it may have them.
    """
    whole = sketch(fragment.whole_size, fragment.whole_edges, fragment.smiles, *WHOLE)
    inside = set(fragment.nodes.tolist())
    if whole.molecule:
        shapes = [shape for shape in whole.shapes if inside.issuperset(shape.nodes)]
        drawn, place = whole, whole.place[fragment.nodes]
    else:
        drawn = sketch(len(fragment.nodes), fragment.edges, None, *SIZE)
        shapes, place = list(drawn.shapes), drawn.place
    margin = 2.2 * drawn.radius
    low, high = place.min(0) - margin, place.max(0) + margin
    box = np.maximum(high - low, (6 * drawn.radius, 4 * drawn.radius))
    low = (low + high - box) / 2
    return fill_in(
        "fragment.svg",
        drawn,
        box=" ".join(f"{value:.1f}" for value in (*low, *box)),
        height=round(min(140.0, 200 * box[1] / box[0])),
        words=words,
        styled=styled,
        page=PAGE,
        molecule=drawn.molecule,
        shapes=shapes,
        nodes=[
            {"x": f"{x:.1f}", "y": f"{y:.1f}", "name": name, "centre": i == fragment.centre}
            for i, ((x, y), name) in enumerate(zip(place.tolist(), fragment.names, strict=True))
        ],
    )
