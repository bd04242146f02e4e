"""Numeric primitives, one a file, with one function that chooses how it is computed.

Plain PyTorch, the fast path of the CPU and the Triton kernel stand side by side, below the formula.
Layers, losses and encodings call the function that chooses and ask for no device.

- Sparse products: :mod:`~lookhops.ops.pattern`, :mod:`~lookhops.ops.product`,
  :mod:`~lookhops.ops.adjacency` with its normalised operators.
- The anchors Z of the paper, merged and scored without storing them: :mod:`~lookhops.ops.anchors`,
  :mod:`~lookhops.ops.merge`, :mod:`~lookhops.ops.recurrences`, and in one kernel with what follows
  them :mod:`~lookhops.ops.light_layer`.
- A batch of graphs inside the network, :mod:`~lookhops.ops.batch`, its activation and readout
  (:mod:`~lookhops.ops.activate`), the best of each graph (:mod:`~lookhops.ops.ranking`) and what
  poolings that merge nodes need.
- Dense layers, dropout, the loss of classes, Adam, and the layout of batches.

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
