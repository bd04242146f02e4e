"""Hops: one sparse product with its gradient, and the recurrences over it.

- :mod:`~lookhops.ops.product`: a sparse matrix times a dense one, on any device.
- :mod:`~lookhops.ops.adjacency`: who is linked to whom, normalised once and shared by all layers.
- :mod:`~lookhops.ops.recurrences`: the polynomials of one hop, Chebyshev's and powers.
- :mod:`~lookhops.ops.anchors`: the anchors Z of the paper, merged and scored without storing them.
"""

from lookhops.ops.adjacency import Adjacency
from lookhops.ops.anchors import Anchors
from lookhops.ops.pattern import Pattern
from lookhops.ops.product import SparseMatrix
from lookhops.ops.recurrences import chebyshev, polynomial_sum, powers

__all__ = [
    "Adjacency",
    "Anchors",
    "Pattern",
    "SparseMatrix",
    "chebyshev",
    "polynomial_sum",
    "powers",
]
