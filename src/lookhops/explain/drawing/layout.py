"""Where to draw the nodes of a graph: a force layout, the same every time."""

from __future__ import annotations

import numpy as np
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import shortest_path

from lookhops.core.arrays import Array

#: Up to this many nodes every pair pulls and pushes; beyond, every node and this many landmarks.
ALL_PAIRS, LANDMARKS = 400, 50


def layout(num_nodes: int, edges: Array, steps: int = 100) -> Array:
    r"""Places of the nodes, shape (n, 2), that keep drawn distances near graph distances.

    .. math::
        \min_p \sum_{i<j} d_{ij}^{-2} \bigl(\|p_i - p_j\| - d_{ij}\bigr)^2

    the springs of Kamada and Kawai, solved by majorisation from a start that classical scaling
    gives: nothing is random. Graphs with more than 400 nodes keep that start.

    Args:
        num_nodes: How many nodes there are.
        edges: Pairs of nodes, shape (e, 2).
        steps: Rounds of majorisation.
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
