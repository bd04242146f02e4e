"""Polynomials of one hop: the recurrences of Chebyshev and of powers, and weighted sums of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import torch
from torch import Tensor

#: One hop, :math:`x \mapsto A x`.
Step = Callable[[Tensor], Tensor]
Recurrence = Callable[[Step, Tensor, int], Iterator[Tensor]]


def chebyshev(step: Step, z: Tensor, k: int) -> Iterator[Tensor]:
    r"""Yield :math:`T_0 z, \ldots, T_k z` with :math:`T_j = 2 A T_{j-1} - T_{j-2}`.

    Args:
        step: One hop, :math:`x \mapsto A x`.
        z: What is propagated.
        k: The number of hops.
    """
    yield z
    if k == 0:
        return
    before, now = z, step(z)
    yield now
    for _ in range(k - 1):
        before, now = now, torch.lerp(before, step(now), 2.0)  # 2 step(now) - before, in one pass
        yield now


def powers(step: Step, z: Tensor, k: int) -> Iterator[Tensor]:
    r"""Yield :math:`z, A z, \ldots, A^k z`; arguments as for :func:`chebyshev`."""
    yield z
    for _ in range(k):
        z = step(z)
        yield z


def polynomial_sum(recurrence: Recurrence, step: Step, terms: Sequence[Tensor]) -> Tensor:
    r""":math:`\sum_j T_j c_j` in as many hops as the highest :math:`T_j` takes.

    Horner's rule for powers, highest power first, :math:`s_j = c_j + A s_{j+1}`, and for Chebyshev
    polynomials Clenshaw's, :math:`s_j = c_j + 2 A s_{j+1} - s_{j+2}`, whose last step is single.

    Args:
        recurrence: :func:`chebyshev` or :func:`powers`.
        step: One hop, :math:`x \mapsto A x`.
        terms: The :math:`c_0, \ldots, c_k`, of one shape.
    """
    now, before = terms[-1], None
    for j in range(len(terms) - 2, -1, -1):
        double = recurrence is chebyshev and j > 0
        after = torch.add(terms[j], step(now), alpha=2 if double else 1)
        if before is not None:
            after = after - before
        now, before = after, now if recurrence is chebyshev else None
    return now


def in_powers(recurrence: Recurrence, weight: Tensor) -> Tensor:
    r"""The weights :math:`v` with :math:`\sum_j v^j A^j = \sum_j w^j T_j`, shaped like :math:`w`.

    Whatever a recurrence makes of matrices it makes of polynomials, where a hop is a shift.
    """
    one = torch.eye(weight.shape[-2], dtype=weight.dtype, device=weight.device)[0]
    basis = torch.stack(list(recurrence(lambda p: p.roll(1), one, weight.shape[-2] - 1)))
    return basis.mT @ weight
