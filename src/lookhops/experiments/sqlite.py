"""What the store needs of SQLite: the tables and their rows, a connection, who is still alive."""

from __future__ import annotations

import os
import platform
import sqlite3
import time
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lookhops.errors import LookHopsError
from lookhops.experiments.checks import (
    NUMBER,
    TEXT,
    WHOLE,
    check_entries,
    check_fact,
    check_options,
    check_run,
    decoded,
)
from lookhops.nn import Architecture
from lookhops.training import Protocol

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


#: A run without its history.
COLUMNS = ("id", "dataset", "fingerprint", "model", "architecture", "protocol", "seed", "finished")
DECODED = ("metrics", "versions", "machine")


def connect(path: Path) -> sqlite3.Connection:
    """A connection that waits for others and does not lose what was committed."""
    db = sqlite3.connect(path, timeout=WAIT, isolation_level=None)
    db.execute("PRAGMA synchronous = FULL")
    return db


def patiently(attempt: Callable[[], Any]) -> None:
    """Try until it works: SQLite does not wait by itself when a file changes its journal."""
    for _ in range(100):
        try:
            attempt()
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error):
                raise
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


def read_runs(
    db: sqlite3.Connection, path: Path, history: bool = False, where: str = "", *values: Any
) -> list[dict[str, Any]]:
    """Every run in the order in which they were finished; a damaged one is one sentence.

    Args:
        db: The store.
        path: Where it is, to be said.
        history: Whether to read their epochs too, still packed: :func:`unpacked` reads them.
        where: Which runs, as SQL has it, with values.
    """
    names = (*COLUMNS, *DECODED, *(("history",) if history else ()))
    chosen = f" WHERE {where}" if where else ""
    query = f"SELECT {', '.join(names)} FROM runs{chosen} ORDER BY id"
    found = [dict(zip(names, row, strict=True)) for row in db.execute(query, values).fetchall()]
    for row in found:
        row["path"] = path
        with _whole_row(row):
            check_entries(row, dict.fromkeys(("dataset", "fingerprint", "model"), TEXT), "row")
            check_entries(row, {"seed": WHOLE}, "row")
            check_options(Architecture, decoded(row["architecture"], "architecture"))
            check_options(Protocol, decoded(row["protocol"], "protocol"))
            row.update({name: decoded(row[name], name) for name in DECODED})
            check_run(*(row[name] for name in DECODED))
    return found


def unpacked(row: Mapping[str, Any]) -> list[dict[str, float]]:
    """Epoch by epoch, how a run that was read with its history went."""
    with _whole_row(row):
        try:
            text = zlib.decompress(row["history"])
        except (zlib.error, TypeError) as error:
            raise LookHopsError("history cannot be unpacked") from error
        epochs = decoded(text, "history")
        if not isinstance(epochs, list) or len(epochs) < max(row["metrics"]["best_epoch"], 1):
            raise LookHopsError("history has not the epochs of the run")
        check_entries(epochs[0], {}, "an epoch of history")
        for epoch in epochs:
            check_entries(epoch, dict.fromkeys(epochs[0], _MAYBE_NAN), "an epoch of history")
        return epochs


_MAYBE_NAN = (NUMBER[0], lambda value: isinstance(value, int | float))  # losses may be anything


@contextmanager
def _whole_row(row: Mapping[str, Any]) -> Iterator[None]:
    """Say which row is damaged, and what to do about it."""
    try:
        yield
    except LookHopsError as error:
        which = f"{row['model']} on {row['dataset']}, seed {row['seed']}"
        raise LookHopsError(
            f"{row['path']}: a stored run is damaged ({which}: {error}); delete it "
            f"(DELETE FROM runs WHERE id = {row['id']}), and it is trained again when asked for."
        ) from error


def read_fact(path: Path, row: int, dataset: str, kind: str, text: Any) -> Any:
    """A fact of a data set, or one sentence where it is damaged."""
    try:
        value = decoded(text, kind)
        check_fact(kind, value)
        return value
    except LookHopsError as error:
        raise LookHopsError(
            f"{path}: what is stored of {dataset} is damaged ({error}); delete it "
            f"(DELETE FROM facts WHERE rowid = {row}), and it is counted again when asked for."
        ) from error
