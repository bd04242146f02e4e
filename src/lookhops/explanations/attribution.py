"""One graph's shares: in numbers, in a sentence, as JSON."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Attribution:
    """What one graph's parts have of the answer; nodes are numbered from 0.

    Args:
        id: What the graph is called.
        answer: What the model answers, in words.
        asked: The class or the number that is explained.
        in_log_odds: Whether shares are in log-odds of that class, and not in the number's units.
        value: The answer in these units: ``baseline``, ``whole`` and all shares together.
        baseline: The answer to an average graph.
        whole: What neither a node nor an edge carries.
        node: Share of each node, shape (n).
        node_spread: Its standard deviation over the networks, shape (n).
        edges: Each edge once, the smaller node first, shape (e, 2).
        edge: Share of each edge, both directions together, shape (e).
        edge_spread: Its standard deviation over the networks, at most, shape (e).
        networks: How many networks answered.
        smiles: The molecule, if it is one.
    """

    id: str
    answer: str
    asked: str
    in_log_odds: bool
    value: float
    baseline: float
    whole: float
    node: Array
    node_spread: Array
    edges: Array
    edge: Array
    edge_spread: Array
    networks: int = 1
    smiles: str | None = None

    @property
    def unit(self) -> str:
        """What shares are counted in."""
        return f"log-odds of {self.asked}" if self.in_log_odds else self.asked


def paired(source: Array, target: Array, *values: Array) -> tuple[Array, ...]:
    """Directed edges as pairs, the smaller node first, shape (p, 2), and the sums of their values.

    Args:
        source, target: Ends of each directed edge, shape (e).
        values: Of each of them, shape (e).
    """
    ends = np.stack((np.minimum(source, target), np.maximum(source, target)), 1)
    pairs, place = np.unique(ends, axis=0, return_inverse=True)
    sums = (np.bincount(place.ravel(), value, minlength=len(pairs)) for value in values)
    return (pairs.reshape(-1, 2), *sums)
