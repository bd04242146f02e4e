"""The SQLite file of a store: its tables, its rows as records, a connection, who is still alive."""

from __future__ import annotations

import os
import platform
import sqlite3
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from lookhops.errors import LookHopsError
from lookhops.experiments.keys import RunKey
from lookhops.experiments.notes import check_note
from lookhops.models.records import HISTORY, RunRecord
from lookhops.schema import AtLeast, UnknownEntry, decode, read

APPLICATION, VERSION = 0x4C486F70, 1  # "LHop" in SQLite's header tells our files from others
WAIT = 60.0  # seconds to wait for another process's transaction

SCHEMA = """
CREATE TABLE runs (
    id INTEGER PRIMARY KEY,
    dataset TEXT NOT NULL, fingerprint TEXT NOT NULL,
    model TEXT NOT NULL, architecture TEXT NOT NULL,
    seed INTEGER NOT NULL, protocol TEXT NOT NULL,
    metrics TEXT NOT NULL, history BLOB NOT NULL,
    versions TEXT NOT NULL, machine TEXT NOT NULL,
    finished TEXT NOT NULL,
    UNIQUE (fingerprint, architecture, protocol, seed));
CREATE TABLE claims (
    fingerprint TEXT NOT NULL, architecture TEXT NOT NULL, protocol TEXT NOT NULL,
    seed INTEGER NOT NULL, owner TEXT NOT NULL, beat REAL NOT NULL,
    UNIQUE (fingerprint, architecture, protocol, seed));
CREATE TABLE facts (
    dataset TEXT NOT NULL, fingerprint TEXT NOT NULL, kind TEXT NOT NULL, value TEXT NOT NULL,
    UNIQUE (fingerprint, kind));
"""


def connect(path: Path) -> sqlite3.Connection:
    """A connection that waits for others and does not lose what was committed."""
    db = sqlite3.connect(path, timeout=WAIT, isolation_level=None)
    db.execute("PRAGMA synchronous = FULL")
    return db


def connect_to_read(path: Path) -> sqlite3.Connection:
    """A connection that cannot write."""
    address = path.resolve().as_uri()
    db = sqlite3.connect(f"{address}?mode=ro", uri=True, timeout=WAIT, isolation_level=None)
    try:
        db.execute("SELECT count(*) FROM sqlite_master").fetchone()
        return db
    except sqlite3.OperationalError:
        db.close()
        if path.with_name(f"{path.name}-wal").exists():
            raise
    # On a disk that nobody can write to, SQLite must be told that nobody does.
    return sqlite3.connect(f"{address}?immutable=1", uri=True, isolation_level=None)


def check_version(db: sqlite3.Connection, path: Path) -> None:
    """Refuse a file that is not a store, or one of another version."""
    (application,) = db.execute("PRAGMA application_id").fetchone()
    (version,) = db.execute("PRAGMA user_version").fetchone()
    if application != APPLICATION:
        raise LookHopsError(f"{path}: an SQLite file, but not a store of LookHops.")
    if version != VERSION:
        raise LookHopsError(f"{path}: a store of version {version}; this LookHops reads {VERSION}.")


def retry_locked(attempt: Callable[[], Any], path: Path, seconds: float = WAIT) -> None:
    """Try again while the database is locked: SQLite does not wait where the journal changes.

    Args:
        attempt: What to do.
        path: The file, to be named.
        seconds: How long to try.
    """
    end = time.monotonic() + seconds
    while True:
        try:
            attempt()
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error):
                raise
            if time.monotonic() >= end:
                raise LookHopsError(
                    f"{path}: locked by another process for {seconds:g} seconds; end that process, "
                    "or try again later."
                ) from error
        time.sleep(0.1)


def alive(owner: str) -> bool:
    """Whether a process may still live: on this machine we know, of others we assume it."""
    node, pid, _ = owner.rsplit(":", 2)
    if node != platform.node() or os.name != "posix":  # elsewhere signal 0 is not a question
        return True
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


# -------------------------------------------------------------------- rows


NAMES = AtLeast(dict.fromkeys(("dataset", "model", "fingerprint"), str))


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
            if len(epochs) < max(self.record.metrics["best_epoch"], 1):
                raise LookHopsError("history has fewer epochs than the run")
            if any(epoch.keys() != epochs[0].keys() for epoch in epochs):
                raise LookHopsError("history has not the same columns in each epoch")
            return epochs


def read_runs(db: sqlite3.Connection, path: Path) -> list[StoredRun]:
    """The runs in the order in which they were finished; a damaged one is one sentence.

    Runs with options that a later version has are left out.
    """
    names = "id, dataset, model, fingerprint, architecture, protocol, seed, history"
    query = f"SELECT {names}, metrics, versions, machine FROM runs ORDER BY id"
    found = []
    for row in db.execute(query).fetchall():
        number, dataset, model, *texts, seed, history, metrics, versions, machine = row
        with _damaged_run(path, number, model, dataset, seed):
            read(NAMES, {"dataset": dataset, "model": model, "fingerprint": texts[0]})
            try:
                key = RunKey.from_texts(*texts)
            except UnknownEntry:
                continue
            columns = {"metrics": metrics, "versions": versions, "machine": machine}
            decoded = {name: decode(text, name) for name, text in columns.items()}
            record = _shortened(RunRecord.from_dict({"seed": seed, **decoded}))
        found.append(StoredRun((path, number), dataset, model, key, record, history))
    return found


def _shortened(record: RunRecord) -> RunRecord:
    """Numbers with six digits, in a store's results as in a file's: the pages are the same."""
    short = {
        name: float(f"{value:.6g}") if isinstance(value, float) else value
        for name, value in record.metrics.items()
    }
    return replace(record, metrics=short)


@contextmanager
def _damaged_run(path: Path, number: int, model: Any, dataset: Any, seed: Any) -> Iterator[None]:
    """Say which row is damaged, and what to do about it."""
    try:
        yield
    except LookHopsError as error:
        raise LookHopsError(
            f"{path}: a stored run is damaged ({model} on {dataset}, seed {seed}: {error}); delete "
            f"it (DELETE FROM runs WHERE id = {number}), and it is trained again when asked for."
        ) from error


def read_note(path: Path, row: int, dataset: str, kind: str, text: Any) -> Any:
    """What is kept of a data set under a kind, or one sentence where it is damaged."""
    try:
        return check_note(kind, decode(text, kind))
    except LookHopsError as error:
        raise LookHopsError(
            f"{path}: what is stored of {dataset} is damaged ({error}); delete it "
            f"(DELETE FROM facts WHERE rowid = {row}), and it is counted again when asked for."
        ) from error
