"""The type of NumPy arrays, and points of integrals."""

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
