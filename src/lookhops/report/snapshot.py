"""A store of results as it is at one moment, read without touching it.

All of it is read in one transaction, so that a store to which others are writing is seen as it was
between two of their runs.
"""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lookhops.errors import LookHopsError
from lookhops.experiments.plan import Key, architecture_from, canonical, protocol_from
from lookhops.experiments.results import CellResult, Results
from lookhops.experiments.sqlite import APPLICATION, VERSION, WAIT


@dataclass(frozen=True, eq=False)
class Snapshot:
    """What a store held.

    Args:
        results: The finished cells, and what is known of the data sets.
        packed: Of each cell, the epochs of its seeds, as the store keeps them.
        commands: The command lines that asked for the runs, in their order.
    """

    results: Results
    packed: Mapping[Key, Mapping[int, bytes]] = field(default_factory=dict)
    commands: list[str] = field(default_factory=list)

    def history(self, key: Key) -> dict[int, dict[str, list[float]]]:
        """Of each seed of a cell, the columns of its epochs."""
        return {seed: _columns(packed) for seed, packed in self.packed.get(key, {}).items()}


def read_store(path: Path, fingerprint: str | None = None) -> Snapshot:
    """Read a store, or say in a sentence why this is none.

    Args:
        path: The store.
        fingerprint: Of the only graphs to be read of; none reads of all.
    """
    try:
        with closing(_open(path)) as db:
            db.execute("BEGIN")
            (application,) = db.execute("PRAGMA application_id").fetchone()
            (version,) = db.execute("PRAGMA user_version").fetchone()
            if application != APPLICATION:
                raise LookHopsError(f"{path}: an SQLite file, but not a store of LookHops.")
            if version != VERSION:
                raise LookHopsError(
                    f"{path}: a store of version {version}; this LookHops reads {VERSION}."
                )
            runs = db.execute(
                "SELECT dataset, fingerprint, model, architecture, protocol, seed, metrics,"
                " versions, machine, history FROM runs ORDER BY id"
            ).fetchall()
            facts = db.execute(
                "SELECT dataset, fingerprint, kind, value FROM facts ORDER BY rowid"
            ).fetchall()
    except sqlite3.DatabaseError as error:
        raise LookHopsError(
            f"{path}: not a store of results that can be read ({error})."
        ) from error
    if fingerprint is not None:
        runs, facts = ([row for row in rows if row[1] == fingerprint] for rows in (runs, facts))
    return _snapshot(runs, facts)


def _open(path: Path) -> sqlite3.Connection:
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


def _snapshot(runs: list[Any], facts: list[Any]) -> Snapshot:
    cells: dict[tuple[str, str, Key], list[Any]] = {}
    for dataset, fingerprint, model, network, training, *rest in runs:
        try:  # as this version writes them: rows from before an option have its default
            texts = canonical(architecture_from(network)), canonical(protocol_from(training))
        except LookHopsError:
            continue  # from a later version
        cells.setdefault((dataset, model, Key(fingerprint, *texts)), []).append(rest)
    found, packed = [], {}
    for (dataset, model, key), rows in cells.items():
        rows.sort(key=lambda row: row[0])
        metrics = [json.loads(row[1]) for row in rows]
        found.append(
            CellResult(
                dataset=dataset,
                model=model,
                architecture=architecture_from(key.architecture),
                protocol=protocol_from(key.protocol),
                fingerprint=key.fingerprint,
                seeds=tuple(row[0] for row in rows),
                metrics={name: [one.get(name) for one in metrics] for name in metrics[0]},
                environments=[
                    {"versions": json.loads(row[2]), "machine": json.loads(row[3])} for row in rows
                ],
            )
        )
        packed[key] = {row[0]: row[4] for row in rows}
    known: dict[str, dict[str, Any]] = {}
    commands = []
    prints: dict[str, set[str]] = {}
    for dataset, fingerprint, *_ in facts:
        prints.setdefault(dataset, set()).add(fingerprint)
    for dataset, fingerprint, kind, value in facts:
        if kind.startswith("command"):
            commands.append(json.loads(value))
            continue
        # Two sets may have one name: their graphs tell them apart.
        name = dataset if len(prints[dataset]) == 1 else f"{dataset} ({fingerprint})"
        known.setdefault(name, {})[kind] = json.loads(value)
    return Snapshot(Results(found, known), packed, commands)


def _columns(packed: bytes) -> dict[str, list[float]]:
    rows = json.loads(zlib.decompress(packed))
    return {name: [row[name] for row in rows] for name in (rows[0] if rows else ())}
