"""Work on a stack of networks that may not fit the GPU's memory."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

import torch

from lookhops.training.workers import Workers

T = TypeVar("T")
R = TypeVar("R")


def in_halves(work: Callable[[Sequence[T]], R], stack: Sequence[T]) -> Iterator[R]:
    """What work on a stack gives, or on its halves one after the other where memory ends.

    Args:
        work: Called with the stack or a part of it, perhaps again after it failed.
        stack: What is worked on together.
    """
    try:
        found = work(stack)
    except torch.OutOfMemoryError:
        if len(stack) == 1 or not Workers.joined().alone:  # the others know nothing of it
            raise
    else:
        yield found
        return
    # Outside the handler, which would keep the failed attempt's memory alive.
    gc.collect()
    torch.cuda.empty_cache()
    half = len(stack) // 2
    yield from in_halves(work, stack[:half])
    yield from in_halves(work, stack[half:])
