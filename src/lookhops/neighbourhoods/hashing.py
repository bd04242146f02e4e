"""64-bit hashing on whole tensors, with the same result on every machine, device and PyTorch.

Only additions, multiplications, shifts and bitwise operations of int64 are used; they wrap around
modulo 2^64 everywhere.
"""

from __future__ import annotations

import torch
from torch import Tensor


def _signed(word: int) -> int:
    """The int64 with the same 64 bits."""
    return word - (1 << 64) if word >> 63 else word


# The finaliser of splitmix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators).
_ROUNDS = ((30, _signed(0xBF58476D1CE4E5B9)), (27, _signed(0x94D049BB133111EB)))
_LAST_SHIFT = 31

#: An odd number without structure, 2^64 divided by the golden ratio.
GOLDEN = _signed(0x9E3779B97F4A7C15)


def mix(x: Tensor) -> Tensor:
    """A one-to-one map of int64 onto itself whose values look random, element by element."""
    x = x.clone()  # one buffer for all steps: fresh memory costs more than the arithmetic
    for shift, factor in _ROUNDS:
        x.bitwise_xor_(_shifted(x, shift)).mul_(factor)
    return x.bitwise_xor_(_shifted(x, _LAST_SHIFT))


def combine(first: Tensor, second: Tensor) -> Tensor:
    r"""A hash of the ordered pairs of two tensors of int64: ``mix(GOLDEN * first + second)``.

    ``first`` must be values of :func:`mix`, or one constant; ``second`` may be anything.
    """
    return mix(first * GOLDEN + second)


def hash_rows(columns: Tensor | None, rows: int, device: torch.device) -> Tensor:
    """One hash for each row of whole numbers, shape (rows); one constant without any columns."""
    hashed = torch.full((rows,), GOLDEN, device=device)
    for column in () if columns is None else columns.unbind(1):
        hashed = combine(hashed, column.long())
    return hashed


def _shifted(x: Tensor, bits: int) -> Tensor:
    """Shifted to the right with zeros coming in, where ``>>`` alone repeats the sign bit."""
    return (x >> bits).bitwise_and_((1 << (64 - bits)) - 1)
