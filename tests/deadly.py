"""What ends or holds a worker process that looks at it; light to import, since workers do."""

import multiprocessing
import os

from lookhops.errors import LookHopsError


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


class Refused(str):
    """A text for which a worker has an error, as where RDKit is not installed."""

    __slots__ = ()

    def __len__(self) -> int:
        if multiprocessing.parent_process() is not None:
            raise LookHopsError("no RDKit")
        return super().__len__()
