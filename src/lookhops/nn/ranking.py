"""Which are the best of their graph: decided alike in every batch, on every device.

Scores that are equal by the formula differ by rounding, and rounding depends on what else is in a
batch. So scores that differ from the last one that is kept by no more than rounding may be equal to
it, and their order in the graph decides.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from lookhops.hops.kernels import can_run_on
from lookhops.hops.product import group
from lookhops.nn import kernels
from lookhops.nn.level import Level


def nearness(dtype: torch.dtype) -> float:
    """How far apart scores count as equal, as a share of what they were computed from.

    A hundred roundings of float32 (0.000012), or of float64: layers before the scores add theirs.
    """
    return 100 * min(torch.finfo(dtype).eps, torch.finfo(torch.float32).eps)


def top_of_each(
    score: Tensor,
    segment: Tensor,
    num_segments: int,
    ratio: float,
    alive: Tensor | None = None,
    size: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    r"""The :math:`\lceil \rho m \rceil` highest scores among the :math:`m` of each segment.

    With :math:`c` the lowest of these, scores from :math:`c - \epsilon` to :math:`c + \epsilon`
    count as equal, :math:`\epsilon` being :func:`nearness` times the largest size of the segment.
    Of equal scores the earlier one ranks higher. Nothing depends on other segments.

    Args:
        score: Shape :math:`(n)`.
        segment: Segment of each element, shape :math:`(n)`.
        num_segments: How many segments there are.
        ratio: The fraction :math:`\rho` to keep.
        alive: Which elements count at all; none means all.
        size: How large the numbers are from which a score was computed, and whose rounding it
            therefore has, shape :math:`(n)`; none means as large as the score.

    Returns:
        The elements by segment and falling score, and which places of that order are kept.
    """
    score = score.detach()
    size = (score if size is None else size.detach()).abs()
    if alive is not None:
        score, size = torch.where(alive, score, -torch.inf), torch.where(alive, size, 0)
    start, order = ranked(score, segment, num_segments)
    count = start.diff().long()
    if alive is not None:
        count = torch.zeros_like(count).index_add(0, segment, alive.long())
    # Forgive the rounding of ratio * n: 0.7 of 10 is 7, not 7.000000000000001.
    wanted = (count.double() * ratio - 1e-7).ceil().int()
    end = start[:-1] + wanted
    if score.numel():
        score = torch.where(score.isnan(), torch.inf, score)
        cut = score.index_select(0, order.index_select(0, (end - 1).clamp(min=0)))
        cut = cut.index_select(0, segment)
        reach = nearness(score.dtype) * _largest(size, segment, num_segments)
        near = (score >= cut - reach) & (score <= cut + reach)
        near = near if alive is None else near & alive
        if not (on_cpu(score) and torch.equal(score[near], cut[near])):
            _, order = ranked(torch.where(near, cut, score), segment, num_segments)
    place = torch.arange(segment.numel(), device=segment.device)
    return order, place < end.index_select(0, segment.index_select(0, order))


def _largest(size: Tensor, segment: Tensor, num_segments: int) -> Tensor:
    """For each element the largest finite size of its segment."""
    size = torch.where(size.isfinite(), size, 0)
    largest = size.new_zeros(num_segments).scatter_reduce(0, segment.long(), size, "amax")
    return largest.index_select(0, segment)


def on_cpu(x: Tensor) -> bool:
    """Whether what follows may be computed by NumPy."""
    return x.device.type == "cpu" and not torch.compiler.is_compiling()


def ranked(score: Tensor, segment: Tensor, num_segments: int) -> tuple[Tensor, Tensor]:
    """The elements by segment and falling score: where each segment starts, and that order."""
    here = on_cpu(score)
    bits = max(score.numel() - 1, 1).bit_length() if here else 0
    if here and score.dtype == torch.float32 and bits + num_segments.bit_length() <= 31:
        # Segment, score and place packed into one number: sorting those is many times as fast as
        # sorting places by their scores, and no two are equal. Floats order as the integers of the
        # same bits do, those below zero backwards; -0.0 is made 0.0 first, and every NaN the one
        # above all numbers.
        score = torch.where(score.isnan(), torch.nan, score + 0.0).view(torch.int32)
        rising = score ^ ((score >> 31) & 0x7FFFFFFF)
        key = (segment.long() << 32) | (0x7FFFFFFF - rising.long())
        key = (key << bits) | torch.arange(score.numel(), device=score.device)
        key = torch.from_numpy(np.sort(key.numpy()))
        numbers = torch.arange(num_segments + 1, device=score.device) << (32 + bits)
        start = torch.searchsorted(key, numbers, out_int32=True)
        return start, key & ((1 << bits) - 1)
    order = score.argsort(descending=True, stable=True)
    start, by_segment = group(segment.index_select(0, order), num_segments)
    return start, order.index_select(0, by_segment)


def keep_top(level: Level, score: Tensor, ratio: float, size: Tensor | None = None) -> Tensor:
    """Which nodes are among the best of their graph by :func:`top_of_each`, shape (n)."""
    score = score.detach()
    if can_run_on(score):
        start, end = level.bounds
        near = nearness(score.dtype)
        return kernels.keep_top(score, size, level.graph, start, end, level.alive, ratio, near)
    if on_cpu(score) and score.dtype == torch.float32 and level.alive is None and score.numel():
        size = score if size is None else size.detach()
        start, end = (own.numpy() for own in level.bounds)
        return torch.from_numpy(_keep_top(score.numpy(), size.numpy(), start, end, ratio))
    order, kept = top_of_each(score, level.graph, level.num_graphs, ratio, level.alive, size)
    return torch.zeros_like(kept).scatter(0, order, kept)


def _keep_top(
    score: np.ndarray, size: np.ndarray, start: np.ndarray, end: np.ndarray, ratio: float
) -> np.ndarray:
    """As :func:`top_of_each`, in one sort of bare numbers: only who stays is asked for, no order.

    What is above the last one that is kept by more than rounding stays; of those that may be equal
    to it the first do, as many as there is room for. A NaN counts as infinity.
    """
    start, count = start[end > start], (end - start)[end > start]  # graphs that have nodes
    wanted = np.ceil(count * ratio - 1e-7).astype(np.int64)
    score = np.where(np.isnan(score), np.float32(np.inf), score + np.float32(0))  # no -0.0
    # Graph and score packed into one number, which is sorted many times as fast as two.
    rising = _ordered(score.view(np.int32))
    key = np.repeat(np.arange(len(count)) << 32, count) | (0x7FFFFFFF - rising.astype(np.int64))
    key.sort()
    last = 0x7FFFFFFF - (key[start + np.maximum(wanted, 1) - 1] & 0xFFFFFFFF)
    cut = _ordered(last.astype(np.int32)).view(np.float32)
    finite = np.where(np.isfinite(size), np.abs(size), np.float32(0))
    reach = nearness(torch.float32) * np.maximum.reduceat(finite, start)
    above = score > np.repeat(cut + reach, count)
    near = ~above & (score >= np.repeat(cut - reach, count))
    before: np.ndarray = np.cumsum(near) - near
    room = before[start] + wanted - np.add.reduceat(above, start, dtype=np.int64)
    return above | (near & (before < np.repeat(room, count)))


def _ordered(bits: np.ndarray) -> np.ndarray:
    """The bits of floats as integers of the same order, and back: those below zero are turned."""
    return bits ^ ((bits >> 31) & 0x7FFFFFFF)
