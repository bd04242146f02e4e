"""Each node's and edge's share of a model's answer, in the units of the answer."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
import torch
from torch import Tensor

from lookhops.arrays import Array
from lookhops.drawing.shares import with_edges
from lookhops.encoding.whole import WholeGraphs
from lookhops.explanations.attribution import Attribution, paired
from lookhops.explanations.average import average_edge, average_node
from lookhops.explanations.path import Path, PathShares, halves
from lookhops.explanations.question import (
    Question,
    find_head,
    together,
    weights_of,
)
from lookhops.explanations.spreading import neighbourhood_shares, over_neighbourhoods
from lookhops.graphs import Graphs
from lookhops.models.answers import ClassAnswers, NumberAnswers, Predictions
from lookhops.models.predictor import Predictor
from lookhops.neighbourhoods.totals import spread_totals
from lookhops.nn import GraphNetwork
from lookhops.training.inference import side_by_side
from lookhops.training.inputs import MemberInputs

#: Probabilities beyond these log-odds are not told apart from 0 and 1.
MOST_LOG_ODDS = 20.0
#: Most graphs and nodes to look at at once, and how many times as many on a GPU.
BATCH_GRAPHS, BATCH_NODES, ON_GPU = 256, 20_000, 4


@dataclass(frozen=True, eq=False)
class Attributions:
    r"""Shares of the answers to :math:`g` graphs with :math:`n` nodes and :math:`e` edges in all.

    For every graph

    .. math::
        \text{value} = \text{baseline} + \sum_i \text{node}_i + \sum_{ij} \text{edge}_{ij}
        + \text{whole}.

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
        node_spread: Standard deviation over the networks of each node's share, shape (n).
        edge_spread: The same of each edge's, shape (e).
        networks: How many networks answered.
        residual: What shares lacked to add up, shape (g), for want of points of the integrals over
            totals and by rounding: it was spread over the shares in proportion to their size.
    """

    graphs: Graphs
    answers: Predictions
    target: int
    value: Array
    baseline: Array
    node: Array
    edge: Array
    whole: Array
    node_spread: Array
    edge_spread: Array
    networks: int
    residual: Array

    def __len__(self) -> int:
        return len(self.value)

    def __getitem__(self, number: int) -> Attribution:
        """What is said of one graph, its two directions of an edge as one."""
        graphs = self._graphs
        first, last = graphs.node_ptr[number : number + 2].tolist()
        own = slice(*graphs.edge_ptr[number : number + 2].tolist())
        ends = graphs.source[own].numpy() - first, graphs.target[own].numpy() - first
        edges, shares, spread = paired(*ends, self.edge[own], self.edge_spread[own])
        smiles = graphs.columns.get("smiles")
        return Attribution(
            id=self.answers.ids[number],
            answer=self.answers.targets[self.target].said(number),
            record=self.answers.record(number),
            asked=self.asked(number),
            in_log_odds=self.in_log_odds,
            value=float(self.value[number]),
            baseline=float(self.baseline[number]),
            whole=float(self.whole[number]),
            names=node_names(graphs, first, last, smiles is not None),
            node=self.node[first:last],
            node_spread=self.node_spread[first:last],
            edges=edges,
            edge=shares,
            edge_spread=spread,
            networks=self.networks,
            smiles=None if smiles is None else str(smiles[number]),
        )

    @property
    def in_log_odds(self) -> bool:
        """Whether the shares are in log-odds of a class, and not in the units of a number."""
        return isinstance(self.answers.targets[self.target], ClassAnswers)

    def asked(self, number: int) -> str:
        """The class or the number that is explained of a graph."""
        own = self.answers.targets[self.target]
        return own.classes[number] if isinstance(own, ClassAnswers) else own.name

    @property
    def node_with_edges(self) -> Array:
        """Shares of the nodes, half of those of their edges with them, shape (n).

        A node's own share says what its features do. Where edges tell the answer, their ends have
        little of it: this view of nodes alone leaves nothing out, and adds up too.
        """
        return with_edges(self.node, *self._pairs)

    @property
    def node_weight(self) -> Array:
        """The same of sizes: how much nodes and their edges matter, whichever way they pull."""
        pairs, shares = self._pairs
        return with_edges(np.abs(self.node), pairs, np.abs(shares))

    @cached_property
    def _pairs(self) -> tuple[Array, ...]:
        """Each edge once, shape (p, 2), and the shares of both its directions together."""
        return paired(self._graphs.source.numpy(), self._graphs.target.numpy(), self.edge)

    @cached_property
    def _graphs(self) -> Graphs:
        return self.graphs.to("cpu")


def node_names(graphs: Graphs, first: int, last: int, molecule: bool) -> list[str]:
    """What the nodes of a graph are called: by their first label, and their number."""
    word = "atom" if molecule else "node"
    plain = [f"{word} {number}" for number in range(last - first)]
    if graphs.labels is None:
        return plain
    values = graphs.label_values[0]
    codes = graphs.labels[first:last, 0].tolist()
    return [f"{values[code]} ({name})" for code, name in zip(codes, plain, strict=True)]


def attribute(
    predictor: Predictor, graphs: Graphs, target: str | None = None, seed: int | None = None
) -> Attributions:
    r"""Each node's and edge's share of the answer to each graph.

    What is shared out is what the model answers: the log-odds of the class that it answers against
    all others, by the calibrated probability, or the predicted number. Each network's answer is
    shared out by the three parts that add up to it:

    - **Exact neighbourhoods** (the fingerprint) are linear: a neighbourhood's weight goes in equal
      parts to the nodes in it, exactly (:func:`~.spreading.over_neighbourhoods`).
    - **The network's layers**, by measured differences, shared out by gradients
      (:class:`~.path.Path`).
    - **Totals**, by integrated gradients, each handed on to the nodes or edges that make it up
      (:func:`~lookhops.neighbourhoods.totals.spread_totals`).

    Of several networks, members and seeds, the shares are averaged as their probabilities are
    (:func:`~.question.weights_of`), and their standard deviation is given beside.

    Args:
        predictor: The model.
        graphs: The graphs.
        target: Which target to explain, of a model that answers several.
        seed: Share out the answer of this seed's networks alone; by default that of all.
    """
    number, head = find_head(predictor.checkpoint.task, target)
    answers = predictor.predict(graphs)
    whole = predictor.whole(graphs)
    classes, own = None, answers.targets[number]
    if isinstance(own, ClassAnswers):
        classes = torch.from_numpy(own.numbers).long().to(predictor.device)
    question = Question(predictor.checkpoint.task, head, classes)
    seeds = predictor.checkpoint.answering if seed is None else (predictor.known_seed(seed),)
    found = [
        _of_network(predictor, whole, own_seed, network, question)
        for own_seed in seeds
        for network in predictor.members[own_seed]
    ]
    values = None if seed is not None else _answered(own)
    return _joined(whole.graphs, answers, number, found, classes is not None, values)


@dataclass(frozen=True, eq=False)
class _Shares:
    """Shares of one network's answers to all graphs, float64."""

    node: Tensor
    edge: Tensor
    whole: Tensor
    start: Tensor
    end: Tensor


def _of_network(
    predictor: Predictor,
    whole: WholeGraphs,
    seed: int,
    network: GraphNetwork,
    question: Question,
) -> _Shares:
    """The shares of all graphs."""
    network.requires_grad_(False)  # gradients are wanted of inputs alone
    learnt, encoding = predictor.checkpoint.learnt[seed], predictor.encoding
    inputs, graphs = predictor.inputs(whole, seed), whole.graphs
    found = _integrated(predictor, inputs, seed, network, question)
    node, edge, left = found.node, found.edge, torch.zeros_like(found.start)
    if found.totals.shape[1]:
        assert learnt.whole.mean is not None
        sizes = encoding.nodes.sizes, None if encoding.edges is None else encoding.edges.sizes
        mean = learnt.whole.mean.to(found.totals)
        of_nodes, of_edges, left = spread_totals(graphs, found.totals, mean, *sizes)
        node, edge = node + of_nodes, edge + of_edges
    if "fingerprint" in network.readings:
        own = neighbourhood_shares(network, whole, learnt.whole, found)
        node = node + over_neighbourhoods(graphs, own)
    return _Shares(node, edge, left, found.start, found.end)


def _integrated(
    predictor: Predictor,
    inputs: MemberInputs,
    seed: int,
    network: GraphNetwork,
    question: Question,
) -> PathShares:
    """The shares of the inputs of all graphs."""
    learnt, encoding = predictor.checkpoint.learnt[seed], predictor.encoding
    node = average_node(encoding, learnt)
    edge = average_edge(encoding, learnt) if network.edge_channels else None
    first, ptr = halves(inputs.graphs), inputs.graphs.node_ptr.tolist()

    def batch(part: Tensor) -> PathShares:
        units = partial(question.select(part).of, predictor, seed)
        path = Path(network, inputs.level(network, part), node, edge, units)
        return path.integrate(first[ptr[int(part[0])] : ptr[int(part[-1]) + 1]])

    _ = inputs.graphs.is_undirected  # found out once, not by every thread
    return PathShares.join(list(side_by_side(batch, _batches(inputs.graphs))))


def _batches(graphs: Graphs) -> list[Tensor]:
    """Numbers of graphs in batches that fit in memory with all that is kept for gradients."""
    number = torch.arange(len(graphs), device=graphs.device)
    before, factor = graphs.node_ptr[:-1].to(number), ON_GPU if number.is_cuda else 1
    batch = torch.maximum(before // (factor * BATCH_NODES), number // (factor * BATCH_GRAPHS))
    return list(number.split(batch.unique_consecutive(return_counts=True)[1].tolist()))


def _joined(
    graphs: Graphs,
    answers: Predictions,
    target: int,
    found: list[_Shares],
    classes: bool,
    answered: Tensor | None,
) -> Attributions:
    """The shares of the answer that several networks give together."""
    start, end = torch.stack([s.start for s in found]), torch.stack([s.end for s in found])
    weight = weights_of(start, end, classes)
    graph = graphs.batch.long()
    edge_graph = graph[graphs.target.long()]
    node = sum(w[graph] * s.node for w, s in zip(weight, found, strict=True))
    edge = sum(w[edge_graph] * s.edge for w, s in zip(weight, found, strict=True))
    whole = sum(w * s.whole for w, s in zip(weight, found, strict=True))
    assert isinstance(node, Tensor)
    assert isinstance(edge, Tensor)
    assert isinstance(whole, Tensor)
    baseline, value = together(start, classes), together(end, classes)
    if answered is not None:  # a probability that is rounded to 1 or 0 has no log-odds
        answered = answered.to(value)
        value = value.where((answered.abs() > MOST_LOG_ODDS) & classes, answered)
    residual = value - baseline - whole
    residual = residual.index_add(0, graph, -node).index_add(0, edge_graph, -edge)
    size = whole.abs().index_add(0, graph, node.abs()).index_add(0, edge_graph, edge.abs())
    rate = residual / size.clamp(min=1e-12)
    parts = {
        "node": node + rate[graph] * node.abs(),
        "edge": edge + rate[edge_graph] * edge.abs(),
        "whole": whole + rate * whole.abs(),
        "node_spread": _spread([s.node for s in found]),
        "edge_spread": _spread([s.edge for s in found]),
    }
    rest = {"value": value, "baseline": baseline, "residual": residual}
    arrays = {name: part.cpu().numpy() for name, part in (parts | rest).items()}
    return Attributions(graphs, answers, target, networks=len(found), **arrays)


def _spread(shares: list[Tensor]) -> Tensor:
    """Standard deviation over the networks; PyTorch warns where there is nothing, as no edge."""
    every = torch.stack(shares)
    return every.std(0, correction=0) if every.numel() else every[0]


def _answered(own: ClassAnswers | NumberAnswers) -> Tensor:
    """What was answered, in the units of the shares, shape (g)."""
    if isinstance(own, NumberAnswers):
        return torch.from_numpy(np.asarray(own.values))
    p = own.probabilities[np.arange(len(own.numbers)), own.numbers]
    return torch.from_numpy(np.asarray(p)).double().logit()
