# mypy: allow-untyped-defs, allow-incomplete-defs
"""Which nodes are among the best of their graph: counted, nothing is sorted."""

from __future__ import annotations

import torch
from torch import Tensor

from lookhops.hops.kernels import tl, triton

BLOCK = 128  # nodes a program ranks


def keep_top(
    score: Tensor, graph: Tensor, start: Tensor, end: Tensor, alive: Tensor | None, ratio: float
) -> Tensor:
    """Which nodes are among the ceil(ratio n) best of their graph's n living ones.

    A node's rank is the number of nodes of its graph that beat it: counted, nothing is sorted.
    """
    keep = torch.empty_like(score, dtype=torch.bool)
    _keep_kernel[(triton.cdiv(score.numel(), BLOCK),)](
        score.contiguous(),
        graph,
        start,
        end,
        score if alive is None else alive,
        keep,
        score.numel(),
        RATIO=float(ratio),
        HAS_ALIVE=alive is not None,
        BLOCK=BLOCK,
        num_warps=4,
    )
    return keep


if triton is not None:

    @triton.jit
    def _keep_kernel(
        score,
        graph,
        start,
        end,
        alive,
        keep,
        nodes,
        RATIO: tl.constexpr,
        HAS_ALIVE: tl.constexpr,
        BLOCK: tl.constexpr,
    ):
        """keep = rank < ceil(ratio n); of equal scores the earlier node ranks higher."""
        node = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        inside = node < nodes
        counts = inside
        if HAS_ALIVE:
            counts = counts & (tl.load(alive + node, mask=inside, other=0) != 0)
        own = tl.load(score + node, mask=inside, other=0.0).to(tl.float32)
        where = tl.load(graph + node, mask=counts, other=0)
        first = tl.load(start + where, mask=counts, other=0)
        last = tl.load(end + where, mask=counts, other=0)
        length = tl.where(counts, last - first, 0)
        rank = tl.zeros((BLOCK,), tl.int32)
        total = tl.zeros((BLOCK,), tl.int32)
        for i in range(0, tl.max(length, axis=0)):
            there = first + i
            rival = there < last
            if HAS_ALIVE:
                rival = rival & (tl.load(alive + there, mask=rival, other=0) != 0)
            other = tl.load(score + there, mask=rival, other=0.0).to(tl.float32)
            beats = (other > own) | ((other == own) & (there < node))
            rank += (rival & beats).to(tl.int32)
            total += rival.to(tl.int32)
        # In double precision, as the plain version: 0.7 of 10 is 7.
        wanted = tl.ceil(total.to(tl.float64) * RATIO - 1e-7)
        tl.store(keep + node, counts & (rank.to(tl.float64) < wanted), mask=inside)
