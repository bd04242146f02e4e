"""Shares handed on, to parts that look alike and to nodes; and shares of scores that are sums."""

from __future__ import annotations

import numpy as np
import torch
from scipy.sparse import csr_array, eye_array
from torch import Tensor

from lookhops.core.arrays import gauss_legendre
from lookhops.core.hashing import combine, hash_rows
from lookhops.encoding import Encoding
from lookhops.encoding.preprocessing import PreparedGraphs, Preprocessing
from lookhops.explain.question import Part, PartShares, Question
from lookhops.graphs import Graphs
from lookhops.graphs.indexing import kinds_of, means_of_kinds
from lookhops.learners.gp_terms import Terms
from lookhops.neighbourhoods.identities import bits_of, columns_of, identities
from lookhops.neighbourhoods.totals import spread_totals
from lookhops.nn.whole import Fingerprint
from lookhops.sources.rdkit.descriptors import OF_EVERY_ATOM, atom_parts

#: Points on the way from the scores of an average graph to those of a graph.
POINTS = 32
#: Farther than this no difference is looked for.
MOST_HOPS = 32
#: Descriptors that are nearer to their mean than this have no share to hand on.
NEAREST = 1e-9


# -------------------------------------------------------------------- parts that look alike


def alike(graphs: Graphs, hops: int) -> tuple[Tensor, Tensor]:
    """Kinds of nodes (n) and of edges (e) that look the same to a network that sees so many hops.

    By its formula a network gives them equal features. Rounding, and poolings that take the earlier
    of equals, part them for no reason that has to do with the graph: of the atoms of benzene some
    would pull towards an answer and others away from it.
    """
    node_bits, edge_bits = bits_of(graphs.nodes.numbers), bits_of(graphs.edges.numbers)
    code = identities(graphs, min(hops, MOST_HOPS), node_bits, edge_bins=edge_bits)[:, -1]
    code = combine(code, graphs.batch.long())
    features = columns_of(graphs.edges.labels, edge_bits)
    ends = combine(code[graphs.source.long()], code[graphs.target.long()])
    edge = combine(ends, hash_rows(features, graphs.num_edges, graphs.device))
    return kinds_of(code), kinds_of(edge)


# -------------------------------------------------------------------- neighbourhoods


def fingerprint_entries(
    graphs: PreparedGraphs, encoding: Preprocessing
) -> tuple[Tensor, Tensor, Tensor]:
    r"""Which row of a fingerprint's table each node's neighbourhood of each size has, and whether
    it has one (n, h + 1); and for each node :math:`\gamma / \sqrt{|F_g|}` of its graph (n)."""
    assert encoding.vocabulary is not None
    codes = graphs.codes_with(encoding.bins)
    row, has_row = encoding.vocabulary.to(codes.device).places(codes)
    graph = graphs.graphs.batch.long()
    count = torch.zeros(len(graphs.graphs), dtype=torch.float64, device=codes.device)
    count = count.index_add(0, graph, has_row.sum(1).double())
    return row, has_row, (Fingerprint.GAMMA * count.clamp(min=1).rsqrt())[graph]


def neighbourhood_shares(
    table: Tensor, graphs: PreparedGraphs, encoding: Preprocessing, slope: Tensor
) -> Tensor:
    r"""What each node's neighbourhood of each size has of the number of its graph, shape (n, h+1).

    .. math::
        \phi_{ih} = \frac{\gamma}{\sqrt{|F_g|}}\, W_{f(i, h)} \cdot s_g

    exactly: the fingerprint, a ``table`` of rows :math:`W`, is linear, with the slope :math:`s_g`
    (g, outputs) of the graph's number. A neighbourhood that is not in the vocabulary has nothing.
    One that stands in a graph several times has several rows, of which none belongs to one place:
    each place has their mean.
    """
    if not encoding.num_neighbourhoods:
        return torch.zeros_like(graphs.codes_with(encoding.bins), dtype=torch.float64)
    row, has_row, scale = fingerprint_entries(graphs, encoding)
    numbers, attributes = None, graphs.graphs.nodes.numbers
    if encoding.bins is not None and attributes is not None:
        numbers = encoding.bins(attributes)
    identity = identities(graphs.graphs, row.shape[1] - 1, numbers)
    graph = graphs.graphs.batch.long()
    slopes = scale[:, None] * slope.index_select(0, graph)
    found = torch.zeros_like(has_row, dtype=torch.float64)
    for hop in range(row.shape[1]):  # one hop at a time: rows of the table are gathered
        rows = table.index_select(0, row[:, hop]).double()
        found[:, hop] = (rows * slopes).sum(1) * has_row[:, hop]
        same = kinds_of(combine(identity[:, hop], graph))
        found[:, hop] = means_of_kinds(found[:, hop], same)
    return found


def over_neighbourhoods(graphs: Graphs, shares: Tensor) -> Tensor:
    r"""Shares of neighbourhoods, in equal parts to the nodes in them, shape (..., n).

    The neighbourhood of node :math:`i` with :math:`h` hops holds the nodes from which a walk of at
    most :math:`h` edges leads to :math:`i`; shares are those with 0 to h hops, (..., n, h + 1).
    """
    n = graphs.num_nodes
    value = shares.reshape(-1, n, shares.shape[-1]).permute(2, 1, 0).cpu().numpy()
    links = csr_array(
        (np.ones(graphs.num_edges, np.float32), graphs.source.cpu(), graphs.row_ptr.cpu()),
        shape=(n, n),
    ) + eye_array(n, dtype=np.float32, format="csr")
    inside = csr_array(eye_array(n, dtype=np.float32, format="csr"))
    found = value[0].copy()
    for share in value[1:]:
        inside = csr_array(inside @ links)
        inside.data[:] = 1
        found += inside.T @ (share / np.diff(inside.indptr)[:, None])
    return torch.from_numpy(found.T.copy()).to(shares.device).view(shares.shape[:-1])


# -------------------------------------------------------------------- totals and features


class Spreading:
    r"""Hands shares of what is read of whole graphs on to the nodes and edges that make it up.

    Totals go to the nodes and edges that they count
    (:func:`~lookhops.neighbourhoods.totals.spread_totals`). Descriptors that are sums over atoms go
    to the atoms of molecules: with their parts :math:`c_i` of a descriptor,
    :math:`\sum_i c_i = x`, and its mean :math:`m` in the training part, atom :math:`i` of
    :math:`n` has

    .. math::
        \phi_i = \frac{\phi}{x - m} \Bigl(c_i - \frac{m}{n}\Bigr)

    of the share :math:`\phi` where every atom has a part, as of ``MolLogP``. Of others, as of
    ``TPSA`` and ``fr_nitro``, it has :math:`\phi \, c_i / (x - m)`, and the graph as a whole the
    rest: what an average molecule has is missing at no atom. Where no atom has a part, as in graphs
    without a SMILES, the share stays with the descriptor.
    """

    def __init__(self, graphs: Graphs, encoding: Encoding) -> None:
        self.graphs = graphs
        self.sizes = encoding.nodes.sizes, None if encoding.edges is None else encoding.edges.sizes
        #: The features of whole graphs: numbers, then labels.
        self.names = () if encoding.whole is None else encoding.whole.features
        self.graph, self.nodes = graphs.batch.long(), graphs.nodes_per_graph.double()
        #: Of each column that is handed on its values, the atoms' parts, and who has any.
        self.columns: dict[int, tuple[Tensor, Tensor, Tensor]] = {}
        smiles, numbers = graphs.columns.get("smiles"), graphs.whole.numbers
        if smiles is None or numbers is None:
            return
        values, ends = numbers.double(), graphs.node_ptr.tolist()
        for graph, row in enumerate(values.tolist()):
            atoms = slice(ends[graph], ends[graph + 1])
            features = dict(zip(self.names, row, strict=False))
            for name, part in atom_parts(str(smiles[graph]), features).items():
                if len(part) == atoms.stop - atoms.start and part.any():
                    column = self.names.index(name)
                    if column not in self.columns:
                        parts = self.graph.double().zero_()
                        has_any = torch.zeros_like(self.nodes).bool()
                        self.columns[column] = values[:, column], parts, has_any
                    _, parts, has_any = self.columns[column]
                    parts[atoms], has_any[graph] = torch.from_numpy(part).to(parts), True

    def hand_on(
        self, totals: Tensor | None, mean: Tensor | None, features: Tensor, mean_features: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Shares of the nodes (n), of the edges (e), of graphs as wholes (g), and of the features
        as far as they are left (g, f): from those of totals (g, q) and of features (g, f)."""
        node, left, whole = self.of_features(features, mean_features)
        if totals is None or mean is None:
            return node, node.new_zeros(self.graphs.num_edges), whole, left
        of_nodes, edge, of_graphs = spread_totals(self.graphs, totals, mean, *self.sizes)
        return node + of_nodes, edge, whole + of_graphs, left

    def of_features(self, shares: Tensor, mean: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The same from features alone (g, f): of the nodes, what is left, of graphs as wholes."""
        node, left = torch.zeros_like(self.graph, dtype=shares.dtype), shares.clone()
        of_graphs = shares.new_zeros(len(shares))
        for column, (values, parts, has_any) in self.columns.items():
            apart = values - mean[column]
            carried = has_any & (apart.abs() > NEAREST)
            slope = torch.where(carried, shares[:, column] / apart, 0)
            if self.names[column] in OF_EVERY_ATOM:
                parts = parts - (mean[column] / self.nodes)[self.graph]
            else:
                of_graphs -= slope * mean[column]
            node += slope[self.graph] * parts
            left[:, column] = torch.where(carried, 0, shares[:, column])
        return node, left, of_graphs


# -------------------------------------------------------------------- answers that are sums


def explain_sum(part: Part, target: int, spreading: Spreading, question: Question) -> PartShares:
    """The shares of a part whose scores are sums."""
    graphs = spreading.graphs
    terms = part.fitted.terms(graphs, target).to(graphs.device)
    weight, start, end = _weights(terms, question, part.temperature)
    graph = graphs.batch.long()
    totals = None if terms.totals is None else _sum(terms.totals, weight)
    features = _sum(terms.features, weight)
    node, edge, _, left = spreading.hand_on(
        totals, terms.mean_totals, features, terms.mean_features
    )
    node = node + (terms.nodes * weight[graph]).sum(1)
    node = node + over_neighbourhoods(graphs, _sum(terms.neighbourhoods, weight[graph]))
    whole = (end - start - left.sum(1)).index_add(0, graph, -node)
    whole = whole.index_add(0, graph[graphs.target.long()], -edge)
    return PartShares(*(one[None] for one in (node, edge, start, end, whole, left)))


def _sum(terms: Tensor, weight: Tensor) -> Tensor:
    """Terms of scores (m, k, c) with the weight of each score (m, c), shape (m, k)."""
    return torch.einsum("mkc,mc->mk", terms, weight)


def _weights(terms: Terms, question: Question, temperature: float) -> tuple[Tensor, Tensor, Tensor]:
    r"""What the terms of each score count for in the number :math:`u`, (g, c), and both ends, (g).

    The mean slope on the straight line from the scores of an average graph to those of the graph:
    of one score :math:`\Delta u / \Delta s`, of classes an integral of :math:`\partial u / \partial
    s_c`, so that weighed terms add up to :math:`\Delta u`.
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
