"""Memory that the C library keeps: freed and asked for again in every step of training."""

from __future__ import annotations

import ctypes
from functools import cache
from sys import platform

#: Of glibc's malloc.h: what is freed at the end of the heap stays the process's up to this size,
#: and blocks below this size come from the heap.
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD, KEPT = -1, -3, 1 << 30


@cache
def keep_freed_memory() -> None:
    """Let glibc keep up to 1 GiB of freed memory, for the rest of the process.

    By default it gives the tensors of a step back to the system, which hands them out again page by
    page in the next one: on a CPU that is a fifth of a step's time. Where the C library is another,
    nothing is changed.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if platform == "linux" else None
    if mallopt is not None:
        mallopt(M_TRIM_THRESHOLD, KEPT)
        mallopt(M_MMAP_THRESHOLD, KEPT)
