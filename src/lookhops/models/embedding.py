"""Graphs as vectors: what a network read of them, and their exact neighbourhoods."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lookhops.core.arrays import Array
from lookhops.core.errors import LookHopsError
from lookhops.graphs import Graphs
from lookhops.models.answers import beside_rows

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


def vector_columns(
    head: Sequence[str],
    cells: Sequence[Sequence[Any]],
    graphs: Graphs,
    found: Embeddings,
    apart: bool,
) -> tuple[list[str], list[Any]]:
    """The rows of an input with their vectors, column by column.

    Args:
        head: Names of the input's columns.
        cells: The rows of the input.
        graphs: Their graphs, and the rows that gave none: their readout is NaN, and no bit is set.
        found: The graphs' vectors.
        apart: Whether each number is a column of its own; else vectors are rows of matrices.

    Returns:
        Names of all columns, and the columns. The last says why a row has no vectors.
    """
    gone = np.array([row.row for row in graphs.skipped], dtype=np.int64)
    here = np.setdiff1d(np.arange(len(cells)), gone)
    made: dict[str, Any] = {}
    for name, blank in (("readout", np.nan), ("fingerprint", 0)):
        own = getattr(found, name)
        if not own.shape[1]:
            continue
        rows = np.full((len(cells), own.shape[1]), blank, own.dtype)
        rows[here] = own
        if not apart:
            made[name] = rows
            continue
        for number, column in enumerate(rows.T.tolist()):
            made[f"{name}_{number}"] = ["" if v != v else f"{v:.6g}" for v in column]
    reason = {row.row: f"skipped: {row.reason}" for row in graphs.skipped}
    made["warning"] = [reason.get(row, "") for row in range(len(cells))]
    return beside_rows(head, cells, made)
