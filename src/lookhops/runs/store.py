"""The store: one SQLite file that holds every finished run once.

A run is a row; rows are only ever added, in one transaction each, so that a process that dies at
any moment loses none of them. Processes that share a store divide the work by claims: a process
claims a run before it trains it, and renews the claim; the claim of a process that died expires.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import sqlite3
import threading
import time
import uuid
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from lookhops.core.errors import LookHopsError
from lookhops.core.files import process_alive
from lookhops.core.schema import UnknownEntry, decode, read
from lookhops.runs.plan import Cell, RunKey, canonical_json
from lookhops.runs.record import HISTORY, RunRecord
from lookhops.runs.results import CellResult, check_note

APPLICATION, VERSION = 0x4C486F70, 1  # "LHop" in SQLite's header tells our files from others
WAIT = 60.0  # seconds to wait for another process's transaction
RENEWAL, EXPIRY = 5.0, 60.0  # seconds between renewals of claims, and until one expires

SCHEMA = """
CREATE TABLE runs (
    id INTEGER PRIMARY KEY,
    dataset TEXT NOT NULL, fingerprint TEXT NOT NULL,
    model TEXT NOT NULL, architecture TEXT NOT NULL,
    seed INTEGER NOT NULL, protocol TEXT NOT NULL,
    metrics TEXT NOT NULL, history BLOB NOT NULL,
    versions TEXT NOT NULL, machine TEXT NOT NULL,
    finished TEXT NOT NULL, sha256 TEXT NOT NULL,
    UNIQUE (fingerprint, architecture, protocol, seed));
CREATE TABLE claims (
    fingerprint TEXT NOT NULL, architecture TEXT NOT NULL, protocol TEXT NOT NULL,
    seed INTEGER NOT NULL, owner TEXT NOT NULL, beat REAL NOT NULL,
    UNIQUE (fingerprint, architecture, protocol, seed));
CREATE TABLE facts (
    dataset TEXT NOT NULL, fingerprint TEXT NOT NULL, kind TEXT NOT NULL, value TEXT NOT NULL,
    UNIQUE (fingerprint, kind));
"""
WHERE = "fingerprint = ? AND architecture = ? AND protocol = ?"


class Store(AbstractContextManager["Store"]):
    """Finished runs in an SQLite file, which is made if it is not there."""

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self.owner = f"{platform.node()}:{os.getpid()}:{uuid.uuid4().hex}"
        with self._explained():
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.db = connect(self.path)
            self._prepare()

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if self.db.in_transaction:
            self.db.rollback()
        with self._transaction():
            self.db.execute("DELETE FROM claims WHERE owner = ?", (self.owner,))
        self.db.close()

    def finished(self, key: RunKey) -> set[int]:
        return self._seeds("runs", key)

    def claim(self, key: RunKey, seeds: Sequence[int], most: int | None = None) -> list[int]:
        """Of these seeds ``most`` that are neither finished nor claimed: now ours to run."""
        with self._transaction():
            self._drop_dead_claims()
            taken = self._seeds("claims", key) | self.finished(key)
            free = [seed for seed in seeds if seed not in taken][:most]
            self.db.executemany(
                "INSERT INTO claims VALUES (?, ?, ?, ?, ?, ?)",
                [(*key.texts, seed, self.owner, time.time()) for seed in free],
            )
        return free

    def release(self, key: RunKey, seeds: Sequence[int]) -> None:
        with self._transaction():
            self._unclaim(key, seeds)

    def add(self, dataset: str, model: str, key: RunKey, records: Sequence[RunRecord]) -> int:
        """Keep finished runs, all or none; how many of them were not here before."""
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        with self._transaction():
            before = self.db.total_changes
            for record in records:
                values = record.to_dict()
                kept = [canonical_json(values[name]) for name in ("metrics", "versions", "machine")]
                history = canonical_json([dict(row) for row in record.history])
                packed, digest = zlib.compress(history.encode()), checksum(record.seed, *kept)
                self.db.execute(
                    "INSERT OR IGNORE INTO runs (dataset, model, fingerprint, architecture,"
                    " protocol, seed, metrics, versions, machine, history, finished, sha256)"
                    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                    (dataset, model, *key.texts, record.seed, *kept, packed, now, digest),
                )
            added = self.db.total_changes - before
            self._unclaim(key, [record.seed for record in records])
        with self._explained():  # into the file itself: who copies it alone has all finished runs
            self.db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
        return added

    def cells(self) -> list[CellResult]:
        """Every run, by what decides it, in the order in which they were finished."""
        with self._explained():
            return read_cells(self.db, self.path)

    def collect(self, cells: Sequence[Cell]) -> list[CellResult]:
        """The finished runs of these cells, in the order of their seeds."""
        runs = {cell.key: {run.seed: run for run in cell.runs} for cell in self.cells()}
        results = []
        for cell in cells:
            kept = runs.get(cell.key, {})
            if found := tuple(kept[seed] for seed in cell.protocol.seeds if seed in kept):
                results.append(CellResult(cell.dataset, cell.model, cell.key, found))
        return results

    def note(self, dataset: str, fingerprint: str, kind: str, make: Callable[[], Any]) -> Any:
        """What is kept of a data set under ``kind``; made, and kept, if it is not there yet."""
        query = "SELECT rowid, value FROM facts WHERE fingerprint = ? AND kind = ?"
        with self._explained():
            found = self.db.execute(query, (fingerprint, kind)).fetchone()
        if found is not None:
            return read_note(self.path, found[0], dataset, kind, found[1])
        row = (dataset, fingerprint, kind, canonical_json(make()))
        with self._transaction():
            self.db.execute("INSERT OR IGNORE INTO facts VALUES (?, ?, ?, ?)", row)
        return json.loads(row[-1])

    def _seeds(self, table: str, key: RunKey) -> set[int]:
        with self._explained():
            found = self.db.execute(f"SELECT seed FROM {table} WHERE {WHERE}", key.texts)
            return {seed for (seed,) in found}

    @contextmanager
    def renewing(self) -> Iterator[None]:
        """Renew the claims of this process every few seconds while the block runs."""
        stop = threading.Event()
        update = "UPDATE claims SET beat = ? WHERE owner = ?"

        def renew() -> None:
            with closing(connect(self.path)) as db:
                while not stop.wait(RENEWAL):
                    with suppress(sqlite3.Error):  # at worst a run is computed twice, kept once
                        db.execute(update, (time.time(), self.owner))

        thread = threading.Thread(target=renew, daemon=True)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()

    def _drop_dead_claims(self) -> None:
        old = time.time() - EXPIRY
        found = self.db.execute("SELECT DISTINCT owner, beat < ? FROM claims", (old,)).fetchall()
        dead = {owner for owner, lapsed in found if lapsed or not alive(owner)}
        self.db.executemany("DELETE FROM claims WHERE owner = ?", [(owner,) for owner in dead])

    def _unclaim(self, key: RunKey, seeds: Sequence[int]) -> None:
        self.db.executemany(
            f"DELETE FROM claims WHERE {WHERE} AND seed = ? AND owner = ?",
            [(*key.texts, seed, self.owner) for seed in seeds],
        )

    def _prepare(self) -> None:
        """Make the tables of a new file; refuse a file that is not ours."""
        if _state(self.db) == (0, 0, 0):
            retry_locked(lambda: self.db.execute("PRAGMA journal_mode = WAL"), self.path)
            with self._transaction():
                if _state(self.db) == (0, 0, 0):  # no other process has made them meanwhile
                    for statement in SCHEMA.strip().rstrip(";").split(";"):
                        self.db.execute(statement)
                    self.db.execute(f"PRAGMA application_id = {APPLICATION}")
                    self.db.execute(f"PRAGMA user_version = {VERSION}")
        _check_version(self.db, self.path)
        self.cells()  # what is damaged is said now, not after hours of training

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """All of the block or nothing; other processes wait."""
        with self._explained():
            self.db.execute("BEGIN IMMEDIATE")
            try:
                yield
            except BaseException:
                self.db.rollback()
                raise
            self.db.commit()

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            raise LookHopsError(
                f"{self.path}: cannot be used as a store of results ({error})."
            ) from error


def read_store(path: Path) -> tuple[list[CellResult], list[tuple[str, str, Any]]]:
    """The finished cells of a store, and its notes: fingerprint of the graphs, kind, value.

    It is not touched, and read in one transaction: as it was between two runs of other processes.
    """
    try:
        with closing(_connect_to_read(path)) as db:
            db.execute("BEGIN")
            _check_version(db, path)
            rows = "SELECT fingerprint, rowid, dataset, kind, value FROM facts ORDER BY rowid"
            cells, notes = read_cells(db, path), db.execute(rows).fetchall()
    except sqlite3.DatabaseError as error:
        raise LookHopsError(
            f"{path}: not a store of results that can be read ({error})."
        ) from error
    return cells, [(graphs, row[2], read_note(path, *row)) for graphs, *row in notes]


def connect(path: Path) -> sqlite3.Connection:
    """A connection that waits for others and does not lose what was committed."""
    db = sqlite3.connect(path, timeout=WAIT, isolation_level=None)
    db.execute("PRAGMA synchronous = FULL")
    return db


def _connect_to_read(path: Path) -> sqlite3.Connection:
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
    # On a disk without write access, SQLite must know that no process does.
    return sqlite3.connect(f"{address}?immutable=1", uri=True, isolation_level=None)


def _check_version(db: sqlite3.Connection, path: Path) -> None:
    application, version, _ = _state(db)
    if application != APPLICATION:
        raise LookHopsError(f"{path}: an SQLite file, but not a store of LookHops.")
    if version != VERSION:
        raise LookHopsError(f"{path}: a store of version {version}; this LookHops reads {VERSION}.")


def retry_locked(attempt: Callable[[], Any], path: Path, seconds: float = WAIT) -> None:
    """Try again while the database is locked: SQLite does not wait where the journal changes."""
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
    node, _, process = str(owner).rpartition(":")[0].rpartition(":")
    if not node or not process.isdecimal():
        return False  # not what anybody writes who lives
    return node != platform.node() or process_alive(int(process))


def _state(db: sqlite3.Connection) -> tuple[int, int, int]:
    queries = ("PRAGMA application_id", "PRAGMA user_version", "SELECT count(*) FROM sqlite_master")
    application, version, tables = (db.execute(query).fetchone()[0] for query in queries)
    return application, version, tables


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
    """SHA-256 of what a row holds of a run but its history: zlib has a checksum of its own."""
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
