"""The type of NumPy arrays, points of integrals, and how numbers are written."""

import math
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


@cache
def gauss_legendre(points: int) -> tuple[tuple[float, float], ...]:
    """Gauss and Legendre's points from 0 to 1, each with its weight; the weights add up to 1."""
    position, weight = np.polynomial.legendre.leggauss(points)
    return tuple(zip(((position + 1) / 2).tolist(), (weight / 2).tolist(), strict=True))


def resolving(values: Array, intervals: Array | None = None) -> str:
    """A format of numbers with as many digits, 6 to 17, as they have.

    It tells hundred-thousandths of an interval's width apart, or of the numbers' deviation:
    ``1700000003.1417`` where intervals are 8 wide, ``-3.14159`` of solubilities.

    Args:
        values: The numbers, shape (n).
        intervals: The lower and upper end of an interval for each, shape (n, 2).
    """
    finite = values[np.isfinite(values)]
    ends = np.empty((0, 2)) if intervals is None else intervals[np.isfinite(intervals).all(1)]
    largest = np.abs(finite).max(initial=0)
    width = np.median(ends[:, 1] - ends[:, 0]) if len(ends) else finite.std() if len(finite) else 0
    width = width or min(largest, 1000)
    digits = 5 + math.ceil(math.log10(largest / width)) if largest else 6
    return f"%.{min(max(digits, 6), 17)}g"
