"""Index arithmetic over flat tensors: what packing, choosing and expanding graphs is made of."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from lookhops.errors import LookHopsError


def width(features: Tensor | None) -> int:
    """Number of columns; none where there are no features."""
    return 0 if features is None else features.shape[1]


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
    return to_offsets(target.bincount(minlength=num_nodes)).int()


def stay_within(node_ptr: Tensor, row_ptr: Tensor, source: Tensor) -> bool:
    """Whether every edge comes from a node of its own graph."""
    edge_ptr, total = row_ptr[node_ptr], source.numel()
    first, end = (spread(bound, edge_ptr, total) for bound in (node_ptr[:-1], node_ptr[1:]))
    return bool(((source >= first) & (source < end)).all())


def feature_columns(
    attributes: Tensor | None,
    labels: Tensor | None,
    sizes: Sequence[int],
    dtype: torch.dtype | None = None,
) -> Tensor:
    """Attributes as they are, then one-hot labels: one tensor of floats, one row each.

    Nothing waits for the device: it can be recorded in a CUDA graph. Without a ``dtype`` the
    attributes' own is taken, else PyTorch's default.
    """
    given = attributes if attributes is not None else labels
    assert given is not None
    if dtype is None:
        dtype = given.dtype if given.is_floating_point() else torch.get_default_dtype()
    start = width(attributes)
    rows, columns = len(given), start + sum(sizes)
    out = torch.zeros(rows, columns, dtype=dtype, device=given.device)
    if attributes is not None:
        out[:, :start] = attributes
    if labels is not None:
        for size, label in zip(sizes, labels.unbind(1), strict=True):
            row = torch.arange(start, start + rows * columns, columns, device=given.device)
            out.view(-1).index_fill_(0, row.add_(label), 1.0)
            start += size
    return out


def sizes_of(labels: Tensor | None, sizes: Sequence[int] | None) -> tuple[int, ...]:
    """How many values each column of labels takes: as given, else one more than the largest."""
    if labels is None:
        return ()
    if not labels.numel():
        return tuple(sizes) if sizes is not None else (0,) * labels.shape[1]
    needed = (labels.amax(0) + 1).tolist()
    if int(labels.min()) < 0 or (sizes and any(n > s for n, s in zip(needed, sizes, strict=True))):
        raise LookHopsError("A label is below 0 or not below its column's number of values.")
    return tuple(sizes or needed)


def compact(labels: Tensor | None) -> Tensor | None:
    """Labels in the smallest integer type that holds them."""
    if labels is None:
        return None
    largest = int(labels.max()) if labels.numel() else 0
    return labels.to(
        torch.uint8 if largest < 2**8 else torch.int16 if largest < 2**15 else torch.int32
    )


def as_floats(attributes: Tensor | None) -> Tensor | None:
    """Float32, unless the caller gave floats of another width on purpose."""
    if attributes is None or attributes.is_floating_point():
        return attributes
    return attributes.float()
