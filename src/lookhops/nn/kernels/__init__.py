"""Triton kernels for NVIDIA GPUs, each beside the plain PyTorch that it stands for.

- :mod:`~lookhops.nn.kernels.dense`: dense layers over few rows, for :mod:`lookhops.nn.linear`;
- :mod:`~lookhops.nn.kernels.dropout`: for :mod:`lookhops.nn.dropout`;
- :mod:`~lookhops.nn.kernels.layer`: activation and readout, for :mod:`lookhops.nn.activate` and
  :mod:`lookhops.nn.readout`;
- :mod:`~lookhops.nn.kernels.light`: a whole light layer, for these and :mod:`lookhops.ops.merge`,
  with :mod:`~lookhops.nn.kernels.light_gradient`, made of :mod:`~lookhops.nn.kernels.graph_hops`;
- :mod:`~lookhops.nn.kernels.ranking`: which nodes and edges stay, for :mod:`lookhops.nn.ranking`;
- :mod:`~lookhops.nn.kernels.matching`: which edges are taken, for
  :mod:`lookhops.nn.pool.matching`;
- :mod:`~lookhops.nn.kernels.clusters`: neighbourhoods and the links between them, for
  :mod:`lookhops.nn.pool.neighbourhoods`;
- :mod:`~lookhops.nn.kernels.neighbours`: the maximum over neighbours,
  :mod:`~lookhops.nn.kernels.softmax`: the softmax over edges, and
  :mod:`~lookhops.nn.kernels.attention`: that of scores of both ends, for
  :mod:`lookhops.nn.segments`.
"""

from lookhops.nn.kernels.attention import Attention
from lookhops.nn.kernels.dense import Dense, dense_fits
from lookhops.nn.kernels.dropout import Dropout
from lookhops.nn.kernels.layer import Activate, Readout
from lookhops.nn.kernels.light import FEWEST, LARGEST, LightLayer
from lookhops.nn.kernels.neighbours import NeighbourMax
from lookhops.nn.kernels.ranking import edges_between, keep_top
from lookhops.nn.kernels.softmax import Softmax

__all__ = [
    "FEWEST",
    "LARGEST",
    "Activate",
    "Attention",
    "Dense",
    "Dropout",
    "LightLayer",
    "NeighbourMax",
    "Readout",
    "Softmax",
    "clusters",
    "dense_fits",
    "edges_between",
    "keep_top",
    "neighbours",
]
