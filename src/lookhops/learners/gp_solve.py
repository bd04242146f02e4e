"""The arithmetic of a Gaussian process: weights by the evidence, the solve, leave-one-out answers.

All follows from kernels and targets; nothing here knows of graphs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import log
from typing import NamedTuple

import numpy as np
import torch
from scipy.linalg import lapack
from torch import Tensor
from torch.nn.functional import one_hot

from lookhops.core.errors import LookHopsError
from lookhops.core.tensors import Expected, Saved, numbers, positive, saved

#: Bounds of the logarithm of a weight, and where the search begins.
LOWEST, HIGHEST, START = -12.0, 4.0, -2.0
#: The noise is never below this share of the targets' variance.
LEAST_NOISE = 1e-4
#: How strongly logarithms of weights are pulled to 0, beside the evidence of one graph.
PULL = 1e-3
#: Steps of the search.
STEPS = 60
#: Added to the diagonal of the kernel of inducing graphs, relative to its mean.
JITTER = 1e-8


class Weights(NamedTuple):
    """The positive weight of each kernel, float64, shape (k), and the variance of the noise."""

    kernels: Tensor
    noise: float


class Solution(NamedTuple):
    r"""What a solve finds for targets :math:`y`, shape (n, t)."""

    coefficients: Tensor  # the :math:`\beta`, (m, t), of answers :math:`k(x, Z) \, \beta`
    left_out: Tensor  # the answer to each training graph by a process without it, (n, t)
    left_out_variance: Tensor  # that of these answers, noise included, shape (n)


def evidence(kernels: Tensor, targets: Tensor, log_weights: Tensor) -> tuple[float, Tensor]:
    r"""The negative logarithm of the marginal likelihood per number, and its gradient.

    With :math:`C = \sum_j w_j K_j + (w_0 + 10^{-4}) I`,

    .. math::
        \frac{1}{n t} \sum_{y} \Big( \tfrac12 y^\top C^{-1} y + \tfrac12 \log |C| \Big)
        + \frac{10^{-3}}{k + 1} \sum_j (\log w_j)^2.

    Args:
        kernels: Shape (k, n, n).
        targets: Standardised, shape (n, t).
        log_weights: Those of the kernels, then the noise's, shape (k + 1).
    """
    count, numbers = len(targets), targets.numel()
    weights = log_weights.exp()
    covariance = torch.tensordot(weights[:-1], kernels, 1)
    covariance.diagonal().add_(weights[-1] + LEAST_NOISE)
    factor, failed = torch.linalg.cholesky_ex(covariance)
    if failed:
        return float("inf"), torch.zeros_like(log_weights)
    solved = torch.cholesky_solve(targets, factor)
    value = 0.5 * (targets * solved).sum() + targets.shape[1] * factor.diagonal().log().sum()
    # The gradient for w_j is the sum of the entries of K_j times those of this matrix.
    slope = torch.cholesky_inverse(factor).mul_(targets.shape[1]).addmm_(solved, solved.T, alpha=-1)
    slopes = torch.cat((kernels.flatten(1) @ slope.flatten(), slope.trace()[None]))
    gradient = 0.5 * weights * slopes / numbers + 2 * PULL * log_weights / len(log_weights)
    return float(value / numbers + PULL * log_weights.square().mean()), gradient * (count > 0)


def weights_by_evidence(kernels: Tensor, targets: Tensor) -> Weights:
    """The weights that maximise the :func:`evidence`, by L-BFGS with bounds, from equal ones."""
    from scipy.optimize import minimize

    def loss(log_weights: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = evidence(kernels, targets, torch.from_numpy(log_weights))
        return value, gradient.numpy()

    start = np.full(len(kernels) + 1, START)
    bounds = [(LOWEST, HIGHEST)] * len(start)
    found = minimize(
        loss, start, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": STEPS}
    )
    weights = torch.from_numpy(np.exp(found.x))
    return Weights(weights[:-1], float(weights[-1]) + LEAST_NOISE)


def solve(covariance: Tensor, targets: Tensor) -> Solution:
    r"""Solve :math:`C \beta = y`, and leave each graph out in closed form.

    Without graph :math:`i` the answer to it is :math:`y_i - \beta_i / (C^{-1})_{ii}`, its variance
    :math:`1 / (C^{-1})_{ii}`. All is done in the memory of the covariance, which is overwritten.

    Args:
        covariance: :math:`C` with the noise on its diagonal, float64, contiguous, shape (n, n).
        targets: Shape (n, t).
    """
    lower = covariance.numpy().T  # in LAPACK's order, as a view
    lower, failed = lapack.dpotrf(lower, lower=1, clean=0, overwrite_a=1)
    if failed:
        raise LookHopsError("The kernel of the training graphs is singular; add noise.")
    solved, _ = lapack.dpotrs(lower, targets.numpy(), lower=1)
    inverse, _ = lapack.dtrtri(lower, lower=1, overwrite_c=1)
    upper = np.asarray(inverse.T)
    diagonal = np.array([row[i:] @ row[i:] for i, row in enumerate(upper)])
    coefficients = torch.from_numpy(np.ascontiguousarray(solved))
    variance = 1 / torch.from_numpy(diagonal)
    return Solution(coefficients, targets - coefficients * variance[:, None], variance)


def solve_inducing(
    inducing: Tensor,
    blocks: Callable[[], Iterable[tuple[slice, Tensor]]],
    targets: Tensor,
    noise: float,
) -> Solution:
    r"""Solve with the kernel replaced by :math:`K_{nm} K_{mm}^{-1} K_{mn}` of m inducing graphs.

    With :math:`K_{mm} = L L^\top`, :math:`A = K_{nm} L^{-\top}` and
    :math:`B = A^\top A + \sigma^2 I`, the coefficients of the inducing graphs are
    :math:`L^{-\top} B^{-1} A^\top y`. With :math:`q_i = a_i^\top B^{-1} a_i` the answer to graph i
    without it is :math:`y_i - (y_i - f_i) / (1 - q_i)`.

    Args:
        inducing: :math:`K_{mm}` without noise, shape (m, m).
        blocks: Gives rows of :math:`K_{nm}` and their numbers; is called twice.
        targets: Shape (n, t).
        noise: :math:`\sigma^2`.
    """
    inducing = inducing.clone()
    inducing.diagonal().add_(JITTER * float(inducing.diagonal().mean()) + 1e-12)
    lower = torch.linalg.cholesky(inducing)
    inner = noise * torch.eye(len(lower), dtype=torch.float64)
    right = torch.zeros(len(lower), targets.shape[1], dtype=torch.float64)
    for part, rows in blocks():
        whitened = torch.linalg.solve_triangular(lower, rows.T, upper=False)
        inner.addmm_(whitened, whitened.T)
        right.addmm_(whitened, targets[part])
    factor = torch.linalg.cholesky(inner)
    solved = torch.cholesky_solve(right, factor)
    left_out, variance = torch.empty_like(targets), torch.empty(len(targets), dtype=torch.float64)
    for part, rows in blocks():
        whitened = torch.linalg.solve_triangular(lower, rows.T, upper=False)
        answer = whitened.T @ solved
        leverage = torch.linalg.solve_triangular(factor, whitened, upper=False).square().sum(0)
        left_out[part] = targets[part] - (targets[part] - answer) / (1 - leverage)[:, None]
        variance[part] = noise / (1 - leverage)
    coefficients = torch.linalg.solve_triangular(lower.T, solved, upper=True)
    return Solution(coefficients, left_out, variance)


@dataclass(frozen=True, eq=False)
class TargetProcess(Saved):
    """The process of one target; classes have a channel each.

    Weights of the kernels, and the ``noise``, are for targets of variance 1: answers are multiplied
    by the ``spread``, and the ``mean`` is added. Coefficients are those of the reference graphs, 0
    where the target is not ``known``.
    """

    weights: Tensor = saved(numbers("kernels", low=0))
    noise: Tensor = saved(positive())
    mean: Tensor = saved(numbers("channels"))
    spread: Tensor = saved(positive())
    coefficients: Tensor = saved(numbers("graphs", "channels"))
    known: Tensor = saved(Expected(("graphs",), "bool"))

    def outputs(self, standardised: Tensor) -> Tensor:
        """Log-probabilities of classes, or numbers in the target's units."""
        return self.scores(standardised)

    def scores(self, standardised: Tensor) -> Tensor:
        """Numbers in the target's units, or logits of classes, which are linear in these."""
        return self.mean + self.spread * standardised

    @property
    def score_scale(self) -> Tensor:
        """What :meth:`scores` multiplies by."""
        return self.spread


@dataclass(frozen=True, eq=False)
class ClassProcess(TargetProcess):
    r"""That of classes, whose logits are :math:`a f + b` of the answers :math:`f` to indicators."""

    slope: Tensor = saved(positive())
    offsets: Tensor = saved(numbers("channels"))

    def outputs(self, standardised: Tensor) -> Tensor:
        return self.scores(standardised).log_softmax(1)

    def scores(self, standardised: Tensor) -> Tensor:
        return self.slope * super().scores(standardised) + self.offsets

    @property
    def score_scale(self) -> Tensor:
        return self.spread * self.slope


def fit_link(left_out: Tensor, classes: Tensor, balanced: bool = False) -> tuple[Tensor, Tensor]:
    r"""The likeliest :math:`a` and :math:`b` of :math:`p = \mathrm{softmax}(a f + b)`, by class.

    They follow from leave-one-out answers to the indicators (0 or 1) of classes, (n, classes);
    offsets are pulled slightly to the classes' shares. Balanced classes have the same weight,
    however rare they are.
    """
    from scipy.optimize import minimize

    count, kinds = left_out.shape
    counts = classes.bincount(minlength=kinds).double()
    weight = counts.new_full((count, 1), 1 / count)
    if balanced:
        weight = (counts[classes] * (counts > 0).sum()).reciprocal()[:, None]
        counts = (counts > 0).double()
    usual = ((counts + 0.5) / (counts.sum() + 0.5 * kinds)).log()
    truth = one_hot(classes, kinds).double()

    def loss(values: np.ndarray) -> tuple[float, np.ndarray]:
        slope, offsets = float(np.exp(values[0])), torch.from_numpy(values[1:])
        log_p = (slope * left_out + offsets).log_softmax(1)
        apart = (log_p.exp() - truth) * weight
        away = offsets - usual
        value = -(log_p * truth * weight).sum() + PULL * away.square().mean()
        by_offset = apart.sum(0) + 2 * PULL * away / kinds
        by_slope = slope * (apart * left_out).sum()
        return float(value), np.append(float(by_slope), by_offset.numpy())

    start = np.append(log(4.0), usual.numpy())
    bounds = [(log(0.1), log(100.0)), *[(-20.0, 20.0)] * kinds]
    found = torch.from_numpy(minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds).x)
    return torch.tensor(np.exp(float(found[0])), dtype=torch.float64), found[1:]
