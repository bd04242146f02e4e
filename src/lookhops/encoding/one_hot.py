"""Labels that are given as one-hot columns."""

from __future__ import annotations

import torch
from torch import Tensor

from lookhops.core.errors import LookHopsError

#: What to do where features are no label.
AS_NUMBERS = (
    "To have such columns read as numbers, train it on an x of type float64 (PyG), or give each a "
    "name of its own (NetworkX)."
)
#: The unknown values of a label that is given as one-hot columns.
NO_VALUE, SEVERAL = "no value", "several at once"


def one_hot_codes(block: Tensor, label: str, where: str) -> tuple[Tensor, dict[str, int]]:
    """The values of a label from its one-hot columns, and how many rows have none that is known.

    A row without a one, or with several, is a value that was never seen: its code is one more than
    the last. Numbers other than 0 and 1 are refused.

    Args:
        block: The columns, shape (m, values).
        label: The label's name.
        where: Whose columns, for messages.
    """
    ones = block == 1
    if not bool((ones | (block == 0)).all()):
        raise LookHopsError(
            f"{where} have other numbers than 0 and 1 in the {block.shape[1]} columns that the "
            f"model reads as {label!r}: they were one-hot when it was trained. {AS_NUMBERS}"
        )
    count = ones.sum(1)
    strange = {NO_VALUE: int((count == 0).sum()), SEVERAL: int((count > 1).sum())}
    codes = torch.where(count == 1, ones.int().argmax(1), block.shape[1])
    return codes, {what: rows for what, rows in strange.items() if rows}
