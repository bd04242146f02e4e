"""Finished runs as a report: read from a store, named, grouped to be compared, and the page."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pandas as pd

from lookhops.core.errors import LookHopsError
from lookhops.core.tables import Table
from lookhops.core.words import QUICK_MARK, counted, joined
from lookhops.learners import learner_of
from lookhops.neighbourhoods.charts import gains
from lookhops.report.folders import COLUMNS
from lookhops.report.page import Block, Lines, Report, Section, Subheading, Tile, reproduce_section
from lookhops.report.paper.claims import CLAIMS, NOT_REPRODUCED, REPRODUCED, judge
from lookhops.report.sections.comparison import comparison_section
from lookhops.report.sections.data import data_section
from lookhops.report.sections.training import training_charts
from lookhops.runs import store
from lookhops.runs.compare import Comparison, comparison
from lookhops.runs.paper import QUICK_EPOCHS, QUICK_GRAPHS, ROWS
from lookhops.runs.record import Machine
from lookhops.runs.results import CellResult, Results
from lookhops.training import Protocol

#: More data sets than this are counted in the title, not named.
MOST_NAMES = 3


def runs_report(results: Results, again: Lines = (), paper: bool = False) -> Report:
    """The report on finished runs; of the ``paper``, its claims are judged by them."""
    if not results.cells:
        raise LookHopsError("No run is finished yet: there is nothing to report.")
    groups = grouped(results)
    sections = [*_data_sections(results)]
    verdicts = [judge(claim, results) for claim in CLAIMS] if paper else []
    if not any(answer.by_dataset for verdict in verdicts for answer in verdict.answers):
        verdicts = []  # none of the paper's rows was run
    if verdicts:
        rows = [[one.claim.title, one.said] for one in verdicts]
        lead = "What the paper says of its models, answered from these runs."
        table = Table(("claim", "with these runs"), rows)
        sections.append(Section("claims", "The paper's claims", lead, [table]))
    sections.append(compared := comparison_section(groups))
    if training := [*_training_blocks(groups)]:
        lead = (
            "How the best model trained. Training stops when the validation loss has not fallen "
            f"for {counted(groups[0].best.protocol.patience, 'epoch')}; the weights of its lowest "
            "value, marked by a diamond, are kept and tested."
        )
        sections.append(Section("training", "Training", lead, training))
    sections.append(_reproduce_section(groups, results.commands, again))
    datasets = list(dict.fromkeys(group.dataset for group in groups))
    what = joined(datasets) if len(datasets) <= MOST_NAMES else counted(len(datasets), "data set")
    names = list(dict.fromkeys(name for group in groups for name in group.scores))
    title = f"{what}: {names[0] if len(names) == 1 else f'{len(names)} models compared'}"
    title += QUICK_MARK if results.quick else ""
    cells = [cell for group in groups for cell in group.finished]
    counts = {
        "data set": len(datasets),
        "model": len({cell.model for cell in cells}),
        "finished run": sum(len(cell.seeds) for cell in cells),
    }
    tiles = [Tile(f"{what}s", f"{count:,}") for what, count in counts.items()]
    if len(groups) == 1:
        score, best = groups[0].written[groups[0].best.model], groups[0].best.model
        tiles[:1] = [Tile(f"best test {groups[0].main.title}", score, best), *compared.tiles]
    if verdicts:
        reproduced = sum(one.word == REPRODUCED for one in verdicts)
        denied = sum(one.word == NOT_REPRODUCED for one in verdicts)
        note = f"{denied} not reproduced, {len(verdicts) - reproduced - denied} open"
        tiles.append(Tile("claims reproduced", f"{reproduced} of {len(verdicts)}", note))
    return Report(title, _summary(groups, counts), tiles, sections)


def _summary(groups: Sequence[Comparison], counts: Mapping[str, int]) -> str:
    datasets, models, runs = (counted(count, what) for what, count in counts.items())
    text = f"{models} on {datasets}, {runs}"
    if len(groups) == 1:
        [group] = groups
        first = "comes first, with" if len(group.cells) > 1 else "has"
        seeds, best = counted(len(group.seeds), "seed"), group.best.model
        text += f"; {best} {first} a test {group.main.title} of {group.written[best]} over {seeds}"
    if all(group.quick for group in groups):
        return f"{text}. This is the quick version, which says nothing about the models."
    few = any(group.quick for group in groups)
    return f"{text}.{' The quick version says nothing about the models.' if few else ''}"


def _data_sections(results: Results) -> Iterator[Section]:
    """The data, and the hop information, of every data set that has finished runs."""

    finished = {cell.dataset for cell in results.cells}
    notes = {name: notes for name, notes in results.notes.items() if name in finished}

    def noted(kind: str) -> dict[str, Any]:
        return {name: found for name, of_set in notes.items() if (found := of_set.get(kind))}

    graphs, gained = noted("graphs"), noted("gain")
    sizes = {**graphs, **noted("data")}
    if len(sizes) == 1 and graphs:
        yield data_section(*next(iter(graphs.items())))
    elif sizes:
        columns = ("graphs", "nodes", "edges", "features")
        rows = [[name, *(f"{size[c]:,}" for c in columns)] for name, size in sizes.items()]
        table = Table(("data set", *columns), rows, "Edges count each pair of nodes once.")
        lead = f"{counted(len(rows), 'data set')}: {joined(list(sizes))}."
        yield Section("data", "The data", lead, [table])
    if gained:
        lead = (
            "Measured before any training: the gain of a hop is how much the view of the nodes "
            "changes when each looks one hop further."
        )
        charts = [gains(gain, title=f"{name}. ") for name, gain in gained.items()]
        yield Section("hops", "How many hops matter", lead, charts)


def _training_blocks(groups: Sequence[Comparison]) -> Iterator[Block]:
    """How the best model of each data set trained, where the histories are there."""
    for best in (group.best for group in groups):
        epochs = {(run.seed, 0): pd.DataFrame(run.history) for run in best.runs}
        history = {key: rows for key, rows in epochs.items() if {*COLUMNS} <= {*rows.columns}}
        if history and len(groups) > 1:
            yield Subheading(f"{best.dataset}: {best.model}")
        if history:
            kept = {run.seed: run.metrics["best_epoch"] for run in best.runs}
            yield from training_charts(history, kept, f"{best.model}. ")


def _reproduce_section(
    groups: Sequence[Comparison], commands: Sequence[str], more: Lines = ()
) -> Section:
    """Commands that run it again, with the versions and machines of the runs."""
    lines = [("Run", command) for command in commands] or [
        (f"Run {group.dataset} again", _rerun(group)) for group in groups
    ]
    records = [run for group in groups for cell in group.finished for run in cell.runs]
    rows = [
        ["data", "; ".join(f"{g.dataset}, fingerprint {g.best.key.fingerprint}" for g in groups)],
        ["seeds", ", ".join(map(str, dict.fromkeys(s for g in groups for s in g.seeds)))],
        *environment([(run.versions, run.machine) for run in records]),
    ]
    lead = "Finished runs are kept in the store: the same command runs only what is missing."
    return reproduce_section(lead, [*lines, *more], rows)


def _rerun(group: Comparison) -> str:
    """The ``lookhops compare`` that trains the models of a group."""
    if group.quick:
        return "lookhops paper --quick -o paper"
    models = ",".join(
        learner_of(cell.architecture).spelled
        + (f"/members={cell.protocol.members}" if cell.protocol.members > 1 else "")
        for cell in group.finished
    )
    every = (group.best, *group.finished)
    trained = [cell for cell in every if learner_of(cell.architecture).has_epochs]
    protocol = (trained or [group.best])[0].protocol
    finished = sorted({seed for cell in group.finished for seed in cell.seeds})
    seeds = ",".join(map(str, finished))
    seeds += "," if len(finished) == 1 else ""  # else it would be their number
    dataset = group.dataset.removesuffix(f" ({group.best.key.fingerprint})")
    return (
        f"lookhops compare {shlex.quote(dataset)} --models {models} --seeds {seeds} --epochs "
        f"{protocol.max_epochs} --patience {protocol.patience} --batch-size {protocol.batch_size} "
        f"--lr {protocol.learning_rate:g}"
        + (f" --split {shlex.quote(protocol.split)}" if protocol.split != "file" else "")
        + (" --splits FILE" if protocol.split == "file" else "")
        + (f" --folds {protocol.folds}" if protocol.folds else "")
        + (f" --precision {protocol.precision}" if protocol.precision != "float32" else "")
    )


def environment(runs: Sequence[tuple[Mapping[str, str], Machine]]) -> list[list[str]]:
    """Rows with the versions and the machines of runs, each once."""
    rows = [["versions", ", ".join(map(" ".join, versions.items()))] for versions, _ in runs]
    for _, one in runs:
        rows.append(["machine", f"{one.system}, {one.cores} cores, on {one.device}"])
    return list(map(list, dict.fromkeys(map(tuple, rows))))


# -------------------------------------------------------------------- names and groups


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
    quick_sets = {cell.key.fingerprint for cell in quick} if len(quick) < len(cells) else ()
    names = _names(cells, quick_sets)
    of_sets: dict[str, dict[str, Any]] = {}
    for fingerprint, kind, value in notes:
        for (_, graphs), name in names.items():  # of those that something is finished of
            if graphs == fingerprint and not kind.startswith("command"):
                of_sets.setdefault(name, {})[kind] = value
    cells = [replace(cell, dataset=names[cell.dataset, cell.key.fingerprint]) for cell in cells]
    commands = [value for _, kind, value in notes if kind.startswith("command")]
    return Results(cells, of_sets, bool(cells) and len(quick) == len(cells), commands)


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
