"""The machine: the cores a process may use, and memory that tensors leave for the next ones."""

from __future__ import annotations

import ctypes
import os
import sys
from contextlib import suppress

#: What glibc's ``mallopt`` calls its limits, and the bytes to set them to: how much that is free at
#: the end of the memory is kept, how large a piece must be to be mapped by itself, and how much
#: more than is needed is asked for.
LIMITS = {-1: 256 << 20, -3: 32 << 20, -2: 64 << 20}


def keep_memory() -> None:
    """Have tensors take memory that others left, where glibc would give it back to the system.

    Every batch would ask for all of it again, page by page: a tenth of the time on the CPU. Where
    there is another library, or the user has chosen limits, nothing is changed.
    """
    chosen = any(name.startswith("MALLOC_") for name in os.environ)
    if not sys.platform.startswith("linux") or chosen or "GLIBC_TUNABLES" in os.environ:
        return
    with suppress(OSError, AttributeError):  # musl has no such function
        limit = ctypes.CDLL("libc.so.6").mallopt
        for name, value in LIMITS.items():
            limit(name, value)


def usable_cores() -> int:
    """Cores that this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1
