"""The report on finished runs, from a store or from results that were exported."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lookhops.core.errors import LookHopsError
from lookhops.core.tables import Table
from lookhops.core.words import QUICK_MARK, counted, joined
from lookhops.neighbourhoods.charts import gains
from lookhops.report.content import Block, Lines, Report, Section, Subheading, Tile
from lookhops.report.finished import grouped
from lookhops.report.folders import COLUMNS, Columns
from lookhops.report.paper.claims import CLAIMS, NOT_REPRODUCED, REPRODUCED, Verdict, judge
from lookhops.report.sections.comparison import comparison_section, lead_tiles
from lookhops.report.sections.data import data_section
from lookhops.report.sections.reproduce import runs_reproduce_section
from lookhops.report.sections.training import training_charts
from lookhops.runs.compare import Comparison
from lookhops.runs.results import CellResult, Results

#: More data sets than this are counted in the title, not named.
MOST_NAMES = 3


def runs_report(results: Results, again: Lines = (), paper: bool = False) -> Report:
    """The report on finished runs; of the ``paper``, its claims are judged by them."""
    if not results.cells:
        raise LookHopsError("No run is finished yet: there is nothing to report.")
    groups = grouped(results)
    verdicts = [judge(claim, results) for claim in CLAIMS] if paper else []
    if not any(answer.by_dataset for verdict in verdicts for answer in verdict.answers):
        verdicts = []  # none of the paper's rows was run
    found = [
        *_data_sections(results),
        _claims_section(verdicts),
        comparison_section(groups),
        _training_section(groups),
        runs_reproduce_section(groups, results.commands, again),
    ]
    sections = [section for section in found if section is not None]
    datasets = list(dict.fromkeys(group.dataset for group in groups))
    what = joined(datasets) if len(datasets) <= MOST_NAMES else counted(len(datasets), "data set")
    names = list(dict.fromkeys(name for group in groups for name in group.scores))
    title = f"{what}: {names[0] if len(names) == 1 else f'{len(names)} models compared'}"
    title += QUICK_MARK if results.quick else ""
    return Report(title, _summary(groups), _tiles(groups, verdicts), sections)


def _counts(groups: Sequence[Comparison]) -> dict[str, int]:
    """Data sets, models and finished runs."""
    cells = [cell for group in groups for cell in group.finished]
    return {
        "data set": len({group.dataset for group in groups}),
        "model": len({cell.model for cell in cells}),
        "finished run": sum(len(cell.seeds) for cell in cells),
    }


def _summary(groups: Sequence[Comparison]) -> str:
    """The runs in one plain sentence."""
    datasets, models, runs = (counted(n, what) for what, n in _counts(groups).items())
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


def _tiles(groups: Sequence[Comparison], verdicts: Sequence[Verdict]) -> list[Tile]:
    tiles = [Tile(f"{what}s", f"{count:,}") for what, count in _counts(groups).items()]
    if len(groups) == 1:
        best = groups[0].best.model
        first = Tile(f"best test {groups[0].main.title}", groups[0].written[best], best)
        tiles[:1] = [first, *lead_tiles(groups[0])]
    if verdicts:
        reproduced = sum(one.word == REPRODUCED for one in verdicts)
        denied = sum(one.word == NOT_REPRODUCED for one in verdicts)
        rest = f"{denied} not reproduced, {len(verdicts) - reproduced - denied} open"
        tiles.append(Tile("claims reproduced", f"{reproduced} of {len(verdicts)}", rest))
    return tiles


def _data_sections(results: Results) -> list[Section]:
    """The data, and the hop information, of every data set that has finished runs."""
    sections: list[Section] = []
    finished = {cell.dataset for cell in results.cells}

    def noted(kind: str) -> dict[str, Any]:
        found = {name: notes.get(kind) for name, notes in results.notes.items()}
        return {name: note for name, note in found.items() if note and name in finished}

    graphs, gained = noted("graphs"), noted("gain")
    known = {**graphs, **noted("data")}
    if len(known) == 1 and graphs:
        sections.append(data_section(*next(iter(graphs.items()))))
    elif known:
        columns = ("graphs", "nodes", "edges", "features")
        rows = [[name, *(f"{size[c]:,}" for c in columns)] for name, size in known.items()]
        table = Table(("data set", *columns), rows, "Edges count each pair of nodes once.")
        lead = f"{counted(len(rows), 'data set')}: {joined(list(known))}."
        sections.append(Section("data", "The data", lead, [table]))
    if gained:
        lead = (
            "Measured before any training: the gain of a hop is how much the view of the nodes "
            "changes when each looks one hop further."
        )
        charts: list[Block] = [gains(gain, title=f"{name}. ") for name, gain in gained.items()]
        sections.append(Section("hops", "How many hops matter", lead, charts))
    return sections


def _claims_section(verdicts: Sequence[Verdict]) -> Section | None:
    if not verdicts:
        return None
    rows = [[one.claim.title, one.said] for one in verdicts]
    lead = "What the paper says of its models, answered from these runs."
    table = Table(("claim", "with these runs"), rows)
    return Section("claims", "The paper's claims", lead, [table])


def _histories(cell: CellResult) -> dict[int, Columns]:
    """Of each seed of a cell, the columns of its epochs, where it has those that are drawn."""
    epochs = {run.seed: run.history for run in cell.runs}
    return {
        seed: {name: [epoch[name] for epoch in one] for name in one[0] if name != "seconds"}
        for seed, one in epochs.items()
        if one and set(COLUMNS) <= one[0].keys()
    }


def _training_section(groups: Sequence[Comparison]) -> Section | None:
    """How the best model of each data set trained, where the histories are there."""
    blocks: list[Block] = []
    for group in groups:
        best, history = group.best, _histories(group.best)
        if history and len(groups) > 1:
            blocks.append(Subheading(f"{group.dataset}: {best.model}"))
        if history:
            kept = {run.seed: run.metrics["best_epoch"] for run in best.runs}
            blocks += training_charts(history, kept, f"{best.model}. ")
    if not blocks:
        return None
    lead = (
        "How the best model trained. Training stops when the validation loss has not fallen for "
        f"{counted(groups[0].best.protocol.patience, 'epoch')}; the weights of its lowest "
        "value, marked by a diamond, are kept and tested."
    )
    return Section("training", "Training", lead, blocks)
