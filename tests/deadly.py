"""What ends a worker process that looks at it; light to import, since workers do."""

import multiprocessing
import os


class Deadly(str):
    """A text that ends the worker which looks at it, and no other process."""

    __slots__ = ()

    def __len__(self) -> int:
        if multiprocessing.parent_process() is not None:
            os._exit(11)
        return super().__len__()
