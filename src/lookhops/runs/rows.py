"""The rows of a store, runs and notes on data sets, read and checked.

What is damaged is one sentence that says what to do about it.
"""

from __future__ import annotations

import hashlib
import sqlite3
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from lookhops.core.errors import LookHopsError
from lookhops.core.schema import AtLeast, Count, UnknownEntry, decode, read
from lookhops.runs.keys import RunKey
from lookhops.runs.record import HISTORY, RunRecord
from lookhops.sources.graph_counts import SIZE, check_graph_counts

#: What kinds of notes hold; ``command ...`` is the command line that asked for runs.
FIT = AtLeast({**dict.fromkeys(("a", "b", "mse"), float), "r2": float | None})
CURVE = dict.fromkeys(("k", "gain"), Sequence[float])
NOTES = {
    "data": AtLeast({**SIZE, "classes": Count}),
    "gain": AtLeast({**CURVE, "suggested_k": int | None, "fit": FIT}),
}


@dataclass(frozen=True)
class StoredRun:
    """A row of the table of runs.

    Args:
        place: The file and the number of the row.
        dataset, model: What they were called.
        key: What the run is stored under.
        record: The run, without its history.
        packed: The history as the file keeps it.
    """

    place: tuple[Path, int]
    dataset: str
    model: str
    key: RunKey
    record: RunRecord
    packed: Any

    def history(self) -> Sequence[dict[str, float]]:
        """Epoch by epoch, how it went."""
        with _damaged_run(*self.place, self.model, self.dataset, self.record.seed):
            try:
                text = zlib.decompress(self.packed)
            except (zlib.error, TypeError) as error:
                raise LookHopsError("history cannot be unpacked") from error
            epochs = read(HISTORY, decode(text, "history"), "history")
            trained = self.record.metrics
            if len(epochs) < max(trained["best_epoch"], min(trained["epochs"], 1)):
                raise LookHopsError("history has fewer epochs than the run")
            if any(epoch.keys() != epochs[0].keys() for epoch in epochs):
                raise LookHopsError("history has not the same columns in each epoch")
            return epochs


def read_runs(db: sqlite3.Connection, path: Path) -> list[StoredRun]:
    """The runs in the order in which they were finished; those of unknown layers are left out.

    Their numbers have six digits, as those of an exported file have: the pages are the same.
    """
    names = "id, dataset, model, fingerprint, architecture, protocol, seed, history"
    query = f"SELECT {names}, metrics, versions, machine, sha256 FROM runs ORDER BY id"
    found = []
    for row in db.execute(query).fetchall():
        number, dataset, model, *texts, seed, history, metrics, versions, machine, sha256 = row
        with _damaged_run(path, number, model, dataset, seed):
            for name, text in (("dataset", dataset), ("model", model), ("fingerprint", texts[0])):
                read(str, text, name)
            try:
                key = RunKey.from_texts(*texts)
            except UnknownEntry:
                continue
            columns = {"metrics": metrics, "versions": versions, "machine": machine}
            values = {name: decode(text, name) for name, text in columns.items()}
            record = RunRecord.from_dict({"seed": seed, **values})
            if sha256 != checksum(seed, metrics, versions, machine):
                raise LookHopsError("its content does not fit its checksum")
        short = {
            name: float(f"{value:.6g}") if isinstance(value, float) else value
            for name, value in record.metrics.items()
        }
        record = replace(record, metrics=short)
        found.append(StoredRun((path, number), dataset, model, key, record, history))
    return found


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


def check_note(kind: str, value: Any) -> Any:
    """The value of a note, or a sentence that says what is wrong with it."""
    if kind == "graphs":
        check_graph_counts(value, kind)
    elif kind in NOTES:
        read(NOTES[kind], value, kind)
    elif kind.startswith("command"):
        read(str, value, kind)
    if kind == "gain" and not 0 < len(value["k"]) == len(value["gain"]):
        raise LookHopsError("gain has not one number for each k")
    return value


@contextmanager
def _damaged(what: str, way_out: str) -> Iterator[None]:
    """Say what is damaged, and what to do about it."""
    try:
        yield
    except LookHopsError as error:
        raise LookHopsError(f"{what}{error}); delete it {way_out} again when asked for.") from error


@contextmanager
def _damaged_run(path: Path, number: int, model: Any, dataset: Any, seed: Any) -> Iterator[None]:
    what = f"{path}: a stored run is damaged ({model} on {dataset}, seed {seed}: "
    with _damaged(what, f"(DELETE FROM runs WHERE id = {number}), and it is trained"):
        yield
