"""The page of ``lookhops evaluate``: how well a model answers graphs whose truth is known."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lookhops.core.paired import CONFIDENCE
from lookhops.core.tables import Table
from lookhops.core.words import agreeing, counted
from lookhops.models.labelled import Evaluation, TargetEvaluation
from lookhops.report.content import Block, Chart, Lines, Report, Section, Subheading, Tile
from lookhops.report.sections.reproduce import reproduce_section
from lookhops.tasks.metrics import LEAST_OF_CLASS, RESAMPLES


def evaluation_report(found: Evaluation, model: str, again: Lines = ()) -> Report:
    """The page on an evaluation; ``again`` are command lines, each with what it does."""
    several = len(found.targets) > 1
    blocks: list[Block] = []
    for target in found.targets:
        blocks += [Subheading(target.name)] if several else []
        blocks += [metrics_table(target), *_charts(found, target)]
    lead = seen_sentence(found)
    sections = [Section("results", "Results", lead, blocks)]
    if again:
        lead = "The same model and graphs give the same numbers."
        sections.append(reproduce_section(lead, again))
    summary = f"{counted(len(found.graphs), 'graph')}, answered by {model}."
    return Report(f"{found.graphs.name}: evaluation", summary, _tiles(found), sections)


def metrics_table(target: TargetEvaluation) -> Table:
    """The metrics of a target with their intervals, of all graphs and of those not seen before."""
    both = [target.all, *([target.new] if target.new else [])]
    rows = []
    for metric in target.metrics:
        if metric.name not in target.all.values:
            continue
        row = [metric.title]
        for measured in both:
            ends = measured.intervals.get(metric.name) or ()
            row.append(metric.written(measured.values.get(metric.name)))
            row.append(metric.written(*ends, joint=" to "))
        rows.append(row)
    level = f"{100 * CONFIDENCE:g}%"
    head = ["metric", counted(target.all.graphs, "graph"), level]
    head += [f"{target.new.graphs:,} new", level] if target.new else []
    note = f"{level}: the middle {level} of {RESAMPLES:,} redrawn sets of the graphs."
    note += " New: in neither the training nor a validation part." if target.new else ""
    return Table(head, rows, f"{note} {too_few_sentence(target)}".rstrip())


def too_few_sentence(target: TargetEvaluation) -> str:
    """Which classes have too few graphs for intervals of metrics over classes; nothing if none."""
    parts = [
        f"{where} " + ", ".join(f"'{name}' ({count})" for name, count in measured.too_few.items())
        for where, measured in (("of", target.all), ("among the new ones of", target.new))
        if measured is not None and measured.too_few
    ]
    if not parts:
        return ""
    few = f"fewer than {LEAST_OF_CLASS} graphs"
    return f"Metrics over classes have no interval where there are {few}: {'; '.join(parts)}."


def seen_sentence(found: Evaluation) -> str:
    """How many of the graphs the model was trained on."""
    trained, validated = found.count("train"), found.count("val")
    if trained is None or validated is None:
        return "Whether the model has seen the graphs is not known: it is of an earlier version."
    total = counted(len(found.graphs), "graph")
    verb = agreeing(trained, "was", "were")
    return (
        f"Of {total}, {trained:,} {verb} in the training part and {validated:,} in the validation "
        "part alone, by what they are."
    )


def _tiles(found: Evaluation) -> list[Tile]:
    tiles = [Tile("graphs", f"{len(found.graphs):,}")]
    for target in found.targets[:3]:
        main = target.metrics[0]
        measured = target.new or target.all
        note = "not seen before" if target.new else "all graphs"
        several = len(found.targets) > 1
        name = f"{target.name}: {main.title}" if several else main.title
        tiles.append(Tile(name, main.written(measured.values.get(main.name)), note))
    if (trained := found.count("train")) is not None:
        tiles.append(Tile("in the training part", f"{trained:,}"))
    return tiles


def _charts(found: Evaluation, target: TargetEvaluation) -> Sequence[Chart]:
    """Of the graphs that the model has not seen, where there are any, else of all."""
    known = ~np.isnan(target.truth)
    if target.new is not None and found.part is not None:
        known &= found.part == ""
    rows = np.flatnonzero(known)
    seen = " not seen before" if target.new else ""
    n = f"n = {counted(len(rows), 'graph')}{seen}"
    if not len(rows):
        return []
    ids = [found.answers.ids[row] for row in rows]
    nodes = found.graphs.nodes_per_graph.cpu().numpy()[rows]
    return target.answers.rows(rows).charts(target.truth[rows], ids, nodes, n)
