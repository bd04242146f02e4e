"""What a command will probably be asked to parse, told before PyTorch is there to read it."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path

#: Names of columns of SMILES, in the order in which they are looked for, whatever their case.
SMILES_NAMES = ("smiles", "canonical_smiles", "isomeric_smiles", "smi", "structure", "mol")


def guessed_chunks(path: Path, column: str | None, size: int) -> Iterator[list[str]]:
    """The SMILES of a plain text file, so many at a time; nothing where it is not plain.

    This is a guess, which who asks in the end holds against what is really there
    (:meth:`~lookhops.sources.rdkit.workers.ParsingPool.guess`).

    Args:
        path: The file.
        column: The column that was chosen, or none.
        size: How many at a time.
    """
    with suppress(OSError, UnicodeError, csv.Error):
        if path.suffix.lower() not in (".csv", ".tsv", ".smi") or not path.is_file():
            return
        with path.open(encoding="utf-8-sig", newline="") as file:
            texts = _lines(file) if path.suffix.lower() == ".smi" else _cells(file, column)
            while chunk := list(islice(texts, size)):
                yield chunk


def _lines(file: Iterator[str]) -> Iterator[str]:
    words = (line.split(maxsplit=1)[:1] for line in file if not line.startswith("#"))
    texts = (first[0] for first in words if first)
    first = next(texts, "")
    if first.strip('"').lower() not in SMILES_NAMES:
        yield first
    yield from texts


def _cells(file: Iterator[str], column: str | None) -> Iterator[str]:
    head = next(file, "")
    separator = max(",;\t", key=head.count)
    names = [name.strip() for name in next(csv.reader([head], delimiter=separator), [])]
    lower = [name.lower() for name in names]
    usual = next((name for name in SMILES_NAMES if name in lower), "")
    at = names.index(column) if column in names else lower.index(usual) if usual else len(names)
    for row in csv.reader(file, delimiter=separator):
        if len(row) > 1 or "".join(row).strip():
            if len(row) <= at:
                return
            yield row[at].strip()
