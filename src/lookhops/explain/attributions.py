"""Each node's and edge's share of a model's answer, in the units of the answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lookhops.core.arrays import Array
from lookhops.core.errors import LookHopsError
from lookhops.core.words import joined
from lookhops.explain.drawing.shares import (
    SharedGraph,
    digits_for,
    draw_shares,
    with_edges,
    written,
)
from lookhops.explain.drawing.sketch import GraphPart, paired
from lookhops.explain.networks import explain_parts
from lookhops.explain.question import PartShares, Question, Together, find_head
from lookhops.explain.spreading import Spreading
from lookhops.graphs import Graphs
from lookhops.models.answers import Predictions
from lookhops.models.predictor import Predictor

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
        value, baseline, whole, networks: As of :class:`Attributions`.
        node_spread, edge_spread: Standard deviations over the networks; of an edge at most that.
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
        parts = [f"{self._called(part)} {written(shares[part], digits)}" for part in order.tolist()]
        others = float(shares.sum() - shares[order].sum())
        said = f"{self.unit[0].upper()}{self.unit[1:]} {written(self.value)}."
        largest = "part is" if len(parts) == 1 else "parts are"
        most = f" The largest {largest} {joined(parts)}; all others" if parts else " All parts"
        return (
            f"{said}{most} together {written(others, digits)}, the graph as a whole "
            f"{written(self.whole)}, an average graph {written(self.baseline)}."
        )

    def _called(self, part: int) -> str:
        """What a part is called: nodes first, then edges, then features of the whole graph."""
        named = [*self.names, *(None for _ in self.edge), *self.features]
        if (name := named[part]) is not None:
            return name
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
        found: dict[str, Any] = {
            "id": self.id,
            "smiles": self.smiles,
            **self.record,
            "explained": self.asked,
            "unit": "log-odds" if self.in_log_odds else self.asked,
            "value": _rounded(self.value),
            "baseline": _rounded(self.baseline),
            "whole": _rounded(self.whole),
            "features": {name: _rounded(share) for name, share in self.features.items()} or None,
            "node_ids": ids and [*ids],
            "nodes": _list(self.node),
            "nodes_with_edges": _list(with_edges(self.node, self.edges, self.edge)),
            "node_spread": _list(self.node_spread) if several else None,
            "edges": pairs,
            "edge_node_ids": ids and [[ids[i], ids[j]] for i, j in pairs],
            "edge_shares": _list(self.edge),
            "edge_spread": _list(self.edge_spread) if several else None,
            "sentence": self.sentence,
        }
        return {name: value for name, value in found.items() if value is not None}

    def picture(self) -> str:
        """An SVG of the graph, its parts coloured by their shares, with the sentence below."""
        limit = self.largest if self.limit is None else self.limit
        return draw_shares(self, limit, self.unit, f"{self.id}: {self.answer}", [self.sentence])


def common_limit(graphs: Sequence[Attribution]) -> float:
    """A share for the full colour in pictures side by side: few graphs have a larger one."""
    largest = [one.largest for one in graphs]
    return float(np.quantile(largest, 0.9)) if largest else 1.0


def _rounded(value: float) -> float:
    return float(f"{value:.6g}")


def _list(values: Array) -> list[float]:
    return [_rounded(value) for value in values.tolist()]


@dataclass(frozen=True, eq=False)
class Attributions:
    r"""Shares of the answers to :math:`g` graphs with :math:`n` nodes and :math:`e` edges in all.

    For every graph

    .. math::
        \text{value} = \text{baseline} + \sum_i \text{node}_i + \sum_{ij} \text{edge}_{ij}
        + \sum_f \text{feature}_f + \text{whole}.

    Args:
        graphs: The graphs as the model read them.
        answers: What the model answers.
        target: Number of the target that is explained.
        value: The answer, shape (g): the log-odds of the class that is answered against all
            others, or the number.
        baseline: The answer to an average graph of as many nodes without edges, shape (g).
        node: Shares of the nodes, shape (n).
        edge: Shares of the edges in the order of ``graphs``, each direction its own, shape (e).
        whole: What neither a node nor an edge carries, shape (g): the graph's size, and kinds of
            nodes and edges of which it has fewer than usual.
        features: Shares of the features of whole graphs, shape (g, f).
        node_spread: Standard deviation over the networks of each node's share, shape (n).
        edge_spread: The same of each edge's, shape (e).
        networks: How many networks answered.
        residual: What shares lacked to add up, shape (g), for want of points of the integrals over
            totals and by rounding: it was spread over the shares in proportion to their size.
        feature_names: The features of whole graphs.
    """

    graphs: Graphs
    answers: Predictions
    target: int
    value: Array
    baseline: Array
    node: Array
    edge: Array
    whole: Array
    features: Array
    node_spread: Array
    edge_spread: Array
    networks: int
    residual: Array
    feature_names: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.value)

    def __getitem__(self, number: int) -> Attribution:
        """What is said of one graph, its two directions of an edge as one."""
        part, answered = GraphPart(self._graphs, number), self.answers.targets[self.target]
        shares = self.edge[part.edges], self.edge_spread[part.edges]
        edges, edge, spread = paired(*part.ends, *shares)
        return Attribution(
            id=self.answers.ids[number],
            answer=answered.said(number),
            record=self.answers.record(number),
            asked=answered.explained(number),
            in_log_odds=self.in_log_odds,
            value=float(self.value[number]),
            baseline=float(self.baseline[number]),
            whole=float(self.whole[number]),
            features=dict(zip(self.feature_names, self.features[number].tolist(), strict=True)),
            names=part.names,
            node=self.node[part.nodes],
            node_spread=self.node_spread[part.nodes],
            edges=edges,
            edge=edge,
            edge_spread=spread,
            networks=self.networks,
            smiles=part.smiles,
            ids=part.ids,
        )

    @property
    def in_log_odds(self) -> bool:
        """Whether the shares are in log-odds of a class, and not in the units of a number."""
        return self.answers.targets[self.target].chosen is not None

    @property
    def node_with_edges(self) -> Array:
        """Shares of the nodes, half of those of their edges with them, shape (n).

        The share of a node alone says what its features do. Where edges decide the answer, their
        ends have little of it: this view of nodes leaves nothing out, and adds up too.
        """
        return with_edges(self.node, *self._pairs)

    @property
    def node_weight(self) -> Array:
        """The same of sizes: how much nodes and their edges matter, whichever way they pull."""
        pairs, shares = self._pairs
        return with_edges(np.abs(self.node), pairs, np.abs(shares))

    @cached_property
    def _pairs(self) -> tuple[Array, ...]:
        return paired(self._graphs.source.numpy(), self._graphs.target.numpy(), self.edge)

    @cached_property
    def _graphs(self) -> Graphs:
        return self.graphs.to("cpu")


def attribute(
    predictor: Predictor,
    graphs: Graphs,
    target: str | None = None,
    seed: int | None = None,
    *,
    stacked: bool | None = None,
) -> Attributions:
    r"""Each node's and edge's share of the answer to each graph.

    What is shared out is what the model answers: the log-odds of the class that it answers against
    all others, by the calibrated probability, or the predicted number. Each network's answer is
    shared out by the three parts that add up to it:

    - **Exact neighbourhoods** (the fingerprint) are linear: a neighbourhood's weight goes in equal
      parts to the nodes in it, exactly (:func:`~.spreading.over_neighbourhoods`).
    - **The network's layers**, by measured differences and gradients (:class:`~.path.Path`).
    - **Totals**, by integrated gradients, each handed on to the nodes or edges that make it up
      (:func:`~lookhops.neighbourhoods.totals.spread_totals`).

    Shares of several networks are averaged as their probabilities are, and their standard deviation
    is given beside (:class:`~.question.Together`).

    Args:
        target: Which target to explain, of a model that answers several.
        seed: Share out the answer of this seed's networks alone; by default that of all.
        stacked: Whether networks are explained together, where their layers allow it; by default on
            a GPU. Numbers are the same but for rounding, which may decide between equal nodes.
    """
    learner = predictor.learner
    if not learner.explains:
        raise LookHopsError(
            f"{predictor.folder}: {learner.name} cannot be explained; train with "
            "--model gp, network or blend."
        )
    number, head = find_head(predictor.task, target)
    answers, prepared = predictor.predict(graphs), predictor.prepare(graphs)
    answered, classes = answers.targets[number], None
    if answered.chosen is not None:
        classes = torch.from_numpy(answered.chosen).long().to(predictor.device)
    seeds = predictor.answering if seed is None else (predictor.known_seed(seed),)
    fitted = {one: predictor.fitted[one] for one in seeds}
    model = Together.of(fitted, number, head, predictor.calibration)
    parts, spreading = model.leaves, Spreading(prepared.graphs, predictor.encoding)
    found = explain_parts(parts, number, prepared, spreading, Question(head, classes), stacked)
    weight, baseline, value = model(found.start, found.end, classes is not None)
    if seed is None:
        given = torch.from_numpy(answered.shared()).to(value)
        value = value.where(given.isnan(), given)
    share = torch.tensor([part.weight for part in parts]).to(found.node)
    shared = _weighed(prepared.graphs, found, weight, value - baseline, share)
    shared |= {"value": value, "baseline": baseline}
    return Attributions(
        prepared.graphs,
        answers,
        number,
        networks=len(parts),
        feature_names=tuple(spreading.names),
        **{name: tensor.cpu().numpy() for name, tensor in shared.items()},
    )


def _weighed(
    graphs: Graphs, found: PartShares, weight: Tensor, change: Tensor, share: Tensor
) -> dict[str, Tensor]:
    """The shares of all parts together, which add up to the ``change`` of each graph's number (g).

    Those of a part count ``weight`` (parts, g); it has a ``share`` (parts) in the answer.
    """
    graph = graphs.batch.long()
    edge_graph = graph[graphs.target.long()]
    node = (weight[:, graph] * found.node).sum(0)
    edge = (weight[:, edge_graph] * found.edge).sum(0)
    whole = (weight * found.whole).sum(0)
    features = (weight[..., None] * found.features).sum(0)
    residual = change - whole - features.sum(1)
    residual = residual.index_add(0, graph, -node).index_add(0, edge_graph, -edge)
    size = whole.abs() + features.abs().sum(1)
    size = size.index_add(0, graph, node.abs()).index_add(0, edge_graph, edge.abs())
    rate = residual / size.clamp(min=1e-12)
    return {
        "node": node + rate[graph] * node.abs(),
        "edge": edge + rate[edge_graph] * edge.abs(),
        "whole": whole + rate * whole.abs(),
        "features": features + rate[:, None] * features.abs(),
        "residual": residual,
        "node_spread": _spread(found.node, share),
        "edge_spread": _spread(found.edge, share),
    }


def _spread(shares: Tensor, weight: Tensor) -> Tensor:
    """Standard deviation over parts (parts, m) with these weights (parts)."""
    apart = shares - (weight[:, None] * shares).sum(0)
    return (weight[:, None] * apart.square()).sum(0).sqrt()
