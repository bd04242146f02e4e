"""Finished runs as a report shows them: read from a store, named, and grouped to be compared."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from lookhops.core.words import QUICK_MARK
from lookhops.runs import store
from lookhops.runs.compare import Comparison, comparison
from lookhops.runs.paper import QUICK_EPOCHS, QUICK_GRAPHS, ROWS
from lookhops.runs.results import CellResult, Results
from lookhops.training import Protocol


def read_store(path: Path, fingerprint: str | None = None) -> Results:
    """What a store holds, one cell for each network, whatever names its runs were asked for by.

    With a fingerprint only what it holds of those graphs.
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
    commands = [value for _, kind, value in notes if kind.startswith("command")]
    return Results(cells, known, bool(cells) and len(quick) == len(cells), commands)


def _is_quick(cell: CellResult) -> bool:
    """Whether ``lookhops paper --quick`` ran it: by the names, the graphs and the epochs."""
    rows = {row.label for row in ROWS.values()}
    graphs = sum(cell.metrics[f"{part}_graphs"][0] for part in ("train", "val", "test"))
    protocol = replace(Protocol(), max_epochs=QUICK_EPOCHS, precision=cell.protocol.precision)
    return bool(cell.names & rows) and graphs <= QUICK_GRAPHS and cell.protocol == protocol


def _names(cells: Sequence[CellResult], quick: Collection[str]) -> dict[tuple[str, str], str]:
    """What to call the data sets, by name and fingerprint: two may have one name.

    ``quick`` are the fingerprints of those that the quick version took a few graphs of.
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


def grouped(results: Results) -> list[Comparison]:
    """The finished runs, by what can be compared with what."""
    by_split: dict[Any, list[CellResult]] = {}
    for cell in results.cells:
        protocol = cell.protocol
        drawn = (protocol.fractions, protocol.split, protocol.folds, cell.key.splits)
        by_split.setdefault((cell.dataset, cell.key.fingerprint, drawn), []).append(cell)
    groups = []
    for (dataset, _, _), cells in by_split.items():
        named = _named_apart(cells)
        quick = results.quick or dataset.endswith(QUICK_MARK)
        groups.append(comparison(dataset, _sharing(named), finished=named, quick=quick))
    return groups


def _named_apart(cells: Sequence[CellResult]) -> list[CellResult]:
    """The cells, those of one name distinguished by the options in which they differ."""
    found = []
    for cell in cells:
        alike = [other for other in cells if other.model == cell.model]
        name = cell.model
        for part in ("architecture", "protocol"):
            options = [asdict(getattr(other, part)) for other in alike]
            for key, value in asdict(getattr(cell, part)).items():
                if key != "seeds" and any(other.get(key) != value for other in options):
                    name += f", {key.replace('_', ' ')} {value}"
        if any(other.key.layers != cell.key.layers for other in alike):
            name += f", layers {(cell.key.layers or 'unknown')[:8]}"
        found.append(replace(cell, model=name))
    return found


def _sharing(cells: Sequence[CellResult]) -> list[CellResult]:
    """The cells that share splits: one that has too few does not take them from the rest."""
    order = sorted(cells, key=lambda cell: -len(cell.seeds))
    chosen, shared = set(), set(order[0].seeds)
    for cell in order:
        common = shared & set(cell.seeds)
        if len(common) >= min(2, len(shared)):
            chosen.add(cell.model)
            shared = common
    return [cell for cell in cells if cell.model in chosen]
