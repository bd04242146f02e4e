"""Triton kernels for NVIDIA GPUs, each beside the plain PyTorch that it stands for.

- :mod:`~lookhops.nn.kernels.dense`: dense layers over few rows, for :mod:`lookhops.nn.linear`;
- :mod:`~lookhops.nn.kernels.dropout`: for :mod:`lookhops.nn.dropout`;
- :mod:`~lookhops.nn.kernels.layer`: activation and readout, for :mod:`lookhops.nn.activate` and
  :mod:`lookhops.nn.readout`;
- :mod:`~lookhops.nn.kernels.ranking`: which nodes and edges stay, for
  :mod:`lookhops.nn.ranking`;
- :mod:`~lookhops.nn.kernels.neighbours`: the maximum over neighbours, and
  :mod:`~lookhops.nn.kernels.softmax`: the softmax over edges, for :mod:`lookhops.nn.segments`.
"""

from lookhops.nn.kernels.dense import Dense, dense_fits
from lookhops.nn.kernels.dropout import Dropout
from lookhops.nn.kernels.layer import Activate, Readout
from lookhops.nn.kernels.neighbours import NeighbourMax
from lookhops.nn.kernels.ranking import edges_between, keep_top
from lookhops.nn.kernels.softmax import Softmax

__all__ = [
    "Activate",
    "Dense",
    "Dropout",
    "NeighbourMax",
    "Readout",
    "Softmax",
    "dense_fits",
    "edges_between",
    "keep_top",
]
