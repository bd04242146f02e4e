"""What the store needs of SQLite: the tables, a connection, and who is still alive."""

from __future__ import annotations

import os
import platform
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

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
