"""Graphs as vectors: what a network read of them, and their exact neighbourhoods."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lookhops.errors import LookHopsError
from lookhops.graphs import Graphs

Array = NDArray[Any]

#: Bits of a fingerprint where nothing else is asked for.
BITS = 1024


@dataclass(frozen=True, eq=False)
class Embeddings:
    """Graphs as vectors.

    Args:
        ids: What each graph is called, shape (g).
        readout: What the layers of one network read of each graph, float32, shape (g, d): the
            features from which its last dense layers answer. d is 0 for models without layers.
        fingerprint: Which neighbourhoods each graph has, folded into bits, uint8, shape (g, bits);
            bits is 0 where none are asked for, or the model reads no neighbourhoods.
    """

    ids: list[str]
    readout: Array
    fingerprint: Array

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def matrix(self) -> Array:
        """Both side by side, float32, shape (g, d + bits)."""
        return np.concatenate((self.readout, self.fingerprint.astype(np.float32)), axis=1)


def folded(graphs: Graphs, codes: Tensor, bits: int) -> Array:
    r"""The neighbourhoods of each graph as bits: bit :math:`c \bmod b` is set for each code c.

    Counts are in it too, since the codes are in unary.

    Args:
        graphs: The graphs.
        codes: Their :func:`~lookhops.neighbourhoods.unary_codes`, shape (n, h + 1).
        bits: How many, :math:`b`.
    """
    if bits < 0:
        raise LookHopsError(f"A fingerprint has a number of bits from 0, not {bits}.")
    found = torch.zeros(len(graphs), bits, dtype=torch.uint8, device=codes.device)
    if bits:
        place = graphs.batch.long()[:, None] * bits + codes.remainder(bits)
        found.view(-1)[place.flatten()] = 1
    return found.cpu().numpy()
