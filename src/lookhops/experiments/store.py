"""The store: one SQLite file that holds every finished run once.

A run is a row; rows are only ever added, in one transaction each, so that a process that dies at
any moment leaves the finished ones whole. Processes that share a store divide the work by claims:
who begins a run says so, and goes on saying so; the claim of a process that has died lapses.
"""

from __future__ import annotations

import json
import os
import platform
import sqlite3
import threading
import time
import uuid
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lookhops.errors import LookHopsError
from lookhops.experiments.keys import Key, canonical, completed, protocol_from
from lookhops.experiments.records import Record
from lookhops.experiments.sqlite import (
    APPLICATION,
    SCHEMA,
    VERSION,
    alive,
    connect,
    patiently,
    read_fact,
    read_runs,
    unpacked,
)

BEAT, EXPIRY = 5.0, 60.0  # seconds between signs of life, and without one until a claim lapses

WHERE = "fingerprint = ? AND architecture = ? AND protocol = ?"


class Store:
    """Finished runs in a file.

    Args:
        path: The SQLite file; made if it is not there.
    """

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self.owner = f"{platform.node()}:{os.getpid()}:{uuid.uuid4().hex}"
        with self._explained():
            if not self.path.parent.is_dir():
                self.path.parent.mkdir(parents=True)
            self.db = connect(self.path)
            self._prepare()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def close(self) -> None:
        """Give back what this process has claimed and close the file."""
        with self._explained():
            if self.db.in_transaction:
                self.db.rollback()
            with self._transaction():
                self.db.execute("DELETE FROM claims WHERE owner = ?", (self.owner,))
            self.db.close()

    # ---------------------------------------------------------------- runs

    def finished(self, key: Key) -> set[int]:
        """Seeds whose runs are here."""
        with self._explained():
            found = self.db.execute(f"SELECT seed FROM runs WHERE {WHERE}", _values(key))
            return {seed for (seed,) in found}

    def claim(self, key: Key, seeds: Sequence[int], most: int | None = None) -> list[int]:
        """Of these seeds, those that are neither finished nor begun elsewhere: now ours to run.

        Args:
            key: Which runs.
            seeds: The seeds wanted.
            most: Claim no more than so many.
        """
        with self._explained(), self._transaction():
            self._drop_dead_claims()
            begun = self.db.execute(f"SELECT seed FROM claims WHERE {WHERE}", _values(key))
            taken = {seed for (seed,) in begun} | self.finished(key)
            free = [seed for seed in seeds if seed not in taken][:most]
            self.db.executemany(
                "INSERT INTO claims VALUES (?, ?, ?, ?, ?, ?)",
                [(*_values(key), seed, self.owner, time.time()) for seed in free],
            )
        return free

    def release(self, key: Key, seeds: Sequence[int]) -> None:
        """Give back claims of runs that were not finished."""
        with self._explained(), self._transaction():
            self._unclaim(key, seeds)

    def add(self, dataset: str, model: str, key: Key, records: Sequence[Record]) -> int:
        """Keep finished runs, all or none; how many of them were not here before."""
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        with self._explained(), self._transaction():
            before = self.db.total_changes
            for r in records:
                row = (dataset, key.fingerprint, model, key.architecture, r.seed, key.protocol)
                kept = (_text(r.metrics), _packed(r.history), _text(r.versions), _text(r.machine))
                self.db.execute(
                    "INSERT OR IGNORE INTO runs (dataset, fingerprint, model, architecture, seed,"
                    " protocol, metrics, history, versions, machine, finished)"
                    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                    (*row, *kept, now),
                )
            added = self.db.total_changes - before
            self._unclaim(key, [r.seed for r in records])
        with self._explained():  # into the file itself: who copies it alone has all finished runs
            self.db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
        return added

    def rows(self) -> list[dict[str, Any]]:
        """Every run, without its history, in the order in which they were finished."""
        with self._explained():
            return read_runs(self.db, self.path)

    def history(self, key: Key, seed: int) -> list[dict[str, float]]:
        """Epoch by epoch, how a stored run went."""
        with self._explained():
            which = (f"{WHERE} AND seed = ?", *_values(key), seed)
            found = read_runs(self.db, self.path, True, *which)
        if not found:
            raise LookHopsError(f"{self.path}: no such run.")
        return unpacked(found[0])

    # ---------------------------------------------------------------- facts of a data set

    def fact(self, dataset: str, fingerprint: str, kind: str, make: Callable[[], Any]) -> Any:
        """What is known of a data set under ``kind``; made, and kept, if it is not known yet."""
        query = "SELECT rowid, value FROM facts WHERE fingerprint = ? AND kind = ?"
        with self._explained():
            found = self.db.execute(query, (fingerprint, kind)).fetchone()
        if found is not None:
            return read_fact(self.path, found[0], dataset, kind, found[1])
        value = _text(make())
        with self._explained(), self._transaction():
            self.db.execute(
                "INSERT OR IGNORE INTO facts VALUES (?, ?, ?, ?)",
                (dataset, fingerprint, kind, value),
            )
        return json.loads(value)

    # ---------------------------------------------------------------- claims

    @contextmanager
    def beating(self) -> Iterator[None]:
        """While the block runs, say every few seconds that our claims are alive."""
        stop = threading.Event()

        def beat() -> None:
            db = connect(self.path)
            while not stop.wait(BEAT):
                try:
                    db.execute(
                        "UPDATE claims SET beat = ? WHERE owner = ?", (time.time(), self.owner)
                    )
                except sqlite3.Error:
                    continue  # the next beat may do; at worst a run is computed twice, kept once
            db.close()

        thread = threading.Thread(target=beat, daemon=True)
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

    def _unclaim(self, key: Key, seeds: Sequence[int]) -> None:
        self.db.executemany(
            f"DELETE FROM claims WHERE {WHERE} AND seed = ? AND owner = ?",
            [(*_values(key), seed, self.owner) for seed in seeds],
        )

    # ---------------------------------------------------------------- the file

    def _prepare(self) -> None:
        """Make the tables of a new file; refuse a file that is not ours."""
        if self._state() == (0, 0, 0):
            patiently(lambda: self.db.execute("PRAGMA journal_mode = WAL"))
            with self._transaction():
                if self._state() == (0, 0, 0):  # nobody else has made them meanwhile
                    for statement in SCHEMA.strip().rstrip(";").split(";"):
                        self.db.execute(statement)
                    self.db.execute(f"PRAGMA application_id = {APPLICATION}")
                    self.db.execute(f"PRAGMA user_version = {VERSION}")
        application, version, _ = self._state()
        if application != APPLICATION:
            raise LookHopsError(f"{self.path}: an SQLite file, but not a store of LookHops.")
        if version != VERSION:
            raise LookHopsError(
                f"{self.path}: a store of version {version}; this LookHops reads {VERSION}."
            )
        self.rows()  # what is damaged is said now, not after hours of training
        self._complete("architecture", completed)
        self._complete("protocol", lambda text: canonical(protocol_from(text)))

    def _state(self) -> tuple[int, int, int]:
        """Application, version, and how many tables there are."""
        return (
            self.db.execute("PRAGMA application_id").fetchone()[0],
            self.db.execute("PRAGMA user_version").fetchone()[0],
            self.db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0],
        )

    def _complete(self, column: str, written_now: Callable[[str], str]) -> None:
        """Rows from before an option existed are given its default, so that they are found."""
        for (text,) in self.db.execute(f"SELECT DISTINCT {column} FROM runs").fetchall():
            try:
                new = written_now(text)
            except LookHopsError:
                continue  # from a later version: no key of ours
            if new != text:
                with self._transaction():
                    self.db.execute(
                        f"UPDATE OR IGNORE runs SET {column} = ? WHERE {column} = ?", (new, text)
                    )

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """All of the block or nothing; other processes wait."""
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


def _values(key: Key) -> tuple[str, str, str]:
    return key.fingerprint, key.architecture, key.protocol


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def _packed(value: Any) -> bytes:
    return zlib.compress(_text([dict(row) for row in value]).encode())
