"""What a model is worth: metrics with intervals, and charts of its answers, target after target."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from lookhops.core.arrays import Array
from lookhops.core.tables import Table
from lookhops.core.words import counted, span
from lookhops.report.content import Block, Section, Subheading
from lookhops.report.folders import ModelFolder
from lookhops.tasks import TargetTask
from lookhops.tasks.answers import Tested
from lookhops.tasks.metrics import RESAMPLES, interval
from lookhops.tasks.task import Head

#: More seeds than this have no columns of their own.
SHOWN_SEEDS = 5


def performance_section(model: ModelFolder) -> Section | None:
    """Metrics with intervals, and charts, of each target; none without a test."""
    metrics = model.config["metrics"]
    if not metrics["seeds"]:
        return None
    tested = [metrics["seeds"][seed]["test_graphs"] for seed in metrics["seeds"]]
    n = f"n = {span(min(tested), max(tested))} test graphs a seed, {counted(len(tested), 'seed')}"
    heads = model.task.heads
    if len(heads) == 1:
        return Section("results", "Results", *_target(model, heads[0], n))
    main = model.task.main
    blocks: list[Block] = []
    for head in heads:
        if (known := model.answers(head)) is not None:  # blanks do not count
            graphs = counted(len(known), "test graph")
            n = f"n = {graphs} with {head.name}, {counted(len(tested), 'seed')}"
        lead, shown = _target(model, head, n)
        blocks += [Subheading(head.name, lead), *shown]
    lead = f"{counted(len(heads), 'target')}, answered by one network."
    lead += f" The {main.title}: {score}." if (score := model.score(main)) else ""
    return Section("results", "Results", lead, blocks)


def _target(model: ModelFolder, head: Head, n: str) -> tuple[str, list[Block]]:
    """What is said of one target, its table and its charts."""
    tested = _tested(model, head, n)
    table = metrics_table(head, tested)
    return head.task.results(tested), [table, *head.task.charts(tested)]


def metrics_table(head: Head, tested: Tested) -> Table:
    """Mean, spread and interval of each metric of a target, and the seeds where there are few."""
    seeds, summary = tested.seeds, tested.summary
    several = len(seeds) > 1
    shown = list(seeds) if several and len(seeds) <= SHOWN_SEEDS else []
    intervals = _intervals(head.task, tested)
    rows = []
    for metric in (metric for metric in head.task.metrics if metric.shown):
        found = summary.get(metric.name)
        if found is None:
            continue
        ends = found.get("interval") or intervals.get(metric.name) or ()
        written = metric.written(found["mean"], *([found["std"]] if several else []))
        each = [metric.written(seeds[seed][metric.name]) for seed in shown]
        rows.append([metric.title, written, metric.written(*ends, joint=" to "), *each])
    columns = ("test", "mean ± std" if several else "value", "95% interval")
    caption = (
        f"{tested.n}. Interval: 95% of {RESAMPLES:,} redrawn sets of test graphs, mean over seeds."
    )
    return Table((*columns, *(f"seed {seed}" for seed in shown)), rows, caption)


def _tested(model: ModelFolder, head: Head, n: str) -> Tested:
    """What the tests of a model have given for one target, under the names of its own task."""
    metrics, prefix = model.config["metrics"], head.key("")

    def of_target(values: Mapping[str, Any]) -> dict[str, Any]:
        return {k[len(prefix) :]: v for k, v in values.items() if k.startswith(prefix)}

    seeds = {int(seed): of_target(values) for seed, values in metrics["seeds"].items()}
    overview = metrics["targets"][head.name] if head.name else metrics
    return Tested(n, of_target(metrics["summary"]), seeds, overview, model.answers(head) or None)


def _intervals(task: TargetTask, tested: Tested) -> dict[str, list[float] | None]:
    """Bootstrap intervals of the mean over the seeds, of metrics that are redrawn."""
    if (own := tested.answers) is None:
        return {}
    generator = np.random.default_rng(0)
    drawn: dict[str, list[Array]] = {}
    for seed in dict.fromkeys(own.seed.tolist()):
        rows = own.seed == seed
        draws = task.redrawn(own.truth[rows], own.values[rows], tested.seeds[seed], generator)
        for name, values in draws.items():
            drawn.setdefault(name, []).append(values)
    return {name: interval(np.mean(of_seeds, axis=0)) for name, of_seeds in drawn.items()}
