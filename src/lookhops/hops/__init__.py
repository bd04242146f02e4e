"""Hops: one sparse product with its gradient, and the recurrences over it.

- :mod:`~lookhops.hops.product`: a sparse matrix times a dense one, on any device.
- :mod:`~lookhops.hops.adjacency`: who is linked to whom, normalised once and shared by all layers.
- :mod:`~lookhops.hops.recurrences`: the polynomials of one hop, Chebyshev's and powers.
- :mod:`~lookhops.hops.anchors`: the anchors Z of the paper, merged and scored without storing them.
"""

from lookhops.hops.adjacency import Adjacency
from lookhops.hops.anchors import Anchors
from lookhops.hops.product import Pattern, SparseMatrix
from lookhops.hops.recurrences import chebyshev, polynomial_sum, powers

__all__ = [
    "Adjacency",
    "Anchors",
    "Pattern",
    "SparseMatrix",
    "chebyshev",
    "polynomial_sum",
    "powers",
]
