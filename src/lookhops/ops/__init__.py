"""Numeric primitives, one a file, with one function that chooses how it is computed.

Plain PyTorch, the fast path of the CPU and the Triton kernel stand side by side, below the formula.
Layers, losses and encodings call the function that chooses and ask for no device. Sparse products
are in ``pattern``, ``product`` and ``adjacency``; the paper's anchors in ``anchors``, ``merge``,
``recurrences`` and ``light_layer``; a batch inside the network in ``batch``, ``activate``,
``ranking`` and what poolings that merge nodes need.

To add a primitive, write its plain function first; :mod:`~lookhops.ops.gpu` says where a kernel can
run, and ``tests/kernel_cases.py`` holds the kernel to the plain function.
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
