"""The light convolution on the CPU: projection, hops and merge in one function; and the score."""

from __future__ import annotations

from functools import lru_cache

import torch
from torch import Tensor

from lookhops.hops.anchors import MOST_HOPS, Anchors, ProductSums, Recurrence, in_powers
from lookhops.hops.lazy import outside_inference
from lookhops.hops.product import SparseMatrix, _flatten, multiply
from lookhops.hops.twin import differentiate


def fits(matrix: SparseMatrix, x: Tensor, *parameters: Tensor) -> bool:
    """Whether :func:`convolve` and :func:`score` take these; the merge weights come last."""
    if x.device.type != "cpu" or x.dim() != 2 or not x.numel() or not matrix.is_constant:
        return False
    kinds = {tensor.dtype for tensor in (x, *parameters)}
    exact = kinds in ({torch.float32}, {torch.float64}) and parameters[-1].dim() == 2
    few = len(parameters[-1]) <= MOST_HOPS + 1
    compiled = torch.compiler.is_compiling() or torch.is_autocast_enabled("cpu")
    return exact and few and not compiled


def convolve(
    recurrence: Recurrence,
    matrix: SparseMatrix,
    x: Tensor,
    projection: Tensor,
    offset: Tensor,
    weight: Tensor,
    bias: Tensor,
) -> tuple[Tensor, Tensor]:
    r""":math:`\sum_j T_j z \odot w^j + b` with :math:`z = x P + c`, and :math:`z`.

    Args:
        recurrence: :func:`~lookhops.hops.chebyshev` or :func:`~lookhops.hops.powers`.
        matrix: The operator of one hop, without gradient.
        x: Node features, shape :math:`(n, d)`.
        projection: :math:`P^\top`, shape :math:`(d', d)`.
        offset: The :math:`c`, shape :math:`(d')`.
        weight: The :math:`w^j`, shape :math:`(k + 1, d')`.
        bias: The :math:`b`, shape :math:`(d')`.
    """
    x, _ = _flatten(x, matrix.pattern.size)  # refuses what does not fit
    return _Convolve.apply(x, projection, offset, weight, bias, matrix, recurrence)


def plain(
    recurrence: Recurrence,
    matrix: SparseMatrix,
    x: Tensor,
    projection: Tensor,
    offset: Tensor,
    weight: Tensor,
    bias: Tensor,
) -> tuple[Tensor, Tensor]:
    """What :func:`convolve` computes."""
    z = torch.nn.functional.linear(x, projection, offset)
    return (Anchors(recurrence, matrix, z, len(weight) - 1).stack() * weight).sum(-2) + bias, z


class _Convolve(torch.autograd.Function):
    """As :func:`plain`, along powers of the operator, each merged as it comes and forgotten."""

    @staticmethod
    def forward(  # type: ignore[no-untyped-def]
        ctx, x, projection, offset, weight, bias, matrix, recurrence
    ):
        folded = (_basis(recurrence, weight).mT @ weight).unbind()
        row_ptr, column = matrix.pattern.row_ptr, matrix.pattern.column
        value = None if matrix.value is None else matrix.value.to(x.dtype)
        z = torch.addmm(offset, x, projection.mT)
        total, hop = torch.addcmul(bias, z, folded[0]), z
        for part in folded[1:]:
            hop = multiply(row_ptr, column, value, hop)
            total.addcmul_(hop, part)
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(x, projection, offset, weight, bias, z)
        ctx.matrix, ctx.recurrence = matrix, recurrence
        return total, z

    @staticmethod
    def backward(ctx, grad, grad_z):  # type: ignore[no-untyped-def]
        x, projection, offset, weight, bias, z = ctx.saved_tensors
        inputs = (x, projection, offset, weight, bias)
        if grad is None and grad_z is None:
            return (None,) * 7
        if torch.is_grad_enabled():  # a second derivative is wanted
            again = plain(ctx.recurrence, ctx.matrix, *inputs)
            return *differentiate(again, inputs, (grad, grad_z)), None, None
        grad_weight = grad_bias = None
        if grad is not None:
            basis = _basis(ctx.recurrence, weight)
            of_z, of_folded, grad_bias = _unmerge(
                ctx.matrix, grad.contiguous(), z, (basis.mT @ weight).unbind()
            )
            grad_weight = basis @ of_folded
            grad_z = of_z if grad_z is None else of_z.add_(grad_z)
        grad_x = grad_z @ projection if ctx.needs_input_grad[0] else None
        return grad_x, grad_z.mT @ x, grad_z.sum(0), grad_weight, grad_bias, None, None


def score(recurrence: Recurrence, matrix: SparseMatrix, z: Tensor, theta: Tensor) -> Tensor:
    r""":math:`\sum_j \theta^j \cdot (T_j z)_i` for every node, shape :math:`(n)`.

    The same as :meth:`~lookhops.hops.Anchors.score`, in fewer steps.

    Args:
        recurrence: :func:`~lookhops.hops.chebyshev` or :func:`~lookhops.hops.powers`.
        matrix: The operator of one hop, without gradient.
        z: Shape :math:`(n, d')`.
        theta: The :math:`\theta^j`, shape :math:`(k + 1, d')`.
    """
    z, _ = _flatten(z, matrix.pattern.size)
    return _Score.apply(z, theta, matrix, recurrence)


class _Score(torch.autograd.Function):
    """Channels are summed first; then one number a node hops, and gathers the next on its way."""

    @staticmethod
    def forward(ctx, z, theta, matrix, recurrence):  # type: ignore[no-untyped-def]
        ctx.save_for_backward(z, theta)
        ctx.matrix, ctx.recurrence = matrix, recurrence
        row_ptr, column = matrix.pattern.row_ptr, matrix.pattern.column
        value = None if matrix.value is None else matrix.value.to(z.dtype)
        # Row j awaits j hops: all take the last one's road, each from its own place on.
        *waiting, total = ((_basis(recurrence, theta).mT @ theta) @ z.mT).unsqueeze(-1).unbind()
        for summed in reversed(waiting):
            total = multiply(row_ptr, column, value, total).add_(summed)
        return total.squeeze(-1)

    @staticmethod
    def backward(ctx, grad):  # type: ignore[no-untyped-def]
        z, theta = ctx.saved_tensors
        if torch.is_grad_enabled():  # a second derivative is wanted
            anchors = Anchors(ctx.recurrence, ctx.matrix, z, len(theta) - 1).stack()
            again = (anchors * theta).sum((-2, -1))
            return *differentiate((again,), (z, theta), (grad,)), None, None
        row_ptr, column, value = _transpose(ctx.matrix, z.dtype)
        hops = [grad.contiguous().unsqueeze(-1)]
        for _ in theta[1:]:
            hops.append(multiply(row_ptr, column, value, hops[-1]))
        basis, back = _basis(ctx.recurrence, theta), torch.cat(hops, dim=1)
        return back @ (basis.mT @ theta), basis @ (back.mT @ z), None, None


def _transpose(matrix: SparseMatrix, dtype: torch.dtype) -> tuple[Tensor, Tensor, Tensor | None]:
    """CSR of the transpose, values included."""
    _, _, row_ptr, column, order = matrix.entries()
    value = None if matrix.value is None else matrix.value.to(dtype)
    if value is not None and order is not None:
        value = value.index_select(0, order)
    return row_ptr, column, value


def _unmerge(
    matrix: SparseMatrix, grad: Tensor, z: Tensor, folded: tuple[Tensor, ...]
) -> tuple[Tensor, Tensor, Tensor]:
    r"""The gradients of :math:`\sum_j A^j z \odot v^j + b` in z, v and b: the way back."""
    row_ptr, column, value = _transpose(matrix, z.dtype)
    summed = ProductSums(z)
    of_first, of_bias = summed(grad, with_sum=True)
    of_z, hop, of_folded = grad * folded[0], grad, [of_first]
    for part in folded[1:]:
        hop = multiply(row_ptr, column, value, hop)
        of_z.addcmul_(hop, part)
        of_folded.append(summed(hop)[0])
    return of_z, torch.stack(of_folded), of_bias


def _basis(recurrence: Recurrence, weight: Tensor) -> Tensor:
    """The polynomials of a recurrence, as many as there are weights, by their coefficients."""
    return _polynomials(recurrence, len(weight), weight.dtype)


@lru_cache
def _polynomials(recurrence: Recurrence, count: int, dtype: torch.dtype) -> Tensor:
    def polynomials() -> Tensor:
        eye = torch.eye(count, dtype=dtype, device="cpu")
        return in_powers(recurrence, eye).mT.contiguous()

    return outside_inference(polynomials)
