"""Polynomials of one hop: the recurrences of Chebyshev and of powers, and weighted sums of them."""

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


def entry_factors(recurrence: Recurrence, weight: Tensor) -> dict[tuple[int, int], Tensor]:
    r"""How the entries of :math:`A` take part in :math:`\sum_j w^j T_j(A)`: factors of a gradient.

    A polynomial's difference quotient says what a change of :math:`A` does to it,

    .. math::
        \sum_j w^j \frac{T_j(x) - T_j(y)}{x - y} = \sum_{a + b < k} m^{ab}\, T_a(x)\, T_b(y)

    with :math:`m^{ab} = w^{a+b+1}` for powers, and for Chebyshev polynomials
    :math:`m^{ab} = c_a c_b (w^{a+b+1} + w^{a+b+3} + \ldots)`, :math:`c_0 = 1` and 2 otherwise.
    Gives the :math:`m^{ab}`, shape :math:`(\ldots, d')`, by :math:`(a, b)`.
    """
    parts, k = alternate_sums(recurrence, weight).unbind(-2), weight.shape[-2] - 1
    double = 2 if recurrence is chebyshev else 1
    return {
        (a, b): parts[a + b + 1] * double ** ((a > 0) + (b > 0))
        for b in range(k)
        for a in range(k - b)
    }


def alternate_sums(recurrence: Recurrence, weight: Tensor) -> Tensor:
    r"""For Chebyshev polynomials :math:`w^j + w^{j+2} + \ldots`, for powers :math:`w^j` alone."""
    if recurrence is not chebyshev or weight.shape[-2] <= 3:  # of two hops each sum has one term
        return weight
    parts = list(weight.unbind(-2))
    for j in range(len(parts) - 3, 0, -1):
        parts[j] = parts[j] + parts[j + 2]
    return torch.stack(parts, dim=-2)
