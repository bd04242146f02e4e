"""A store of results as it is at one moment, read without touching it.

All of it is read in one transaction, so that a store to which others are writing is seen as it was
between two of their runs.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from lookhops.errors import LookHopsError
from lookhops.experiments.keys import Key, architecture_from, canonical, completed, protocol_from
from lookhops.experiments.plan import Cell
from lookhops.experiments.results import CellResult, Results, cell_result
from lookhops.experiments.sqlite import APPLICATION, VERSION, WAIT, read_fact, read_runs, unpacked
from lookhops.paper.reference import ROWS
from lookhops.paper.suites import QUICK_EPOCHS, QUICK_GRAPHS
from lookhops.training import Protocol
from lookhops.words import QUICK_MARK


@dataclass(frozen=True, eq=False)
class Snapshot:
    """What a store held.

    Args:
        results: The finished cells, and what is known of the data sets.
        runs: Of each key and seed, the row that the store has, with the epochs as it keeps them.
        commands: The command lines that asked for the runs, in their order.
    """

    results: Results
    runs: Mapping[Key, Mapping[int, Mapping[str, Any]]] = field(default_factory=dict)
    commands: list[str] = field(default_factory=list)

    def history(self, cell: CellResult) -> dict[int, dict[str, list[float]]]:
        """Of each seed of a cell, the columns of its epochs."""
        rows = self.runs.get(cell.key, {})
        epochs = {seed: unpacked(rows[seed]) for seed in cell.seeds if seed in rows}
        return {s: {name: [e[name] for e in one] for name in one[0]} for s, one in epochs.items()}


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
            runs = read_runs(db, path, history=True)
            facts = db.execute(
                "SELECT rowid, dataset, fingerprint, kind, value FROM facts ORDER BY rowid"
            ).fetchall()
    except sqlite3.DatabaseError as error:
        raise LookHopsError(
            f"{path}: not a store of results that can be read ({error})."
        ) from error
    if fingerprint is not None:
        runs = [row for row in runs if row["fingerprint"] == fingerprint]
        facts = [row for row in facts if row[2] == fingerprint]
    return _snapshot(path, runs, facts)


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


def _snapshot(path: Path, rows: list[dict[str, Any]], facts: list[Any]) -> Snapshot:
    """One cell for each network, whatever names its runs were asked for by."""
    runs: dict[Key, dict[int, dict[str, Any]]] = {}
    for row in rows:
        try:  # as this version writes them: rows from before an option have its default
            texts = completed(row["architecture"]), canonical(protocol_from(row["protocol"]))
        except LookHopsError:
            continue  # from a later version
        runs.setdefault(Key(row["fingerprint"], *texts), {}).setdefault(row["seed"], row)
    cells = []
    for key, by_seed in runs.items():
        first = next(iter(by_seed.values()))
        network, protocol = architecture_from(key.architecture), protocol_from(key.protocol)
        cell = Cell(first["dataset"], first["model"], network, protocol)
        cells.append(cell_result(cell, key, [by_seed[seed] for seed in sorted(by_seed)]))
    quick = [
        cell for cell in cells if _is_quick(cell, {r["model"] for r in runs[cell.key].values()})
    ]
    names = _names(cells, {cell.fingerprint for cell in quick} if len(quick) < len(cells) else ())
    known: dict[str, dict[str, Any]] = {}
    commands = []
    for number, dataset, fingerprint, kind, text in facts:
        value = read_fact(path, number, dataset, kind, text)
        if kind.startswith("command"):
            commands.append(value)
        for (_, graphs), name in names.items():  # of those that something is finished of
            if graphs == fingerprint and not kind.startswith("command"):
                known.setdefault(name, {})[kind] = value
    cells = [replace(cell, dataset=names[cell.dataset, cell.fingerprint]) for cell in cells]
    results = Results(cells, known, bool(cells) and len(quick) == len(cells))
    return Snapshot(results, runs, commands)


def _is_quick(cell: CellResult, names: set[str]) -> bool:
    """Whether ``lookhops paper --quick`` ran it: by the names, the graphs and the epochs."""
    rows = {row.label for row in ROWS.values()}
    graphs = sum(cell.metrics[f"{part}_graphs"][0] for part in ("train", "val", "test"))
    protocol = replace(Protocol(), max_epochs=QUICK_EPOCHS, precision=cell.protocol.precision)
    return bool(names & rows) and graphs <= QUICK_GRAPHS and cell.protocol == protocol


def _names(cells: Sequence[CellResult], quick: Collection[str]) -> dict[tuple[str, str], str]:
    """What to call the data sets, by name and fingerprint: two may have one name.

    Args:
        cells: On these data sets.
        quick: Fingerprints of those that the quick version took a few graphs of.
    """
    sets = dict.fromkeys((cell.dataset, cell.fingerprint) for cell in cells)
    found = {}
    for name, fingerprint in sets:
        alike = [f for other, f in sets if other == name and f not in quick]
        if fingerprint in quick:
            found[name, fingerprint] = f"{name}{QUICK_MARK}"
        else:
            found[name, fingerprint] = name if len(alike) == 1 else f"{name} ({fingerprint})"
    return found
