"""Points and weights of numerical integration."""

from __future__ import annotations

from functools import cache

import numpy as np


@cache
def gauss_legendre(points: int) -> tuple[tuple[float, float], ...]:
    """Gauss and Legendre's points from 0 to 1, each with its weight; the weights add up to 1."""
    place, weight = np.polynomial.legendre.leggauss(points)
    return tuple(zip(((place + 1) / 2).tolist(), (weight / 2).tolist(), strict=True))
