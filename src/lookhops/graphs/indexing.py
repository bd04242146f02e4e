"""Index arithmetic over flat tensors."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from lookhops.errors import LookHopsError


def take(tensor: Tensor | None, index: Tensor) -> Tensor | None:
    """Rows of a tensor that may be absent."""
    return None if tensor is None else tensor.index_select(0, index)


def to_offsets(counts: Tensor) -> Tensor:
    """Offsets of segments with these lengths: (0, c_0, c_0 + c_1, ...)."""
    return torch.cat((counts.new_zeros(1), counts.cumsum(0, dtype=counts.dtype)))


def spread(values: Tensor, ptr: Tensor, total: int) -> Tensor:
    """Each segment's value, once for every one of the ``total`` elements of the segments."""
    return torch.repeat_interleave(values, ptr.diff(), output_size=total)


def segment_of(ptr: Tensor, total: int) -> Tensor:
    """The number of the segment of each element."""
    return spread(torch.arange(ptr.numel() - 1, dtype=ptr.dtype, device=ptr.device), ptr, total)


def elements_of(ptr: Tensor, index: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Elements of the segments at ``index``, their new offsets, and how far each segment moved."""
    start = ptr.index_select(0, index)
    new_ptr = to_offsets(ptr.index_select(0, index + 1) - start)
    shift = start - new_ptr[:-1]
    total = int(new_ptr[-1])
    place = torch.arange(total, dtype=ptr.dtype, device=ptr.device)
    return place + spread(shift, new_ptr, total), new_ptr, shift


def pair_keys(source: Tensor, target: Tensor, num_nodes: int) -> Tensor:
    """One number an edge that sorts by target, then source."""
    return target.long() * num_nodes + source.long()


def stable_argsort(keys: Tensor) -> Tensor:
    """A stable argsort: on the CPU NumPy's, which is several times as fast as PyTorch's."""
    if keys.device.type == "cpu":
        return torch.from_numpy(np.argsort(keys.numpy(), kind="stable"))
    return keys.argsort(stable=True)


def row_offsets(target: Tensor, num_nodes: int) -> Tensor:
    """CSR offsets, 32-bit, of the edges into each node."""
    if max(num_nodes, target.numel()) >= 2**31:
        raise LookHopsError("More than 2,147,483,647 nodes or edges do not fit one set.")
    return to_offsets(target.bincount(minlength=num_nodes)).int()
