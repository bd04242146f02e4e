"""Inner products of graphs by their neighbourhoods: the Weisfeiler-Lehman kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookhops.core.errors import LookHopsError
from lookhops.graphs import Graphs
from lookhops.neighbourhoods.counts import Vocabulary, unary_codes
from lookhops.neighbourhoods.identities import identities

KINDS = ("subtree", "optimal-assignment")
#: Features in a larger share of the graphs are multiplied as a dense matrix.
_DENSE = 0.02


def gram_by_hop(
    graphs: Graphs, hops: int, kind: str = "optimal-assignment", edge_labels: bool = True
) -> NDArray[np.float32]:
    r"""The kernel of every pair of graphs at each hop alone, shape (h + 1, g, g).

    With :math:`\#_a(c)` the nodes of identity :math:`c` in graph :math:`a`, hop :math:`t` adds
    :math:`\sum_c \#_a(c) \, \#_b(c)` to the subtree kernel (Shervashidze et al., 2011) and
    :math:`\sum_c \min(\#_a(c), \#_b(c))` to the optimal-assignment kernel (Kriege et al., 2016),
    over the identities of that hop. The kernel of depth :math:`h` is the sum over hops 0 to
    :math:`h`: ``gram_by_hop(...)[: h + 1].sum(0)``, or all depths at once by ``cumsum(0)``.

    Args:
        graphs: The graphs, :math:`g` of them.
        hops: How far to look.
        kind: ``"subtree"`` or ``"optimal-assignment"``.
        edge_labels: Whether labels of edges count.
    """
    if kind not in KINDS:
        raise LookHopsError(f"A kernel is one of {', '.join(KINDS)}, not {kind!r}.")
    identity = identities(graphs, hops, edge_labels=edge_labels)
    codes = identity if kind == "subtree" else unary_codes(graphs, identity)
    products = []
    for hop in range(hops + 1):
        column = codes[:, hop : hop + 1]
        vocabulary = Vocabulary.choose(graphs, column, min_graphs=1)
        products.append(_product(vocabulary.rows(graphs, column).to_scipy()))
    return np.stack(products)


def _product(rows: Any) -> NDArray[np.float32]:
    """``rows @ rows.T``: columns with many entries as a dense matrix, the others sparse."""
    entries = np.bincount(rows.indices, minlength=rows.shape[1])
    many = entries > _DENSE * rows.shape[0]
    dense = rows[:, np.flatnonzero(many)].toarray()
    few = rows[:, np.flatnonzero(~many & (entries > 1))]
    total: NDArray[np.float32] = dense @ dense.T + (few @ few.T).toarray()
    # A column with one entry adds to the diagonal alone.
    alone = rows[:, np.flatnonzero(~many & (entries == 1))]
    total[np.diag_indices(len(total))] += np.asarray(alone.multiply(alone).sum(1)).ravel()
    return total
