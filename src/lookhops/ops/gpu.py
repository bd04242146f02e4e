"""Triton, where it is of use: what all kernels here share.

Every kernel stands in the file of what it computes, beside the plain PyTorch that tests hold it to.
A program mostly takes a block of rows and all their channels, so that a row of ``x`` is read in one
piece. Triton compiles a kernel again for each set of arguments that are None: what a kernel can do
without is passed as None, and needs no flag.
"""

import ctypes
import os
import sys
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

ROWS = 4  # rows a program takes
A_WARP = 512  # elements that a warp takes
MOST_CHANNELS = 1024  # a program holds a block of rows with all their channels in registers


def _wanted() -> bool:
    """Whether there is a driver, or Triton is loaded or asked to interpret: it loads slowly."""
    if "triton" in sys.modules or "TRITON_INTERPRET" in os.environ or torch.version.hip:
        return True
    try:
        ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
    except OSError:
        return False
    return True


if TYPE_CHECKING:
    triton: Any
    tl: Any
else:
    triton = tl = None
    if _wanted():
        with suppress(ImportError):  # no GPU build: PyTorch's own operators do the work
            import triton
            import triton.language as tl


@cache
def available() -> bool:
    """Whether the kernels can run here."""
    return triton is not None and torch.cuda.is_available()


def can_run_on(x: Tensor) -> bool:
    """Whether kernels take ``x``: it has elements, lies on a GPU, and is not double precision."""
    return x.is_cuda and x.dtype != torch.float64 and available() and x.numel() > 0


def launch_over(kernel: Any, count: int, block: int, *given: Any, warps: int = 4, **constants: Any):
    """Launch programs that each take one block of so many rows, entries or elements."""
    grid = (triton.cdiv(count, block),)
    kernel[grid](*given, **constants, BLOCK=block, num_warps=warps)


def blocks_of(rows: int, channels: int, slices: int = 1) -> tuple[tuple[int, int], dict[str, int]]:
    """The grid and the sizes of programs that each take a block of rows with their channels.

    With several slices a block may not cross from one into the next: it has ``ROWS`` rows.
    """
    block = min(triton.next_power_of_2(channels), MOST_CHANNELS)
    # Narrow rows leave a warp little to do: give it more of them.
    each = ROWS if slices > 1 else max(ROWS, A_WARP // block)
    warps = max(each * block // A_WARP, 1)
    sizes = {"ROWS": each, "CHANNELS": block, "num_warps": warps, "num_stages": 1}
    return (triton.cdiv(rows, each), triton.cdiv(channels, block)), sizes


if triton is not None:
    ENTRIES = tl.constexpr(4)  # of each row whose features are asked for at once

    @triton.jit
    def load_rows(x, row, live, channel, inside, width):
        """Rows of x in single precision, zero where they are not live."""
        place = x + row[:, None] * width + channel[None, :]
        return tl.load(place, mask=live[:, None] & inside[None, :], other=0.0).to(tl.float32)

    @triton.jit
    def load_shift(offset, part, channel, inside, width):
        """What is added to the rows of a slice: zero where there is no offset."""
        if offset is None:
            shift = tl.zeros((channel.shape[0],), tl.float32)
        else:
            shift = tl.load(offset + part * width + channel, mask=inside, other=0.0).to(tl.float32)
        return shift

    @triton.jit
    def gather_rows(row_ptr, column, value, x, row, live, channel, inside, width, shift):
        """Sum over each row's entries of value times the (shifted) row of x in its column."""
        start = tl.load(row_ptr + row, mask=live, other=0)
        end = tl.load(row_ptr + row + 1, mask=live, other=0)
        total = tl.zeros((row.shape[0], channel.shape[0]), dtype=tl.float32)
        for first in range(0, tl.max((end - start).to(tl.int32), axis=0), ENTRIES):
            for j in tl.static_range(ENTRIES):
                entry = start + first + j
                here = entry < end
                source = tl.load(column + entry, mask=here, other=0).to(tl.int64)
                if value is not None:  # what masks have taken out is not asked for
                    factor = tl.load(value + entry, mask=here, other=0.0).to(tl.float32)
                    here = factor != 0
                part = load_rows(x, source, here, channel, inside, width)
                part = tl.where(here[:, None], part + shift[None, :], 0.0)
                if value is not None:
                    part *= factor[:, None]
                total += part
        return total
