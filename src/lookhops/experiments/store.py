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
from lookhops.experiments.keys import RunKey
from lookhops.experiments.sqlite import (
    APPLICATION,
    SCHEMA,
    VERSION,
    StoredRun,
    alive,
    check_version,
    connect,
    read_note,
    read_runs,
    retry_locked,
)
from lookhops.models.records import RunRecord

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

    def finished(self, key: RunKey) -> set[int]:
        """Seeds whose runs are here."""
        with self._explained():
            found = self.db.execute(f"SELECT seed FROM runs WHERE {WHERE}", key.texts)
            return {seed for (seed,) in found}

    def claim(self, key: RunKey, seeds: Sequence[int], most: int | None = None) -> list[int]:
        """Of these seeds, those that are neither finished nor begun elsewhere: now ours to run.

        Args:
            key: Which runs.
            seeds: The seeds wanted.
            most: Claim no more than so many.
        """
        with self._explained(), self._transaction():
            self._drop_dead_claims()
            begun = self.db.execute(f"SELECT seed FROM claims WHERE {WHERE}", key.texts)
            taken = {seed for (seed,) in begun} | self.finished(key)
            free = [seed for seed in seeds if seed not in taken][:most]
            self.db.executemany(
                "INSERT INTO claims VALUES (?, ?, ?, ?, ?, ?)",
                [(*key.texts, seed, self.owner, time.time()) for seed in free],
            )
        return free

    def release(self, key: RunKey, seeds: Sequence[int]) -> None:
        """Give back claims of runs that were not finished."""
        with self._explained(), self._transaction():
            self._unclaim(key, seeds)

    def add(self, dataset: str, model: str, key: RunKey, records: Sequence[RunRecord]) -> int:
        """Keep finished runs, all or none; how many of them were not here before."""
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        with self._explained(), self._transaction():
            before = self.db.total_changes
            for record in records:
                values = record.to_dict()
                kept = [_text(values[name]) for name in ("metrics", "versions", "machine")]
                packed = zlib.compress(_text([dict(row) for row in record.history]).encode())
                self.db.execute(
                    "INSERT OR IGNORE INTO runs (dataset, model, fingerprint, architecture,"
                    " protocol, seed, metrics, versions, machine, history, finished)"
                    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                    (dataset, model, *key.texts, record.seed, *kept, packed, now),
                )
            added = self.db.total_changes - before
            self._unclaim(key, [record.seed for record in records])
        with self._explained():  # into the file itself: who copies it alone has all finished runs
            self.db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
        return added

    def runs(self) -> list[StoredRun]:
        """Every run in the order in which they were finished."""
        with self._explained():
            return read_runs(self.db, self.path)

    def note(self, dataset: str, fingerprint: str, kind: str, make: Callable[[], Any]) -> Any:
        """What is kept of a data set under ``kind``; made, and kept, if it is not there yet."""
        query = "SELECT rowid, value FROM facts WHERE fingerprint = ? AND kind = ?"
        with self._explained():
            found = self.db.execute(query, (fingerprint, kind)).fetchone()
        if found is not None:
            return read_note(self.path, found[0], dataset, kind, found[1])
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

    def _unclaim(self, key: RunKey, seeds: Sequence[int]) -> None:
        self.db.executemany(
            f"DELETE FROM claims WHERE {WHERE} AND seed = ? AND owner = ?",
            [(*key.texts, seed, self.owner) for seed in seeds],
        )

    # ---------------------------------------------------------------- the file

    def _prepare(self) -> None:
        """Make the tables of a new file; refuse a file that is not ours."""
        if self._state() == (0, 0, 0):
            retry_locked(lambda: self.db.execute("PRAGMA journal_mode = WAL"), self.path)
            with self._transaction():
                if self._state() == (0, 0, 0):  # nobody else has made them meanwhile
                    for statement in SCHEMA.strip().rstrip(";").split(";"):
                        self.db.execute(statement)
                    self.db.execute(f"PRAGMA application_id = {APPLICATION}")
                    self.db.execute(f"PRAGMA user_version = {VERSION}")
        check_version(self.db, self.path)
        self._complete()
        self.runs()  # what is damaged is said now, not after hours of training

    def _state(self) -> tuple[int, int, int]:
        """Application, version, and how many tables there are."""
        return (
            self.db.execute("PRAGMA application_id").fetchone()[0],
            self.db.execute("PRAGMA user_version").fetchone()[0],
            self.db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0],
        )

    def _complete(self) -> None:
        """Rows from before an option existed are given its default, so that they are found."""
        query = "SELECT DISTINCT fingerprint, architecture, protocol FROM runs"
        for texts in self.db.execute(query).fetchall():
            try:
                now = RunKey.from_texts(*texts).texts
            except LookHopsError:
                continue  # of a later version, or damaged
            if now != texts:
                with self._transaction():
                    self.db.execute(
                        "UPDATE OR IGNORE runs SET fingerprint = ?, architecture = ?, protocol = ?"
                        f" WHERE {WHERE}",
                        (*now, *texts),
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


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))
