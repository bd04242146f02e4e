"""The rows of a store, runs and notes on data sets, read and checked.

What is damaged is one sentence that says what to do about it.
"""

from __future__ import annotations

import hashlib
import sqlite3
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from lookhops.core.errors import LookHopsError
from lookhops.core.schema import UnknownEntry, decode, read
from lookhops.runs.plan import RunKey
from lookhops.runs.record import HISTORY, RunRecord
from lookhops.runs.results import CellResult, check_note


@dataclass(frozen=True)
class StoredHistory(Sequence[Mapping[str, float]]):
    """The epochs of a stored run, read and checked when they are asked for."""

    packed: Any
    row: tuple[Path, int, str, str, int]  # the file, and what names the run in errors
    metrics: Mapping[str, Any]

    @cached_property
    def epochs(self) -> Sequence[Mapping[str, float]]:
        with _damaged_run(*self.row):
            try:
                text = zlib.decompress(self.packed)
            except (zlib.error, TypeError) as error:
                raise LookHopsError("history cannot be unpacked") from error
            epochs: Sequence[Mapping[str, float]] = read(
                HISTORY, decode(text, "history"), "history"
            )
            if len(epochs) < max(self.metrics["best_epoch"], min(self.metrics["epochs"], 1)):
                raise LookHopsError("history has fewer epochs than the run")
            if any(epoch.keys() != epochs[0].keys() for epoch in epochs):
                raise LookHopsError("history has not the same columns in each epoch")
            return epochs

    def __len__(self) -> int:
        return len(self.epochs)

    def __getitem__(self, index: Any) -> Any:
        return self.epochs[index]


def read_cells(db: sqlite3.Connection, path: Path) -> list[CellResult]:
    """The finished runs by what decides them, in their order; those of unknown layers are left out.

    A cell is called what its first run was. Numbers have six digits, as in an exported file.
    """
    columns = "id, dataset, model, fingerprint, architecture, protocol, seed, history"
    query = f"SELECT {columns}, metrics, versions, machine, sha256 FROM runs ORDER BY id"
    cells: dict[RunKey, CellResult] = {}
    for row in db.execute(query).fetchall():
        number, dataset, model, *texts, seed, history, metrics, versions, machine, sha256 = row
        run = (path, number, model, dataset, seed)
        with _damaged_run(*run):
            for name, text in (("dataset", dataset), ("model", model), ("fingerprint", texts[0])):
                read(str, text, name)
            try:
                key = RunKey.from_texts(*texts)
            except UnknownEntry:
                continue
            written = {"metrics": metrics, "versions": versions, "machine": machine}
            values = {name: decode(text, name) for name, text in written.items()}
            record = RunRecord.from_dict({"seed": seed, **values})
            if sha256 != checksum(seed, metrics, versions, machine):
                raise LookHopsError("its content does not fit its checksum")
        short = {
            name: float(f"{value:.6g}") if isinstance(value, float) else value
            for name, value in record.metrics.items()
        }
        record = replace(record, metrics=short, history=StoredHistory(history, run, short))
        cell = cells.get(key) or CellResult(dataset, model, key, ())
        runs = cell.runs if seed in cell.seeds else (*cell.runs, record)
        cells[key] = replace(cell, runs=runs, names=cell.names | {model})
    return list(cells.values())


def checksum(*values: Any) -> str:
    """SHA-256 of what a row holds of a run: seed, metrics, versions and machine.

    The history is left out: zlib has a checksum of its own.
    """
    return hashlib.sha256("\0".join(map(str, values)).encode(errors="replace")).hexdigest()


def read_note(path: Path, row: int, dataset: str, kind: str, text: Any) -> Any:
    """What is kept of a data set under a kind."""
    way_out = f"(DELETE FROM facts WHERE rowid = {row}), and it is counted"
    with _damaged(f"{path}: what is stored of {dataset} is damaged (", way_out):
        for name, value in (("dataset", dataset), ("kind", kind)):
            read(str, value, name)
        return check_note(kind, decode(text, kind))


@contextmanager
def _damaged(what: str, way_out: str) -> Iterator[None]:
    try:
        yield
    except LookHopsError as error:
        raise LookHopsError(f"{what}{error}); delete it {way_out} again when asked for.") from error


@contextmanager
def _damaged_run(path: Path, number: int, model: Any, dataset: Any, seed: Any) -> Iterator[None]:
    what = f"{path}: a stored run is damaged ({model} on {dataset}, seed {seed}: "
    with _damaged(what, f"(DELETE FROM runs WHERE id = {number}), and it is trained"):
        yield
