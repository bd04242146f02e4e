"""Hop information written down as it is defined: loops, sets and SciPy."""

import numpy as np
from scipy.stats import gaussian_kde

from lookhops import Graphs


def neighbourhoods(graphs: Graphs, k: int, kind: str) -> list[set[int]]:
    """The nodes that each node sees: those from which k steps along the edges lead to it."""
    edges = list(zip(graphs.source.tolist(), graphs.target.tolist(), strict=True))
    seen = [{node} for node in range(graphs.num_nodes)]
    for _ in range(k):
        reached = [set(s) if kind == "ball" else set() for s in seen]
        for source, target in edges:
            reached[target] |= seen[source]
        seen = reached
    return seen


def density_at(values: np.ndarray) -> np.ndarray:
    """The kernel density of values at these values."""
    distinct, counts = np.unique(values, return_counts=True)
    factor = (0.75 * values.size) ** -0.2
    return gaussian_kde(distinct, factor, weights=counts)(values)


def kinfo(graphs: Graphs, max_k: int, kind: str) -> np.ndarray:
    """Entropies, shape (max_k, n, varying channels), node by node."""
    x = graphs.x.double().numpy()
    varying = [c for c in range(x.shape[1]) if x[:, c].min() < x[:, c].max()]
    density = np.stack([density_at(x[:, c]) for c in varying], axis=1)
    found = np.zeros((max_k, len(x), len(varying)))
    for k in range(1, max_k + 1):
        for node, seen in enumerate(neighbourhoods(graphs, k, kind)):
            if seen:
                local = density[sorted(seen)]
                local = local / local.sum(axis=0)
                found[k - 1, node] = -(local * np.log(local)).sum(axis=0)
    return found


def divergence(new: np.ndarray, old: np.ndarray) -> float:
    """KL of two samples of entropies; distinct values are told apart at 10 decimals."""
    points = np.linspace(min(new.min(), old.min()), max(new.max(), old.max()), 1000)
    p, q = (_density(values)(points) for values in (new, old))
    step = (points[-1] - points[0]) / 1000
    return float((p * np.log((p + 1e-15) / (q + 1e-15))).sum() * step)


def _density(values: np.ndarray) -> gaussian_kde:
    distinct, counts = np.unique(values.round(10), return_counts=True)
    return gaussian_kde(distinct, (0.75 * values.size) ** -0.2, weights=counts)
