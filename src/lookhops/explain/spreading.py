"""Shares handed on: to parts that look alike, and to nodes from neighbourhoods and descriptors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from scipy.sparse import csr_array, eye_array
from torch import Tensor

from lookhops.core.hashing import combine, hash_rows
from lookhops.encoding.graph_encoding import GraphEncoding, PreparedGraphs
from lookhops.graphs import Graphs
from lookhops.graphs.indexing import kinds_of, means_of_kinds
from lookhops.neighbourhoods import identities
from lookhops.nn.whole import Fingerprint
from lookhops.sources.rdkit.descriptors import atom_parts

#: Farther than this no difference is looked for.
MOST_HOPS = 32
#: Descriptors that are nearer to their mean than this have no share to hand on.
NEAREST = 1e-9


def alike(graphs: Graphs, hops: int) -> tuple[Tensor, Tensor]:
    """Kinds of nodes, shape (n), and of edges, shape (e), that look the same to a network.

    By its formula a network gives them equal features. Rounding, and poolings that take the earlier
    of equals, part them for no reason that has to do with the graph: of the atoms of benzene some
    would pull towards an answer and others away from it.

    Args:
        graphs: The graphs.
        hops: How far the network sees.
    """
    node_bits, edge_bits = _bits(graphs.nodes.numbers), _bits(graphs.edges.numbers)
    code = identities(graphs, min(hops, MOST_HOPS), node_bits, edge_bins=edge_bits)[:, -1]
    code = combine(code, graphs.batch.long())
    columns = [part.long() for part in (graphs.edges.labels, edge_bits) if part is not None]
    features = torch.cat(columns, 1) if columns else None
    ends = combine(code[graphs.source.long()], code[graphs.target.long()])
    edge = combine(ends, hash_rows(features, graphs.num_edges, graphs.device))
    return kinds_of(code), kinds_of(edge)


def _bits(numbers: Tensor | None) -> Tensor | None:
    """Numbers as whole ones that differ where they do."""
    return None if numbers is None else numbers.double().view(torch.int64)


def neighbourhood_shares(
    table: Tensor, whole: PreparedGraphs, encoding: GraphEncoding, slope: Tensor
) -> Tensor:
    r"""What each node's neighbourhood of each size has of the number of its graph, shape (n, h+1).

    .. math::
        \phi_{ih} = \frac{\gamma}{\sqrt{|F_g|}}\, W_{f(i, h)} \cdot s_g

    exactly: the fingerprint is linear, with the slope :math:`s_g` of the graph's number. A
    neighbourhood that the vocabulary does not know has nothing. One that stands in a graph several
    times has several rows, of which none belongs to one place: each place has their mean.

    Args:
        table: The rows :math:`W` of a network's fingerprint.
        whole: The graphs.
        encoding: What the network knows of neighbourhoods.
        slope: Of each graph, shape (g, outputs).
    """
    assert encoding.vocabulary is not None
    codes = whole.codes_with(encoding.bins)
    if not len(encoding.vocabulary):
        return torch.zeros_like(codes, dtype=torch.float64)
    place, known = encoding.vocabulary.to(codes.device).places(codes)
    numbers, attributes = None, whole.graphs.nodes.numbers
    if encoding.bins is not None and attributes is not None:
        numbers = encoding.bins(attributes)
    identity = identities(whole.graphs, codes.shape[1] - 1, numbers)
    graph = whole.graphs.batch.long()
    count = slope.new_zeros(len(slope)).index_add(0, graph, known.sum(1).to(slope))
    scale = Fingerprint.GAMMA * count.clamp(min=1).rsqrt()
    slopes = (scale[:, None] * slope).index_select(0, graph)
    found = torch.zeros_like(known, dtype=torch.float64)
    for hop in range(codes.shape[1]):  # one hop at a time: rows of the table are gathered
        rows = table.index_select(0, place[:, hop]).double()
        found[:, hop] = (rows * slopes).sum(1) * known[:, hop]
        same = kinds_of(combine(identity[:, hop], graph))
        found[:, hop] = means_of_kinds(found[:, hop], same)
    return found


def over_neighbourhoods(graphs: Graphs, shares: Tensor) -> Tensor:
    r"""Shares of neighbourhoods, in equal parts to the nodes in them, shape (..., n).

    The neighbourhood of node :math:`i` with :math:`h` hops holds the nodes from which a walk of at
    most :math:`h` edges leads to :math:`i`.

    Args:
        graphs: The graphs.
        shares: Of the neighbourhoods with 0, 1, ... hops of each node, shape (..., n, h + 1).
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


class AtomSpreading:
    r"""Hands shares of descriptors that are sums over atoms on to the atoms of molecules.

    With the atoms' parts :math:`c_i` of a descriptor, :math:`\sum_i c_i = x`, and its mean
    :math:`m` in the training part, atom :math:`i` of :math:`n` has

    .. math::
        \phi_i = \phi \, \frac{c_i - m / n}{x - m}

    of the share :math:`\phi`: what it adds beyond an even part of what an average molecule has.
    Where no atom has any, the share stays with the molecule: no atom carries what others have.

    Args:
        graphs: The graphs; those without a SMILES have no atoms.
        names: The features of whole graphs: numbers, then labels.
    """

    def __init__(self, graphs: Graphs, names: Sequence[str]) -> None:
        self.names = names
        self.graph, self.size = graphs.batch.long(), graphs.nodes_per_graph.double()
        #: Of each column that is handed on its values, the atoms' parts, and who has any.
        self.columns: dict[int, tuple[Tensor, Tensor, Tensor]] = {}
        smiles, numbers = graphs.columns.get("smiles"), graphs.whole.numbers
        if smiles is None or numbers is None:
            return
        values, ends = numbers.double(), graphs.node_ptr.tolist()
        for graph, row in enumerate(values.tolist()):
            atoms = slice(ends[graph], ends[graph + 1])
            known = dict(zip(names, row, strict=False))
            for name, part in atom_parts(str(smiles[graph]), known).items():
                if len(part) == atoms.stop - atoms.start and part.any():
                    self._add(names.index(name), graph, atoms, torch.from_numpy(part), values)

    def _add(self, column: int, graph: int, atoms: slice, part: Tensor, values: Tensor) -> None:
        if column not in self.columns:
            parts, known = self.graph.double().zero_(), torch.zeros_like(self.size).bool()
            self.columns[column] = values[:, column], parts, known
        _, parts, known = self.columns[column]
        parts[atoms], known[graph] = part.to(parts), True

    def __call__(self, shares: Tensor, mean: Tensor) -> tuple[Tensor, Tensor]:
        """Shares of the nodes, shape (n), and what the features keep, shape (g, f).

        Args:
            shares: Of the features of each graph, float64, shape (g, f).
            mean: Of each feature in the training part, shape (f).
        """
        node, left = torch.zeros_like(self.graph, dtype=shares.dtype), shares.clone()
        for column, (values, parts, known) in self.columns.items():
            apart = values - mean[column]
            carried = known & (apart.abs() > NEAREST)
            slope = torch.where(carried, shares[:, column] / apart, 0)
            node += slope[self.graph] * (parts - (mean[column] / self.size)[self.graph])
            left[:, column] = torch.where(carried, 0, shares[:, column])
        return node, left
