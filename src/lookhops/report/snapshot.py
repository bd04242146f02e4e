"""What a store of results holds, as a report shows it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from lookhops.core.words import QUICK_MARK
from lookhops.runs import store
from lookhops.runs.paper import QUICK_EPOCHS, QUICK_GRAPHS, ROWS
from lookhops.runs.results import CellResult, Results
from lookhops.training import Protocol


@dataclass(frozen=True, eq=False)
class Snapshot:
    """What a store held.

    Args:
        results: The finished cells, and what is known of the data sets.
        commands: The command lines that asked for the runs, in their order.
    """

    results: Results
    commands: list[str] = field(default_factory=list)


def read_store(path: Path, fingerprint: str | None = None) -> Snapshot:
    """What a store holds, one cell for each network, whatever names its runs were asked for by.

    Args:
        path: The store.
        fingerprint: Of the only graphs to be read of; none reads of all.
    """
    cells, notes = store.read_store(path)
    if fingerprint is not None:
        cells = [cell for cell in cells if cell.key.fingerprint == fingerprint]
        notes = [note for note in notes if note[0] == fingerprint]
    cells = [cell.of_seeds(sorted(cell.seeds)) for cell in cells]
    quick = [cell for cell in cells if _is_quick(cell)]
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
    return Snapshot(results, commands)


def _is_quick(cell: CellResult) -> bool:
    """Whether ``lookhops paper --quick`` ran it: by the names, the graphs and the epochs."""
    rows = {row.label for row in ROWS.values()}
    graphs = sum(cell.metrics[f"{part}_graphs"][0] for part in ("train", "val", "test"))
    protocol = replace(Protocol(), max_epochs=QUICK_EPOCHS, precision=cell.protocol.precision)
    return bool(cell.names & rows) and graphs <= QUICK_GRAPHS and cell.protocol == protocol


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
