"""What ends or holds a worker process that looks at it; light to import, since workers do."""

import multiprocessing
import os
import sys
from typing import Any


class Deadly(str):
    """A text that ends the worker which looks at it, and no other process."""

    __slots__ = ()

    def __len__(self) -> int:
        if multiprocessing.parent_process() is not None:
            os._exit(11)
        return super().__len__()


class Endless(str):
    """A text that the worker which looks at it never finishes with; in other processes, a text."""

    __slots__ = ()

    def __len__(self) -> int:
        while multiprocessing.parent_process() is not None:
            pass
        return super().__len__()


class Uninstalling(str):
    """A text after which a process that it was sent to finds no RDKit."""

    __slots__ = ()

    def __reduce__(self) -> tuple[Any, ...]:
        return _uninstall, (str(self),)


def _uninstall(text: str) -> str:
    sys.modules["rdkit"] = None  # type: ignore[assignment]
    return text
