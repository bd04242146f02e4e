"""One graph's shares: in numbers, in a sentence, as JSON, as a picture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lookhops.core.arrays import Array
from lookhops.core.words import joined
from lookhops.explain.drawing.shares import (
    SharedGraph,
    digits_for,
    draw_shares,
    with_edges,
    written,
)
from lookhops.graphs import Graphs

#: How many parts the sentence names.
NAMED = 3


@dataclass(frozen=True, eq=False)
class Attribution(SharedGraph):
    """What one graph's parts have of the answer; nodes are numbered from 0.

    Args:
        edges, smiles, ids, names, node, edge, features: The graph and its shares; an edge is both
            directions.
        id: What the graph is called.
        answer: What the model answers, in words.
        record: The same as JSON can hold it.
        asked: The class or the number that is explained.
        in_log_odds: Whether shares are in log-odds of that class, and not in the number's units.
        value: The answer in these units: ``baseline``, ``whole`` and all shares together.
        baseline: The answer to an average graph.
        whole: What neither a node nor an edge nor a feature of the graph carries.
        node_spread: Standard deviation of the nodes' shares over the networks, shape (n).
        edge_spread: The same of the edges', at most, shape (e).
        networks: How many networks answered.
        limit: The share with the full colour in a picture; by default the largest of this graph.
    """

    id: str
    answer: str
    record: dict[str, Any]
    asked: str
    in_log_odds: bool
    value: float
    baseline: float
    whole: float
    node_spread: Array
    edge_spread: Array
    networks: int = 1
    limit: float | None = None

    @property
    def unit(self) -> str:
        """What shares are counted in."""
        return f"log-odds of '{self.asked}'" if self.in_log_odds else self.asked

    @property
    def sentence(self) -> str:
        """The answer, the three parts that matter most, and what it is made of."""
        shares = np.concatenate((self.node, self.edge, [*self.features.values()]))
        order = np.argsort(-np.abs(shares), kind="stable")[:NAMED]
        digits = digits_for(self.largest)
        parts = [
            f"{self._called(number)} {written(shares[number], digits)}" for number in order.tolist()
        ]
        rest = float(shares.sum() - shares[order].sum())
        said = f"{self.unit[0].upper()}{self.unit[1:]} {written(self.value)}."
        largest = "part is" if len(parts) == 1 else "parts are"
        most = f" The largest {largest} {joined(parts)}; all others" if parts else " All parts"
        return (
            f"{said}{most} together {written(rest, digits)}, the graph as a whole "
            f"{written(self.whole)}, an average graph {written(self.baseline)}."
        )

    def _called(self, part: int) -> str:
        """What a part is called: nodes first, then edges, then features of the whole graph."""
        if part < len(self.node):
            return self.names[part]
        if part >= len(self.node) + len(self.edge):
            return [*self.features][part - len(self.node) - len(self.edge)]
        i, j = self.edges[part - len(self.node)].tolist()
        if self.ids is not None:
            return f"the edge between {self.ids[i]} and {self.ids[j]}"
        if self.smiles is None:
            return f"the edge {i}-{j}"
        ends = (f"{self.names[end].split()[0]}{end}" for end in (i, j))
        return f"the bond {'-'.join(ends)}"

    def as_json(self) -> dict[str, Any]:
        """The same as JSON can hold it."""
        several, ids, pairs = self.networks > 1, self.ids, self.edges.tolist()
        features = {name: _rounded(share) for name, share in self.features.items()}
        return {
            "id": self.id,
            **({} if self.smiles is None else {"smiles": self.smiles}),
            **self.record,
            "explained": self.asked,
            "unit": "log-odds" if self.in_log_odds else self.asked,
            "value": _rounded(self.value),
            "baseline": _rounded(self.baseline),
            "whole": _rounded(self.whole),
            **({"features": features} if features else {}),
            **({} if ids is None else {"node_ids": [*ids]}),
            "nodes": _list(self.node),
            "nodes_with_edges": _list(with_edges(self.node, self.edges, self.edge)),
            **({"node_spread": _list(self.node_spread)} if several else {}),
            "edges": pairs,
            **({} if ids is None else {"edge_node_ids": [[ids[i], ids[j]] for i, j in pairs]}),
            "edge_shares": _list(self.edge),
            **({"edge_spread": _list(self.edge_spread)} if several else {}),
            "sentence": self.sentence,
        }

    def picture(self) -> str:
        """An SVG of the graph, its parts coloured by their shares, with the sentence below."""
        limit = self.largest if self.limit is None else self.limit
        return draw_shares(self, limit, self.unit, f"{self.id}: {self.answer}", [self.sentence])


def common_limit(graphs: Sequence[Attribution]) -> float:
    """A share for the full colour in pictures side by side: few graphs have a larger one."""
    largest = [one.largest for one in graphs]
    return float(np.quantile(largest, 0.9)) if largest else 1.0


def paired(source: Array, target: Array, *values: Array) -> tuple[Array, ...]:
    """Directed edges as pairs, the smaller node first, shape (p, 2), and sums of their values."""
    ends = np.stack((np.minimum(source, target), np.maximum(source, target)), 1)
    pairs, number = np.unique(ends, axis=0, return_inverse=True)
    sums = (np.bincount(number.ravel(), value, minlength=len(pairs)) for value in values)
    return (pairs.reshape(-1, 2), *sums)


class GraphPart:
    """One graph of a set on the CPU, its nodes numbered from 0.

    Args:
        graphs: The set.
        number: Which of its graphs.
    """

    def __init__(self, graphs: Graphs, number: int) -> None:
        self.graphs, self.number = graphs, number
        #: Its nodes and its edges in the set.
        self.nodes = slice(*graphs.node_ptr[number : number + 2].tolist())
        self.edges = slice(*graphs.edge_ptr[number : number + 2].tolist())
        self.size = int(self.nodes.stop - self.nodes.start)

    @property
    def ends(self) -> tuple[Array, Array]:
        """Source and target of each of its edges, shapes (e)."""
        source, target = self.graphs.source[self.edges], self.graphs.target[self.edges]
        return source.numpy() - self.nodes.start, target.numpy() - self.nodes.start

    @property
    def smiles(self) -> str | None:
        """The molecule, if it is one."""
        smiles = self.graphs.columns.get("smiles")
        return None if smiles is None else str(smiles[self.number])

    @property
    def ids(self) -> list[str] | None:
        """What the source calls its nodes, where it does."""
        ids = self.graphs.node_ids
        return None if ids is None else ids.cut(self.nodes.start, self.nodes.stop).tolist()

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


def _rounded(value: float) -> float:
    return float(f"{value:.6g}")


def _list(values: Array) -> list[float]:
    return [_rounded(value) for value in values.tolist()]
