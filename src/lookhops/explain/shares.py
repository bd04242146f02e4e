"""Shares of the parts of a model's answer, and those of parts whose scores are sums."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Self

import torch
from torch import Tensor

from lookhops.core.arrays import gauss_legendre
from lookhops.encoding import Encoding
from lookhops.explain.question import Part, Question
from lookhops.explain.spreading import (
    AtomSpreading,
    over_neighbourhoods,
)
from lookhops.graphs import Graphs
from lookhops.learners.learner import Terms
from lookhops.neighbourhoods.totals import spread_totals

#: Points on the way from the scores of an average graph to those of a graph.
POINTS = 32


@dataclass(frozen=True, eq=False)
class Shares:
    r"""What nodes and edges have of the number :math:`u` of each graph; all in float64.

    Args:
        node: Of each node, shape (parts, n).
        edge: Of each edge: that it is there, and what it carries, shape (parts, e).
        start: The number of the average graph, shape (parts, g).
        end: The number of the graph, shape (parts, g).
    """

    node: Tensor
    edge: Tensor
    start: Tensor
    end: Tensor

    @classmethod
    def join(cls, parts: Sequence[Self], dim: int) -> Self:
        """Those of several batches (``dim`` 1), or of several parts of an answer (0)."""
        names = (entry.name for entry in fields(cls))
        return cls(*(torch.cat([getattr(part, name) for part in parts], dim) for name in names))

    def of(self, parts: Sequence[int]) -> Self:
        """Those of the parts with these numbers, in their order."""
        return type(self)(*(getattr(self, entry.name)[list(parts)] for entry in fields(self)))


@dataclass(frozen=True, eq=False)
class PartShares(Shares):
    """Shares of the answers of each part of a model to all graphs.

    Args:
        whole: Of the graphs as wholes, shape (parts, g).
        features: Of each feature of whole graphs, as far as atoms do not have it, shape
            (parts, g, f).
    """

    whole: Tensor
    features: Tensor


def explain_sum(
    part: Part,
    target: int,
    graphs: Graphs,
    encoding: Encoding,
    atoms: AtomSpreading,
    question: Question,
) -> PartShares:
    """The shares of a part whose scores are sums, a single one.

    What a neighbourhood has goes in equal parts to its nodes, what totals have to the nodes and
    edges that they count, and what descriptors have to their atoms.

    Args:
        part: The part.
        target: The number of the target.
        graphs: The graphs.
        encoding: Their columns.
        atoms: Hands shares of descriptors on to their atoms.
        question: What is explained.
    """
    terms = part.fitted.terms(graphs, target).to(graphs.device)
    weight, start, end = _weights(terms, question, part.temperature)
    graph = graphs.batch.long()
    node = (terms.nodes * weight[graph]).sum(1)
    node = node + over_neighbourhoods(graphs, _sum(terms.neighbourhoods, weight[graph]))
    features = _sum(terms.features, weight)
    of_atoms, left = atoms(features, terms.mean_features)
    node, edge = node + of_atoms, node.new_zeros(graphs.num_edges)
    if terms.totals is not None and terms.mean_totals is not None:
        totals = _sum(terms.totals, weight)
        edge_sizes = None if encoding.edges is None else encoding.edges.sizes
        of_nodes, edge, _ = spread_totals(
            graphs, totals, terms.mean_totals, encoding.nodes.sizes, edge_sizes
        )
        node = node + of_nodes
    whole = (end - start - left.sum(1)).index_add(0, graph, -node)
    whole = whole.index_add(0, graph[graphs.target.long()], -edge)
    each = (node, edge, start, end, whole, left)
    return PartShares(*(one[None] for one in each))


def _sum(terms: Tensor, weight: Tensor) -> Tensor:
    """Terms of scores (m, k, c) with the weight of each score (m, c), shape (m, k)."""
    return torch.einsum("mkc,mc->mk", terms, weight)


def _weights(terms: Terms, question: Question, temperature: float) -> tuple[Tensor, Tensor, Tensor]:
    r"""What the terms of each score count for in the number :math:`u`, (g, c), and both ends, (g).

    The mean slope on the straight line from the scores of an average graph to those of the graph:
    of one score :math:`\Delta u / \Delta s`, of classes an integral of :math:`\partial u / \partial
    s_c`, so that weighed terms add up to the difference of the numbers.
    """
    first, last = terms.baseline.expand_as(terms.scores), terms.scores
    if question.classes is None:
        in_units = question.head.task.outputs
        answers = (torch.from_numpy(in_units(one.cpu().numpy())).to(one) for one in (first, last))
        start, end = (question.of_scores(one) for one in answers)
        apart = (last - first)[:, 0]
        slope = torch.where(apart == 0, 1.0, (end - start) / torch.where(apart == 0, 1.0, apart))
        return slope[:, None], start, end
    start, end = (question.of_scores(one, temperature) for one in (first, last))
    weight = torch.zeros_like(last)
    for share, of_point in gauss_legendre(POINTS):
        with torch.enable_grad():
            scores = torch.lerp(first, last, share).requires_grad_()
            total = question.of_scores(scores, temperature).sum()
        weight += of_point * torch.autograd.grad(total, scores)[0]
    return weight, start, end
