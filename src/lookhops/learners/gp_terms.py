"""The answer of a Gaussian process as a sum over neighbourhoods, pairs and columns of graphs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from lookhops.core.arrays import gauss_legendre
from lookhops.core.hashing import combine
from lookhops.graphs import Graphs
from lookhops.graphs.indexing import kinds_of, means_of_kinds, segment_of
from lookhops.learners.kernels import GraphRows, Kernels, squared_distances
from lookhops.neighbourhoods import identities
from lookhops.neighbourhoods.counts import pair_kinds

if TYPE_CHECKING:
    from lookhops.learners.gp import FittedProcess
    from lookhops.learners.gp_solve import TargetProcess

#: Points on the way from the mean of all columns to the columns of a graph.
POINTS = 12
#: Entries of one kernel that are computed at a time.
BLOCK = 250_000


@dataclass(frozen=True, eq=False)
class Terms:
    r"""The :math:`c` scores of one target for :math:`g` graphs with :math:`n` nodes, as sums.

    Scores are numbers in the target's units, or logits of classes. For each graph

    .. math::
        \text{score} = \text{baseline} + \text{whole} + \sum_i \text{node}_i
        + \sum_{i, t} \text{neighbourhood}_{it} + \sum_q \text{total}_q
        + \sum_f \text{feature}_f,

    and of a graph without nodes, or without pairs of them, something more. All are float64.
    """

    scores: Tensor  # shape (g, c)
    baseline: Tensor  # the scores of an average training graph, shape (c)
    neighbourhoods: Tensor  # those with 0, 1, ... hops of each node, shape (n, h + 1, c)
    nodes: Tensor  # what each node has besides, shape (n, c)
    #: Of each of :func:`~lookhops.neighbourhoods.graph_totals`, shape (g, q, c), where any is read.
    totals: Tensor | None
    features: Tensor  # of the features of whole graphs, numbers first, shape (g, f, c)
    whole: Tensor  # what an average graph has less of what nodes have, shape (g, c)
    mean_totals: Tensor | None  # in the training part, shape (q)
    mean_features: Tensor  # the same, 0 of labels, shape (f)

    def to(self, device: torch.device) -> Terms:
        """The same on a device."""
        given = {name: value for name, value in vars(self).items() if value is not None}
        return replace(self, **{name: value.to(device) for name, value in given.items()})


def process_terms(process: FittedProcess, graphs: Graphs, target: int) -> Terms:
    r"""The scores of a target as sums.

    The average training graph has the mean of all columns, and as much of the kernels of hops and
    pairs as training graphs have in the mean. The graphs are in main memory.
    """
    rows, one = process.rows(graphs), process.targets[target]
    scale, usual = one.score_scale, process.usual[target]
    of_nodes = _of_nodes(process, graphs, rows, one)
    each, baseline = {}, usual.sum(0)
    first = len(process.kernels) - 3 * len(process.columns.groups)
    for number, name in enumerate(process.columns.groups):
        each[name], at_mean = column_terms(
            rows.columns[name],
            process.kernels.references.columns[name],
            one.coefficients,
            one.weights[first + 3 * number :][:3],
            process.kernels.medians[name],
        )
        baseline = baseline + at_mean
    scores = one.scores(process.answers(rows, [one]))
    totals, features = process.columns.by_feature(each, scores)
    hops = rows.codes.shape[1]
    return Terms(
        scores=scores,
        baseline=one.scores(baseline),
        neighbourhoods=scale * of_nodes[:, :hops],
        nodes=scale * of_nodes[:, hops:].sum(1),
        totals=None if totals is None else scale * totals,
        features=scale * features,
        whole=(-scale * usual.sum(0)).expand_as(scores),
        mean_totals=None if totals is None else process.columns.groups["totals"].mean,
        mean_features=process.columns.mean_features,
    )


def _of_nodes(
    process: FittedProcess, graphs: Graphs, rows: GraphRows, one: TargetProcess
) -> Tensor:
    """What nodes have of each hop, and perhaps of pairs, shape (n, h + 1 or h + 2, c).

    Equal nodes of a graph have their mean, and so have equal pairs, half at each of both nodes.
    """
    found = assignment_terms(process.kernels, rows, one.coefficients, one.weights)
    graph = segment_of(rows.node_ptr, len(rows.codes))
    identity = identities(graphs, rows.codes.shape[1] - 1)
    for hop, codes in enumerate(identity.unbind(1)):
        found[hop] = means_of_kinds(found[hop].T, kinds_of(combine(codes, graph))).T
    if process.learner.pairs:
        ends, kinds, owner = pair_kinds(graphs, identity[:, 0], process.learner.pairs)
        half = means_of_kinds(found[-1].T, kinds_of(combine(kinds, owner))).T / 2
        found[-1] = torch.zeros_like(found[0])
        for end in ends.unbind(1):
            found[-1].index_add_(0, end, half)
    return torch.stack(found, 1)


def assignment_terms(
    kernels: Kernels, rows: GraphRows, coefficients: Tensor, weights: Tensor
) -> list[Tensor]:
    r"""What the nodes (and pairs) of graphs have of the kernels that assign them to each other.

    The kernel of hop :math:`t` counts the nodes of graph :math:`a` that are assigned to nodes of
    graph :math:`b`, so that :math:`K_t(a, b) = \sum_i s_{ib} / (n_a + n_b - S_{ab})` with
    :math:`s_{ib} = 1` for the :math:`S_{ab}` nodes that are. With coefficients :math:`\beta` node
    :math:`i` has

    .. math::
        \sum_b \beta_b \, s_{ib} \left(\frac{w_t}{n_a + n_b - S^t_{ab}} + \frac{w}{\sum_{u \le 3}
        (n_a + n_b - S^u_{ab})}\right)

    where the second is for the kernel of the first hops; pairs have the first alone. Of equal nodes
    of a graph the first ones are assigned.

    Returns:
        For each of :attr:`GraphRows.parts` float64, shape (codes, c), of coefficients (m, c).
    """
    hops = rows.codes.shape[1] - 1
    found: list[list[Tensor]] = [[] for _ in rows.parts]
    step = max(BLOCK // len(kernels.references), 1)
    for start in range(0, len(rows), step):
        block = rows.select(torch.arange(start, min(start + step, len(rows))))
        apart = []
        for number, part in enumerate(block.parts):
            shared, sizes = kernels.shared(number, *part)
            apart.append(sizes - shared)
        first = torch.stack(apart[: kernels.first + 1]).sum(0)
        for number, (codes, ptr) in enumerate(block.parts):
            kernel = number + (number > hops > 0)  # that of the first hops stands between
            rate = weights[kernel] / apart[number].clamp(min=1)
            if hops and number <= kernels.first:
                rate += weights[hops + 1] / first.clamp(min=1)
            match, each = kernels.matches(codes, number), []
            graph = segment_of(ptr, len(codes)).numpy().repeat(np.diff(match.indptr))
            for channel in coefficients.unbind(1):
                match.data = (rate * channel).numpy()[graph, match.indices]
                each.append(torch.from_numpy(match.sum(1)))
            found[number].append(torch.stack(each, 1))
    return [torch.cat(blocks) for blocks in found]


def column_terms(
    z: Tensor, references: Tensor, coefficients: Tensor, weights: Tensor, median: float
) -> tuple[Tensor, Tensor]:
    r"""What each column of graphs has of the three kernels of its group, and their value at 0.

    Integrated gradients on the straight line from the mean of the training part, which is
    :math:`0`, to the columns :math:`z`:

    .. math::
        \phi_q = z_q \int_0^1 \frac{\partial f}{\partial z_q}(\alpha z) \, d\alpha, \qquad
        f(z) = \sum_b \beta_b \, k(z, z_b), \qquad \sum_q \phi_q = f(z) - f(0).

    With columns of the graphs, (g, q), of references, (m, q), coefficients :math:`\beta`, (m, c),
    and weights of ``near``, ``wide`` and ``linear`` the shapes are (g, q, c) and (c), float64.
    """
    z, references = z.double(), references.double()
    near, wide, linear = weights.tolist()
    lengths = references.square().sum(1)
    found = torch.zeros(*z.shape, coefficients.shape[1], dtype=torch.float64)
    found += linear / max(z.shape[1], 1) * (references.T @ coefficients)
    step = max(BLOCK // len(references), 1)
    for start in range(0, len(z), step):
        part = z[start : start + step]
        product = part @ references.T
        for share, weight in gauss_legendre(POINTS):
            apart = squared_distances(share * part, references, share * product)
            slope = near * (-apart / median).exp() + wide / 4 * (-apart / (4 * median)).exp()
            slope *= -2 * weight / median
            for channel, beta in enumerate(coefficients.unbind(1)):
                pulled = slope * beta
                gradient = pulled.sum(1, keepdim=True) * share * part - pulled @ references
                found[start : start + step, :, channel] += gradient
    at_mean = near * (-lengths / median).exp() + wide * (-lengths / (4 * median)).exp()
    return found * z[..., None], at_mean @ coefficients
