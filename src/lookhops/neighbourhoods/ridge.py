"""Ridge regression on sparse rows, for many training parts at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Array = NDArray[np.float32]
#: A residual of this share of the targets changes no prediction that matters.
TOLERANCE = 0.01
MOST_STEPS = 200


def ridge_predictions(rows: csr_array, targets: Array, train: Array, penalty: float) -> Array:
    r"""What ridge regression on each training part predicts for every row, shape (g, p).

    Column :math:`p` is :math:`X w_p` with :math:`w_p` the minimum of
    :math:`\sum_{i \in \mathrm{train}_p} (x_i w - y_{ip})^2 + \lambda |w|^2`. With :math:`w = X^T a`
    and the diagonal matrix :math:`M` of the training part this is :math:`(M X X^T M + \lambda) a =
    M y`, solved by conjugate gradients, all columns in the same products.

    Args:
        rows: The features :math:`X`, shape (g, v).
        targets: The targets :math:`y`, shape (g, p), of mean 0 in their training part: there is no
            constant term.
        train: 1 where a row is in the training part of a column, else 0, shape (g, p).
        penalty: The penalty :math:`\lambda`.
    """
    columns = rows.T.tocsr()
    residual = train * targets
    solution, direction = np.zeros_like(residual), residual.copy()
    length = (residual**2).sum(0)
    enough = TOLERANCE**2 * length
    for _ in range(MOST_STEPS):
        if (length <= enough).all():
            break
        image = train * (rows @ (columns @ direction)) + penalty * direction
        # A column that is all 0 has nothing to solve, and no direction.
        step = length / np.maximum((direction * image).sum(0), np.finfo(np.float32).tiny)
        solution += step * direction
        residual -= step * image
        before, length = length, (residual**2).sum(0)
        direction = residual + length / np.maximum(before, np.finfo(np.float32).tiny) * direction
    predictions: Array = rows @ (columns @ solution)
    return predictions
