"""64-bit hashing on whole tensors, with the same result on every machine, device and PyTorch.

Only additions, multiplications, shifts and bitwise operations of int64 are used; they wrap around
modulo 2^64 everywhere.
"""

from __future__ import annotations

import torch
from torch import Tensor


def signed(word: int) -> int:
    """The int64 with the same 64 bits."""
    return (word + (1 << 63)) % (1 << 64) - (1 << 63)


#: The factors of splitmix64's finaliser (Steele, Lea, Flood: Fast splittable pseudorandom number
#: generators), and its increment, 2^64 over the golden ratio: an odd number without structure.
MIX_1, MIX_2, GAMMA = 0xBF58476D1CE4E5B9, 0x94D049BB133111EB, 0x9E3779B97F4A7C15
GOLDEN = signed(GAMMA)
STEPS = ((30, signed(MIX_1)), (27, signed(MIX_2)))


def mix_(x: Tensor) -> Tensor:
    """As :func:`mix`, in place."""
    for shift, factor in STEPS:
        x ^= (x >> shift).bitwise_and_((1 << (64 - shift)) - 1)  # a shift without the sign
        x *= factor
    return x.bitwise_xor_((x >> 31).bitwise_and_((1 << 33) - 1))


def mix(x: Tensor) -> Tensor:
    """A one-to-one map of int64 onto itself whose values look random, element by element."""
    return mix_(x.clone())


def combine(first: Tensor, second: Tensor) -> Tensor:
    r"""A hash of the ordered pairs of two tensors of int64: ``mix(GOLDEN * first + second)``.

    ``first`` must be values of :func:`mix`, or one constant; ``second`` may be anything.
    """
    return mix_(first * GOLDEN + second)


def hash_rows(columns: Tensor | None, rows: int, device: torch.device) -> Tensor:
    """One hash for each row of whole numbers, shape (rows); one constant without any columns."""
    hashed = torch.full((rows,), GOLDEN, device=device)
    for column in () if columns is None else columns.unbind(1):
        hashed = combine(hashed, column.long())
    return hashed
