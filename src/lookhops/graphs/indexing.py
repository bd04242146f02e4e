"""Index arithmetic over flat tensors, and many texts in two flat arrays.

Some of the arithmetic is written twice: with PyTorch's kernels, and, for a model that is exported,
with what other runtimes have too (ONNX knows no searchsorted, no bincount, no running maximum).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor

from lookhops.core.errors import LookHopsError


def take(tensor: Tensor | None, index: Tensor) -> Tensor | None:
    """Rows of a tensor that may be absent."""
    return None if tensor is None else tensor.index_select(0, index)


def to_offsets(counts: Tensor) -> Tensor:
    """Offsets of segments with these lengths: (0, c_0, c_0 + c_1, ...)."""
    return torch.cat((counts.new_zeros(1), counts.cumsum(0, dtype=counts.dtype)))


def spread(values: Tensor, ptr: Tensor, total: int) -> Tensor:
    """Each segment's value, once for every one of the ``total`` elements of the segments."""
    if torch.compiler.is_exporting():
        return values.index_select(0, counts_of(ptr[:-1], total + 1).cumsum(0)[:-1] - 1)
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
    if keys.device.type == "cpu" and not torch.compiler.is_exporting():
        return torch.from_numpy(np.argsort(keys.numpy(), kind="stable"))
    return keys.argsort(stable=True)


def argsort_hashes(keys: Tensor) -> Tensor:
    """As :func:`stable_argsort`, of numbers that stand in no order at all, int64.

    NumPy has vector instructions for a sort that is not stable. It puts equal keys side by side,
    and their places are then sorted by another one.
    """
    if keys.device.type != "cpu" or torch.compiler.is_exporting():
        return stable_argsort(keys)
    order = np.argsort(keys.numpy())
    bits = len(order).bit_length()
    run = run_begins(keys[torch.from_numpy(order)]).numpy().cumsum(dtype=np.int64)
    packed = run << bits
    packed |= order
    packed.sort()
    packed &= (1 << bits) - 1
    return torch.from_numpy(packed)


def running_sum(values: Tensor) -> Tensor:
    """As :func:`to_offsets`, of whole numbers that may wrap around."""
    if torch.compiler.is_exporting():
        return torch.cat((values.new_zeros(1), values.cumsum(0)))
    running = values.new_zeros(values.numel() + 1)
    torch.cumsum(values, 0, out=running[1:])
    return running


def counts_of(index: Tensor, size: int) -> Tensor:
    """How often each of the numbers below ``size`` stands in ``index``, int64, shape (size)."""
    if torch.compiler.is_exporting():
        index = index.long()
        return index.new_zeros(size).index_add(0, index, torch.ones_like(index))
    return index.bincount(minlength=size)


def kinds_of(codes: Tensor) -> Tensor:
    """Numbers from 0 of the different codes, shape (n)."""
    return torch.unique(codes, return_inverse=True)[1]


def means_of_kinds(values: Tensor, kind: Tensor) -> Tensor:
    """Of each value (..., n) the mean over those of its kind (n)."""
    if not kind.numel():
        return values
    count = torch.bincount(kind).to(values)
    total = values.new_zeros(*values.shape[:-1], len(count)).index_add(-1, kind, values)
    return (total / count)[..., kind]


def run_begins(ordered: Tensor) -> Tensor:
    """Where a value differs from the one before it; the first does. Shape (n)."""
    if torch.compiler.is_exporting():  # a slice without its end would ask for two values or more
        place = torch.arange(ordered.numel(), device=ordered.device)
        return (ordered != ordered.index_select(0, (place - 1).clamp(min=0))) | (place == 0)
    begins = torch.ones_like(ordered, dtype=torch.bool)
    begins[1:] = ordered[1:] != ordered[:-1]
    return begins


def last_begin(begins: Tensor) -> Tensor:
    """The nearest place at or before each one where ``begins`` is true, shape (n)."""
    place = torch.arange(begins.numel(), device=begins.device)
    place = torch.where(begins, place, 0)
    if not torch.compiler.is_exporting():
        return place.cummax(0).values
    run = begins.cumsum(0) - 1  # one place of each run is not zero
    return torch.zeros_like(place).index_add(0, run, place).index_select(0, run)


def insertion(ordered: Tensor, values: Tensor) -> Tensor:
    """How many of the numbers ``ordered``, which rise, are below each value."""
    if not torch.compiler.is_exporting():
        return torch.searchsorted(ordered, values)
    place = torch.zeros_like(values, dtype=torch.int64)
    if not ordered.numel():
        return place
    step = 1 << (ordered.numel().bit_length() - 1)
    while step:  # bisection, every value at once
        last = place + (step - 1)
        inside = ordered[last.clamp(max=ordered.numel() - 1)] < values
        place = torch.where(inside & (last < ordered.numel()), place + step, place)
        step //= 2
    return place


def row_offsets(target: Tensor, num_nodes: int) -> Tensor:
    """CSR offsets, 32-bit, of the edges into each node."""
    if max(num_nodes, target.numel()) >= 2**31:
        raise LookHopsError("More than 2,147,483,647 nodes or edges do not fit one set.")
    return to_offsets(target.bincount(minlength=num_nodes)).int()


def refuse_empty(nodes_per_graph: Tensor) -> None:
    """Refuse graphs without nodes, of which nothing can be said."""
    empty = (nodes_per_graph == 0).nonzero().flatten().tolist()
    if empty:
        more = f", nor have {len(empty) - 1} more" if len(empty) > 1 else ""
        raise LookHopsError(f"Graph {empty[0]} has no nodes{more}: leave such graphs out.")


@dataclass(frozen=True, eq=False)
class Texts:
    """Texts that follow each other as UTF-8, in main memory or mapped from a file."""

    data: np.ndarray  # the bytes of all texts, uint8
    ptr: np.ndarray  # where each text begins, and where the last ends, int64

    @classmethod
    def of(cls, texts: Sequence[str]) -> Texts:
        """Pack texts; zero bytes in them are left out."""
        closed = "\0".join([*(text.replace("\0", "") for text in texts), ""])
        data = np.frombuffer(closed.encode(errors="replace"), np.uint8)
        ends = np.flatnonzero(data == 0)
        return cls(data[data != 0], np.concatenate(([0], ends - np.arange(len(ends)))))

    def __len__(self) -> int:
        return len(self.ptr) - 1

    def __getitem__(self, number: int) -> str:
        begin, end = self.ptr[:-1][number], self.ptr[1:][number]
        return self.data[begin:end].tobytes().decode(errors="replace")

    def __iter__(self) -> Iterator[str]:
        return iter(self.tolist())

    def __repr__(self) -> str:
        shown = ", ".join(map(repr, self.cut(0, min(len(self), 3))))
        more = f", ... ({len(self):,} texts)" if len(self) > 3 else ""
        return f"Texts({shown}{more})"

    def cut(self, first: int, after: int) -> Texts:
        """The texts from ``first`` to before ``after``; nothing is copied but offsets."""
        begin, end = self.ptr[first], self.ptr[after]
        return Texts(self.data[begin:end], self.ptr[first : after + 1] - begin)

    def take(self, index: np.ndarray) -> Texts:
        """The texts with these numbers."""
        begin = self.ptr[:-1][index]
        size = self.ptr[1:][index] - begin
        ptr = _offsets(size)
        return Texts(self.data[np.arange(ptr[-1]) + np.repeat(begin - ptr[:-1], size)], ptr)

    def tolist(self) -> list[str]:
        """The texts one by one."""
        data, ptr = self.data.tobytes(), self.ptr.tolist()
        return [data[a:b].decode(errors="replace") for a, b in pairwise(ptr)]

    def is_sound(self, count: int) -> bool:
        """Whether the arrays describe so many texts: a file may have been sent by anybody."""
        ptr = self.ptr
        return (
            (self.data.dtype, ptr.dtype) == (np.uint8, np.int64)
            and (self.data.ndim, ptr.shape) == (1, (count + 1,))
            and ptr[[0, -1]].tolist() == [0, len(self.data)]
            and bool((ptr[1:] >= ptr[:-1]).all())
        )


def join_texts(parts: Sequence[Texts]) -> Texts:
    """The texts of the first, then those of the second, ..."""
    sizes = np.concatenate([np.diff(part.ptr) for part in parts])
    return Texts(np.concatenate([part.data for part in parts]), _offsets(sizes))


def _offsets(sizes: np.ndarray) -> np.ndarray:
    return np.concatenate(([0], np.cumsum(sizes, dtype=np.int64)))
