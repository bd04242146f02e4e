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

from lookhops.core.errors import LookHopsError
from lookhops.core.words import QUICK_MARK
from lookhops.report.folders import COLUMNS
from lookhops.runs.keys import RunKey
from lookhops.runs.paper import QUICK_EPOCHS, QUICK_GRAPHS, ROWS
from lookhops.runs.results import CellResult, Results, by_key
from lookhops.runs.rows import StoredRun, read_note, read_runs
from lookhops.runs.store import check_version, connect_to_read
from lookhops.training import Protocol


@dataclass(frozen=True, eq=False)
class Snapshot:
    """What a store held.

    Args:
        results: The finished cells, and what is known of the data sets.
        runs: Of each key and seed, the stored run, with its epochs as the store keeps them.
        commands: The command lines that asked for the runs, in their order.
    """

    results: Results
    runs: Mapping[RunKey, Mapping[int, StoredRun]] = field(default_factory=dict)
    commands: list[str] = field(default_factory=list)

    def history(self, cell: CellResult) -> dict[int, dict[str, list[float]]]:
        """Of each seed of a cell, the columns of its epochs, where it has those that are drawn."""
        stored = self.runs.get(cell.key, {})
        epochs = {seed: stored[seed].history() for seed in cell.seeds if seed in stored}
        return {
            seed: {name: [epoch[name] for epoch in one] for name in one[0] if name != "seconds"}
            for seed, one in epochs.items()
            if one and set(COLUMNS) <= one[0].keys()
        }


def read_store(path: Path, fingerprint: str | None = None) -> Snapshot:
    """Read a store, or say in a sentence why this is none.

    Args:
        path: The store.
        fingerprint: Of the only graphs to be read of; none reads of all.
    """
    try:
        with closing(connect_to_read(path)) as db:
            db.execute("BEGIN")
            check_version(db, path)
            runs = read_runs(db, path)
            rows = db.execute(
                "SELECT fingerprint, rowid, dataset, kind, value FROM facts ORDER BY rowid"
            ).fetchall()
    except sqlite3.DatabaseError as error:
        raise LookHopsError(
            f"{path}: not a store of results that can be read ({error})."
        ) from error
    if fingerprint is not None:
        runs = [run for run in runs if run.key.fingerprint == fingerprint]
        rows = [row for row in rows if row[0] == fingerprint]
    notes = [(graphs, row[2], read_note(path, *row)) for graphs, *row in rows]
    return _snapshot(by_key(runs), notes)


def _snapshot(
    runs: Mapping[RunKey, Mapping[int, StoredRun]], notes: Sequence[tuple[str, str, Any]]
) -> Snapshot:
    """One cell for each network, whatever names its runs were asked for by.

    Args:
        runs: By key and seed.
        notes: Fingerprint of the graphs, kind and value of each.
    """
    cells = []
    for key, by_seed in runs.items():
        first = next(iter(by_seed.values()))
        records = tuple(by_seed[seed].record for seed in sorted(by_seed))
        cells.append(CellResult(first.dataset, first.model, key, records))
    quick = [c for c in cells if _is_quick(c, {run.model for run in runs[c.key].values()})]
    some = {cell.key.fingerprint for cell in quick} if len(quick) < len(cells) else ()
    names = _names(cells, some)
    known: dict[str, dict[str, Any]] = {}
    for fingerprint, kind, value in notes:
        for (_, graphs), name in names.items():  # of those that something is finished of
            if graphs == fingerprint and not kind.startswith("command"):
                known.setdefault(name, {})[kind] = value
    cells = [replace(cell, dataset=names[cell.dataset, cell.key.fingerprint]) for cell in cells]
    results = Results(cells, known, bool(cells) and len(quick) == len(cells))
    commands = [value for _, kind, value in notes if kind.startswith("command")]
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
    sets = dict.fromkeys((cell.dataset, cell.key.fingerprint) for cell in cells)
    found = {}
    for name, fingerprint in sets:
        alike = [f for other, f in sets if other == name and f not in quick]
        if fingerprint in quick:
            found[name, fingerprint] = f"{name}{QUICK_MARK}"
        else:
            found[name, fingerprint] = name if len(alike) == 1 else f"{name} ({fingerprint})"
    return found
