"""Parquet files, opened without pandas, which takes a while to import."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lookhops.errors import LookHopsError
from lookhops.files import check_regular, explained


def open_parquet(path: Path) -> Any:
    """A Parquet file, of which nothing is read yet but what it holds."""
    with explained_parquet(path):
        from pyarrow import parquet

        with explained(path, "read"):
            check_regular(path)
        return parquet.ParquetFile(path)


@contextmanager
def explained_parquet(path: Path) -> Iterator[None]:
    """Errors of pyarrow in the block, or that it is missing, as a sentence."""
    try:
        import pyarrow as pa
    except ImportError as error:
        raise LookHopsError(
            f"{path}: Parquet files are read with pyarrow: pip install pyarrow."
        ) from error
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        raise LookHopsError(f"{path}: not a Parquet file that can be read ({error}).") from error
