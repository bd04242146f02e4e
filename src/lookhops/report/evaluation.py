"""How well a model answers: the section on its tests, and the page of ``lookhops evaluate``."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lookhops.core.arrays import Array
from lookhops.core.charts import Chart
from lookhops.core.paired import CONFIDENCE
from lookhops.core.tables import Table
from lookhops.core.words import agreeing, counted, span
from lookhops.models.labelled import Evaluation, TargetEvaluation
from lookhops.report.folders import ModelFolder
from lookhops.report.page import Block, Lines, Report, Section, Subheading, Tile, reproduce_section
from lookhops.tasks import TargetTask
from lookhops.tasks.answers import Tested
from lookhops.tasks.metrics import LEAST_OF_CLASS, RESAMPLES, interval
from lookhops.tasks.task import Head

#: More seeds than this have no columns, more targets no key figures.
SHOWN_SEEDS, SHOWN_TARGETS = 5, 3


def performance_section(model: ModelFolder) -> Section | None:
    """Metrics with intervals, and charts, of each target; none without a test."""
    tested = [one["test_graphs"] for one in model.config["metrics"]["seeds"].values()]
    if not tested:
        return None
    seeds, heads, main = counted(len(tested), "seed"), model.task.heads, model.task.main
    n = f"n = {span(min(tested), max(tested))} test graphs a seed, {seeds}"
    lead, blocks = "", list[Block]()
    for head in heads:
        answers = model.answers(head) if len(heads) > 1 else None
        if answers is not None:  # blanks do not count
            n = f"n = {counted(len(answers), 'test graph')} with {head.name}, {seeds}"
        found = model.tested(head, n)
        lead = head.task.results(found)
        blocks += [Subheading(head.name, lead)] if len(heads) > 1 else []
        blocks += [tested_table(head, found, SHOWN_SEEDS), *head.task.charts(found)]
    if len(heads) > 1:
        lead = f"{counted(len(heads), 'target')}, answered by one network."
        lead += f" The {main.title}: {score}." if (score := model.score(main)) else ""
    return Section("results", "Results", lead, blocks)


def tested_table(head: Head, tested: Tested, most_seeds: int) -> Table:
    """Mean, spread and interval of each metric of a target, and the seeds where there are few."""
    seeds, several = tested.seeds, len(tested.seeds) > 1
    shown = list(seeds) if several and len(seeds) <= most_seeds else []
    intervals = _intervals(head.task, tested)
    rows = []
    for metric in head.task.metrics:
        found = tested.summary.get(metric.name)
        if found is None or not metric.shown:
            continue
        ends = found.get("interval") or intervals.get(metric.name) or ()
        written = metric.written(found["mean"], *([found["std"]] if several else []))
        more = (
            metric.written(*ends, joint=" to "),
            *(metric.written(seeds[seed].get(metric.name)) for seed in shown),
        )
        rows.append([metric.title, written, *(text.removesuffix(" %") for text in more)])
    columns = ("test", "mean ± std" if several else "value", "95% interval")
    caption = (
        f"{tested.n}. Interval: 95% of {RESAMPLES:,} redrawn sets of test graphs, mean over seeds."
    )
    return Table((*columns, *(f"seed {seed}" for seed in shown)), rows, caption)


def _intervals(task: TargetTask, tested: Tested) -> dict[str, list[float] | None]:
    """Bootstrap intervals of the mean over the seeds, of metrics that are redrawn."""
    if tested.answers is None:
        return {}
    generator = np.random.default_rng(0)
    drawn: dict[str, list[Array]] = {}
    for seed in dict.fromkeys(tested.answers.seed.tolist()):
        one = tested.answers.of_seed(seed)
        draws = task.redrawn(one.truth, one.values, tested.seeds[seed], generator)
        for name, redrawn in draws.items():
            drawn.setdefault(name, []).append(redrawn)
    return {name: interval(np.mean(of_seeds, axis=0)) for name, of_seeds in drawn.items()}


def evaluation_report(found: Evaluation, model: str, again: Lines = ()) -> Report:
    """The page on an evaluation; ``again`` are command lines, each with what it does."""
    several, blocks = len(found.targets) > 1, list[Block]()
    tiles = [Tile("graphs", f"{len(found.graphs):,}")]
    for target in found.targets:
        blocks += [Subheading(target.name)] if several else []
        blocks += [metrics_table(target), *_charts(found, target)]
        main, measured = target.metrics[0], target.new or target.all
        note = "not seen before" if target.new else "all graphs"
        name = f"{target.name}: {main.title}" if several else main.title
        tiles.append(Tile(name, main.written(measured.values.get(main.name)), note))
    trained = Tile("in the training part", f"{found.count('train'):,}")
    sections = [Section("results", "Results", seen_sentence(found), blocks)]
    if again:
        lead = "The same model and graphs give the same numbers."
        sections.append(reproduce_section(lead, again))
    summary = f"{counted(len(found.graphs), 'graph')}, answered by {model}."
    title = f"{found.graphs.name}: evaluation"
    return Report(title, summary, [*tiles[: SHOWN_TARGETS + 1], trained], sections)


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
            row.append(metric.written(*ends, joint=" to ").removesuffix(" %"))
        rows.append(row)
    share = f"{100 * CONFIDENCE:g}%"
    head = ["metric", counted(target.all.graphs, "graph"), share]
    head += [f"{target.new.graphs:,} new", share] if target.new else []
    note = f"{share}: the middle {share} of {RESAMPLES:,} redrawn sets of the graphs."
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
    total = counted(len(found.graphs), "graph")
    verb = agreeing(trained, "was", "were")
    return (
        f"Of {total}, {trained:,} {verb} in the training part and {validated:,} in the validation "
        "part alone, by what they are."
    )


def _charts(found: Evaluation, target: TargetEvaluation) -> Sequence[Chart]:
    """Of the graphs that the model has not seen, where there are any, else of all."""
    shown = ~np.isnan(target.truth)
    if target.new is not None:
        shown &= found.part == ""
    rows = np.flatnonzero(shown)
    seen = " not seen before" if target.new else ""
    n = f"n = {counted(len(rows), 'graph')}{seen}"
    if not len(rows):
        return []
    ids = [found.answers.ids[row] for row in rows]
    nodes = found.graphs.nodes_per_graph.cpu().numpy()[rows]
    return target.answers.rows(rows).charts(target.truth[rows], ids, nodes, n)
