"""Parquet files, read without pandas, which takes a while to import."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lookhops.core.errors import LookHopsError
from lookhops.core.files import check_regular, explained

#: Rows that are read at a time.
BATCH = 4096


def open_parquet(path: Path) -> Any:
    """A Parquet file, of which nothing is read yet but what it holds."""
    with explained_parquet(path):
        from pyarrow import parquet

        with explained(path, "read"):
            check_regular(path)
        return parquet.ParquetFile(path)


def column_types(file: Any) -> list[Any]:
    """The Arrow type of each column of an open file; none of lists and the like, taken as text."""
    from pyarrow import types

    plain = (
        types.is_primitive,
        types.is_string,
        types.is_large_string,
        types.is_decimal,
        types.is_dictionary,
    )
    kept = [any(is_it(own) for is_it in plain) for own in file.schema_arrow.types]
    return [own if k else None for own, k in zip(file.schema_arrow.types, kept, strict=True)]


def parquet_rows(path: Path, file: Any) -> Iterator[tuple[Any, ...]]:
    """The rows of an open file, as Python has their cells; a blank is None."""
    kinds = column_types(file)
    with explained_parquet(path):
        for batch in file.iter_batches(BATCH):
            columns = [batch.column(i).to_pylist() for i in range(len(kinds))]
            for column, kind in zip(columns, kinds, strict=True):
                if kind is None:
                    column[:] = [None if cell is None else str(cell) for cell in column]
            yield from zip(*columns, strict=True)


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
