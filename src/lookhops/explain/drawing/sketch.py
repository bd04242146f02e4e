"""A graph as shapes that know their nodes: a molecule by RDKit, any other graph by a layout."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import shortest_path

from lookhops.core.arrays import Array
from lookhops.graphs import Graphs

#: Up to this many nodes every pair pulls and pushes; beyond, every node and this many landmarks.
ALL_PAIRS, LANDMARKS = 400, 50


def layout(num_nodes: int, edges: Array, steps: int = 100) -> Array:
    r"""Places of the nodes, shape (n, 2), that keep drawn distances near graph distances.

    .. math::
        \min_p \sum_{i<j} d_{ij}^{-2} \bigl(\|p_i - p_j\| - d_{ij}\bigr)^2

    the springs of Kamada and Kawai, solved by some steps of majorisation from a start that
    classical scaling gives: nothing is random. Graphs with more than 400 nodes keep that start.
    """
    if num_nodes < 2:
        return np.zeros((num_nodes, 2))
    landmarks = np.arange(num_nodes)
    if num_nodes > ALL_PAIRS:
        landmarks = np.linspace(0, num_nodes - 1, LANDMARKS).astype(int)
    distance = _distances(num_nodes, edges, landmarks)
    place = _scale(distance)
    # Twins (leaves of one node) start at one point, where springs have no direction to push in.
    angle = np.arange(num_nodes) * 2.4
    place += 0.05 * np.stack((np.cos(angle), np.sin(angle)), 1)
    return _turn(_relax(place, distance, steps) if num_nodes <= ALL_PAIRS else place)


def _distances(num_nodes: int, edges: Array, landmarks: Array) -> Array:
    """Hops from each landmark to every node; parts without a path stand a little apart."""
    ones = np.ones(len(edges))
    links = coo_matrix((ones, (edges[:, 0], edges[:, 1])), shape=(num_nodes, num_nodes)).tocsr()
    distance = shortest_path(links, directed=False, unweighted=True, indices=landmarks)
    finite = np.isfinite(distance)
    return np.where(finite, distance, distance[finite].max() / 2 + 1.5)


def _scale(distance: Array) -> Array:
    """Classical scaling from the landmarks' distances."""
    squared = distance.T**2
    centred = squared - squared.mean(0) - squared.mean(1, keepdims=True) + squared.mean()
    left, size, _ = np.linalg.svd(-centred / 2, full_matrices=False)
    place = np.zeros((len(left), 2))
    width = min(2, left.shape[1])
    place[:, :width] = left[:, :width] * np.sqrt(size[:width])
    return _turn(place)


def _turn(place: Array) -> Array:
    """The same places, turned so that they are wider than high."""
    centred = place - place.mean(0)
    turned = centred @ np.linalg.svd(centred, full_matrices=False)[2].T
    # The sign of a singular vector is anybody's choice: let the largest entry be positive.
    largest = np.abs(turned).argmax(0)
    return turned * np.where(turned[largest, [0, 1]] < 0, -1.0, 1.0)


def _relax(place: Array, distance: Array, steps: int) -> Array:
    """Majorisation: each step moves every node to where its springs want it on average."""
    wanted = (distance + distance.T) / 2
    np.fill_diagonal(wanted, 1)
    weight = wanted**-2.0
    np.fill_diagonal(weight, 0)
    laplacian = np.diag(weight.sum(1)) - weight
    inverse = np.linalg.pinv(laplacian)
    for _ in range(steps):
        apart = np.linalg.norm(place[:, None] - place[None], axis=-1)
        pull = weight * wanted / np.maximum(apart, 1e-9)
        np.fill_diagonal(pull, 0)
        place = inverse @ ((np.diag(pull.sum(1)) - pull) @ place)
    return place


def fit(place: Array, width: float, height: float) -> Array:
    """Places within a picture, shape (n, 2): one scale for both directions, edges not too long."""
    if not len(place):
        return place
    size, margin = np.array([width, height]), 0.05 * width
    low, high = place.min(0), place.max(0)
    scale = ((size - 2 * margin) / np.maximum(high - low, 1e-9)).min()
    return size / 2 + (place - (low + high) / 2) * min(scale, 0.15 * width)


@dataclass(frozen=True)
class Shape:
    """A line or an outline."""

    kind: str  # edge; of a molecule bond (a stroke) or ink (letters)
    element: str  # of SVG: line, path or ellipse
    geometry: str  # the attributes that say where it is: x1="0" ...
    nodes: tuple[int, ...]  # that it belongs to, in order: one or two


@dataclass(frozen=True, eq=False)
class Sketch:
    """Where the parts of a graph are drawn."""

    place: Array  # of each node, (n, 2)
    radius: float  # of the disc of a node
    names: Sequence[str]  # of the nodes
    shapes: Sequence[Shape]  # all but the discs
    molecule: bool = False  # whether it is drawn as one: the discs lie behind the shapes then


@dataclass(frozen=True, eq=False)
class DrawnGraph:
    """A graph to be drawn."""

    edges: Array  # each once, the smaller node first, (e, 2)
    smiles: str | None = field(default=None, kw_only=True)
    ids: Sequence[str] | None = field(default=None, kw_only=True)  # of the nodes, by the source

    def edges_among(self, nodes: Array, num_nodes: int) -> tuple[Array, Array]:
        """The edges between some nodes, numbered in their order, and which edges they are."""
        number = np.full(num_nodes, -1)
        number[nodes] = np.arange(len(nodes))
        edges = number[self.edges].reshape(-1, 2)
        inside = np.flatnonzero((edges >= 0).all(1))
        return edges[inside], inside

    def ids_of(self, nodes: Array) -> list[str] | None:
        """What the source calls some nodes, where it does."""
        return None if self.ids is None else [self.ids[node] for node in nodes.tolist()]


def paired(source: Array, target: Array, *values: Array) -> tuple[Array, ...]:
    """Directed edges as pairs, the smaller node first, shape (p, 2), and sums of their values."""
    ends = np.stack((np.minimum(source, target), np.maximum(source, target)), 1)
    pairs, number = np.unique(ends, axis=0, return_inverse=True)
    sums = (np.bincount(number.ravel(), value, minlength=len(pairs)) for value in values)
    return (pairs.reshape(-1, 2), *sums)


class GraphPart:
    """One graph of a set on the CPU, its nodes numbered from 0."""

    def __init__(self, graphs: Graphs, number: int) -> None:
        self.graphs = graphs
        #: Its nodes and its edges in the set.
        self.nodes = slice(*graphs.node_ptr[number : number + 2].tolist())
        self.edges = slice(*graphs.edge_ptr[number : number + 2].tolist())
        self.size = int(self.nodes.stop - self.nodes.start)
        smiles, ids = graphs.columns.get("smiles"), graphs.node_ids
        self.smiles = None if smiles is None else str(smiles[number])
        #: What the source calls its nodes, where it does.
        self.ids = None if ids is None else ids.cut(self.nodes.start, self.nodes.stop).tolist()

    @property
    def ends(self) -> tuple[Array, Array]:
        """Source and target of each of its edges, shapes (e)."""
        source, target = self.graphs.source[self.edges], self.graphs.target[self.edges]
        return source.numpy() - self.nodes.start, target.numpy() - self.nodes.start

    @property
    def names(self) -> list[str]:
        """What its nodes are called: by their first label, and their id or number."""
        word = "node" if self.smiles is None else "atom"
        plain = [f"{word} {one}" for one in self.ids or range(self.size)]
        labels = self.graphs.nodes.labels
        if labels is None:
            return plain
        values, codes = self.graphs.nodes.label_values[0], labels[self.nodes, 0].tolist()
        return [f"{values[code]} ({name})" for code, name in zip(codes, plain, strict=True)]


def sketch(num_nodes: int, edges: Array, smiles: str | None, width: int, height: int) -> Sketch:
    """Sketch a graph: as a molecule where it is one and RDKit is there, else by a force layout."""
    molecule = None if smiles is None else read_molecule(smiles, num_nodes)
    if molecule is not None:
        return _sketch_molecule(molecule, width, height)
    place = fit(layout(num_nodes, edges), width, height)
    lines = [
        Shape("edge", "line", f'x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"', (i, j))
        for (i, j), ((x1, y1), (x2, y2)) in zip(edges.tolist(), place[edges].tolist(), strict=True)
    ]
    apart = np.sqrt(width * height / max(num_nodes, 1))  # of many nodes, as those around a hub
    most = min(width * 9 / 320, 0.35 * apart)
    radius = float(np.clip(0.36 * _length(place, edges, width), 1.5, most))
    names = [f"node {i}" for i in range(num_nodes)]
    return Sketch(place, radius, names, lines)


def _length(place: Array, edges: Array, otherwise: float) -> float:
    """The median length of an edge."""
    lengths = np.linalg.norm(np.diff(place[edges], axis=1), axis=-1)
    return float(np.median(lengths)) if len(edges) else otherwise


def read_molecule(smiles: str, num_atoms: int) -> Any | None:
    """The molecule by RDKit; none where it has other atoms, or RDKit is not installed."""
    try:
        from rdkit import Chem, rdBase
    except ImportError:
        return None
    with rdBase.BlockLogs():
        molecule = Chem.MolFromSmiles(smiles)
        return molecule if molecule is not None and molecule.GetNumAtoms() == num_atoms else None


def _sketch_molecule(molecule: Any, width: int, height: int) -> Sketch:
    from rdkit import rdBase
    from rdkit.Chem.Draw import rdMolDraw2D

    with rdBase.BlockLogs():
        molecule = rdMolDraw2D.PrepareMolForDrawing(molecule, addChiralHs=False)
    drawer = rdMolDraw2D.MolDraw2DSVG(width, height)
    options: Any = drawer.drawOptions()
    options.clearBackground = False
    options.useBWAtomPalette()
    options.padding = 0.07
    options.minFontSize, options.maxFontSize = round(0.028 * width), width // 20
    options.fixedBondLength = width * 34 / 320
    drawer.DrawMolecule(molecule)
    drawer.FinishDrawing()
    points = [drawer.GetDrawCoords(i) for i in range(molecule.GetNumAtoms())]
    place = np.array([(point.x, point.y) for point in points])
    bonds = [(bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()) for bond in molecule.GetBonds()]
    # Less than half of a bond: the discs of neighbours do not overlap.
    length = _length(place, np.array(bonds, dtype=int).reshape(-1, 2), width / 11.2)
    radius = float(np.clip(0.42 * length, 3, width * 14 / 320))
    names = [f"{atom.GetSymbol()} (atom {atom.GetIdx()})" for atom in molecule.GetAtoms()]
    return Sketch(place, radius, names, _shapes(drawer.GetDrawingText()), molecule=True)


def _shapes(text: str) -> list[Shape]:
    """RDKit's shapes, which name their atoms, without their colours."""
    found = []
    for shape in re.findall(r"<(?:path|ellipse)\b[^>]*/>", text):
        atoms = sorted({int(number) for number in re.findall(r"atom-(\d+)", shape)})
        if not atoms:  # corners where two bonds meet, which round ends make superfluous
            continue
        parts = re.findall(r"\b(?:d|cx|cy|rx|ry)='[^']*'", shape)
        width = re.search(r"stroke-width:([\d.]+)", shape)
        if width and width.group(1) != "2.0":
            parts.append(f'style="stroke-width:{width.group(1)}"')
        kind = "ink" if re.search(r"fill:#|fill='#", shape) else "bond"
        element, geometry = shape[1 : shape.index(" ")], " ".join(parts).replace("\n", " ")
        found.append(Shape(kind, element, geometry, tuple(atoms)))
    return found
