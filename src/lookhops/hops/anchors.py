"""The anchors: what the paper's figure aggregates, and its two readings, merge and score."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from lookhops.hops import kernels
from lookhops.hops.along import along
from lookhops.hops.product import SparseMatrix, _flatten, multiply

Recurrence = Callable[[Callable[[Tensor], Tensor], Tensor, int], Iterator[Tensor]]
#: The most hops that are merged as powers of the operator: Chebyshev's coefficients sum to 41 at
#: k = 5, so that float32 still has five digits; they more than double with every further hop.
MOST_HOPS = 5


def chebyshev(step: Callable[[Tensor], Tensor], z: Tensor, k: int) -> Iterator[Tensor]:
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


def powers(step: Callable[[Tensor], Tensor], z: Tensor, k: int) -> Iterator[Tensor]:
    r"""Yield :math:`z, A z, \ldots, A^k z`; arguments as for :func:`chebyshev`."""
    yield z
    for _ in range(k):
        z = step(z)
        yield z


class Anchors:
    r"""The anchor vectors :math:`Z = [Z^0 \| \ldots \| Z^k]`, :math:`Z^j = T_j z`, of every node.

    One tensor of shape :math:`(\ldots, n, k + 1, d')`, two readings: the convolution **merges** it
    channel by channel, the pooling **scores** it. Neither needs the tensor: both readings are
    linear in :math:`z`, and :math:`T_j(A)^\top = T_j(A^\top)`, so they run along the recurrence
    forwards and backwards and keep only :math:`z`.

    Args:
        recurrence: :func:`chebyshev` or :func:`powers`.
        matrix: The operator :math:`A` of one hop.
        z: The projected features, shape :math:`(\ldots, n, d')`.
        k: The number of hops.
        offset: A vector :math:`c` of shape :math:`(\ldots, d')` to be added to every row of
            :math:`z`: a bias that fast kernels add as they read.
    """

    def __init__(
        self,
        recurrence: Recurrence,
        matrix: SparseMatrix,
        z: Tensor,
        k: int,
        offset: Tensor | None = None,
    ) -> None:
        self.recurrence = recurrence
        self.matrix = matrix
        self.z = z
        self.k = k
        self.offset = offset

    @property
    def start(self) -> Tensor:
        """The anchors of no hop, z with its offset."""
        if self.offset is None:
            return self.z
        return self.z + self.offset.to(self.z.dtype).unsqueeze(-2)

    @property
    def shape(self) -> torch.Size:
        r"""Shape of the tensor that they stand for, :math:`(\ldots, n, k + 1, d')`."""
        return torch.Size((*self.z.shape[:-1], self.k + 1, self.z.shape[-1]))

    def stack(self) -> Tensor:
        r"""The anchors themselves, shape :math:`(\ldots, n, k + 1, d')`."""
        return torch.stack(
            list(self.recurrence(self.matrix.__matmul__, self.start, self.k)), dim=-2
        )

    def merge(self, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        r""":math:`\sum_j z_i^j \odot w^j + b` for every node, shape :math:`(\ldots, n, d')`.

        Args:
            weight: The :math:`w^j`, shape :math:`(\ldots, k + 1, d')`.
            bias: The :math:`b`, shape :math:`(\ldots, d')`.
        """
        weight, value = weight.to(self.z.dtype), self.matrix.value
        bias = torch.zeros_like(weight[..., 0, :]) if bias is None else bias.to(self.z.dtype)
        if value is not None and value.requires_grad:  # learnt edge weights: the long way round
            total = bias.unsqueeze(-2)
            for j, hop in enumerate(self.recurrence(self.matrix.__matmul__, self.start, self.k)):
                total = total + weight[..., j, None, :] * hop
            return total
        value = None if value is None else value.to(self.z.dtype)
        recurrence = self.recurrence
        if recurrence is not powers and _folds(weight):
            recurrence, weight = powers, in_powers(recurrence, weight)
        z, offset = self.z, self.offset
        if offset is not None and not kernels.merge_fits(z, weight):
            z, offset = self.start, None
        return _Merge.apply(z, weight, bias, offset, value, recurrence, *self.matrix.entries())

    def score(self, theta: Tensor) -> Tensor:
        r""":math:`\sum_j \theta^j \cdot z_i^j` for every node, shape :math:`(\ldots, n)`.

        Channels are summed before the hops are taken, so it costs :math:`k + 1` channels, not d'.

        Args:
            theta: The attention weights :math:`\theta^j`, shape :math:`(\ldots, k + 1, d')`.
        """
        theta = theta.to(self.z.dtype)
        # Shape (..., n, k + 1): column j awaits T_j.
        summed = along(self.z, theta).mT
        if self.offset is not None:
            constant = theta @ self.offset.to(theta.dtype).unsqueeze(-1)
            summed = summed + constant.mT
        hops = self.recurrence(self.matrix.__matmul__, summed, self.k)
        return sum(hop[..., j] for j, hop in enumerate(hops))  # type: ignore[return-value]


def in_powers(recurrence: Recurrence, weight: Tensor) -> Tensor:
    r"""The weights :math:`v` with :math:`\sum_j v^j A^j = \sum_j w^j T_j`, shaped like :math:`w`.

    Whatever a recurrence makes of matrices it makes of polynomials, where a hop is a shift.
    """
    one = torch.eye(weight.shape[-2], dtype=weight.dtype, device=weight.device)[0]
    basis = torch.stack(list(recurrence(lambda p: p.roll(1), one, weight.shape[-2] - 1)))
    return (basis.mT.unsqueeze(-1) * weight.unsqueeze(-3)).sum(-2)


def _folds(weight: Tensor) -> bool:
    """Whether to merge powers, not the recurrence's own hops: a pass over memory less for each."""
    exact = weight.dtype in (torch.float32, torch.float64)  # bfloat16 has no digit to spare
    return exact and weight.shape[-2] <= MOST_HOPS + 1 and weight.device.type == "cpu"


class _Merge(torch.autograd.Function):
    """The merge, keeping only z: its gradient runs the same recurrence over the transpose."""

    @staticmethod
    def forward(  # type: ignore[no-untyped-def]
        ctx, z, weight, bias, offset, value, recurrence, *entries
    ):
        ctx.save_for_backward(z, weight, offset, value, *entries)
        ctx.recurrence = recurrence
        row_ptr, column = entries[:2]
        return merge_along(recurrence, row_ptr, column, value, z, weight, bias, offset=offset)[0]

    @staticmethod
    def backward(ctx, grad):  # type: ignore[no-untyped-def]
        z, weight, offset, value, _, _, row_ptr_t, column_t, order = ctx.saved_tensors
        value_t = value if value is None or order is None else value.index_select(0, order)
        grad_z, sums = merge_along(
            ctx.recurrence,
            row_ptr_t,
            column_t,
            value_t,
            grad.contiguous(),
            weight,
            other=z,
            offset=offset,
        )
        assert sums is not None
        count = weight.shape[-2]
        grad_bias, grad_weight, grad_offset = sums.to(weight.dtype).split((1, count, 1), dim=-2)
        vector = (*weight.shape[:-2], weight.shape[-1])
        return (
            grad_z,
            grad_weight.sum_to_size(weight.shape),
            grad_bias.squeeze(-2).sum_to_size(vector),
            None if offset is None else grad_offset.squeeze(-2).sum_to_size(vector),
            *[None] * 7,
        )


def merge_along(
    recurrence: Recurrence,
    row_ptr: Tensor,
    column: Tensor,
    value: Tensor | None,
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    other: Tensor | None = None,
    offset: Tensor | None = None,
) -> tuple[Tensor, Tensor | None]:
    r"""Run a recurrence from ``x`` and merge it on the way, without gradient.

    Never more than two hops are alive. Returns :math:`\sum_j T_j x \odot w^j + b` and, where
    ``other`` is given, what a backward pass wants beside it: the sums over nodes of :math:`x`, of
    every :math:`T_j x \odot` ``other``, and of the result, shape :math:`(\ldots, k + 3, d')`. The
    ``offset`` is added to every row of ``x``, or of ``other`` where there is one.
    """
    if x.is_cuda and kernels.merge_fits(x, weight):
        order = 2.0 if recurrence is chebyshev else 1.0
        return kernels.merge(order, row_ptr, column, value, x, weight, bias, other, offset)
    if offset is not None and other is not None:
        other = other + offset.unsqueeze(-2)
    elif offset is not None:
        x = x + offset.unsqueeze(-2)
    total: Tensor | None = None
    sums = [] if other is None else [x.sum(-2)]
    step = _step(row_ptr, column, value)
    for j, hop in enumerate(recurrence(step, x, weight.shape[-2] - 1)):
        part = weight[..., j, None, :]
        if total is not None and torch.compiler.is_compiling():
            # PyTorch 2.11 loses the gradient of what a compiled forward changes in place.
            total = torch.addcmul(total, part, hop)
        elif total is not None:
            total.addcmul_(part, hop)
        elif bias is not None:
            total = torch.addcmul(bias.unsqueeze(-2), part, hop)
        else:
            total = part * hop
        if other is not None:
            sums.append(_products_summed(other, hop))
    assert total is not None
    if other is not None:
        # Without an offset nobody asks for the sum of the result.
        sums.append(torch.zeros_like(sums[0]) if offset is None else total.sum(-2))
    return total, torch.stack(sums, dim=-2) if sums else None


def _products_summed(x: Tensor, y: Tensor) -> Tensor:
    r"""The sum over nodes of :math:`x \odot y`, shape (..., d')."""
    on_cpu = x.device.type == "cpu" and x.dtype in (torch.float32, torch.float64)
    second = torch.is_grad_enabled()  # a second derivative is wanted, which the kernel has not
    if second or torch.compiler.is_compiling() or not on_cpu or x.dim() != 2 or x.shape != y.shape:
        return (x * y).sum(-2)
    return ProductSums(x)(y)[0]


class ProductSums:
    r"""The sums over nodes of :math:`x \odot y` for one x and one y after the other.

    The same sum is the gradient of a layer norm's weight, for which there is a kernel that makes no
    (n, d') product on the way: with mean zero and deviation one nothing else is in it. The
    gradient of its bias is the sum of y.
    """

    def __init__(self, x: Tensor) -> None:
        self.x = x
        self.mean, self.one = x.new_zeros(len(x), 1), x.new_ones(len(x), 1)
        self.weight = x.new_ones(x.shape[1])

    def __call__(self, y: Tensor, with_sum: bool = False) -> tuple[Tensor, Tensor]:
        """The sum of the products with y, and where it is asked for the sum of y."""
        _, products, total = torch.ops.aten.native_layer_norm_backward(
            y,
            self.x,
            self.x.shape[1:],
            self.mean,
            self.one,
            self.weight,
            self.weight,
            [False, True, with_sum],
        )
        return products, total


def _step(row_ptr: Tensor, column: Tensor, value: Tensor | None) -> Callable[[Tensor], Tensor]:
    """One hop over bare tensors, for use where autograd does not look."""

    def step(x: Tensor) -> Tensor:
        flat, restore = _flatten(x, row_ptr.numel() - 1)
        return restore(multiply(row_ptr, column, value, flat))

    return step
