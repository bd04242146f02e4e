"""The one error that a user can cause, and the one way of writing files."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


class LookHopsError(ValueError):
    """Something a user can mend: what was wrong, where (file and line) and what to do.

    The command line prints it in one line and exits with 2; it never shows a traceback.
    """


@contextmanager
def replacing(path: Path | str) -> Iterator[Path]:
    """Yield a temporary path beside ``path``; rename it to ``path`` when the block succeeds.

    An interrupted or failing block leaves what was there before, and no temporary file.
    """
    path = Path(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent)
        os.close(handle)
    except OSError as error:
        raise LookHopsError(f"{path}: cannot be written ({error.strerror or error}).") from error
    part = Path(name)
    try:
        yield part
        umask = os.umask(0)
        os.umask(umask)
        part.chmod(0o666 & ~umask)  # mkstemp's files are private; the user's own are not
        part.replace(path)
    except OSError as error:
        raise LookHopsError(f"{path}: cannot be written ({error.strerror or error}).") from error
    finally:
        with suppress(FileNotFoundError):
            part.unlink()
