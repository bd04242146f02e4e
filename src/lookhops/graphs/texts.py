"""Many texts in two flat arrays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np


@dataclass(frozen=True, eq=False)
class Texts:
    """Texts that follow each other as UTF-8, in main memory or mapped from a file.

    Args:
        data: The bytes of all texts, uint8.
        ptr: Where each text begins, and where the last ends, int64, one more than there are texts.
    """

    data: np.ndarray
    ptr: np.ndarray

    @classmethod
    def of(cls, texts: Sequence[str]) -> Texts:
        """Pack texts; zero bytes in them are left out."""
        closed = "\0".join([*texts, ""])
        if closed.count("\0") != len(texts):
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
