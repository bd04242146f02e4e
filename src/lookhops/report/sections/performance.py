"""What a model is worth: metrics with intervals, and charts of its answers, target after target."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from lookhops.core.arrays import Array
from lookhops.core.tables import Table
from lookhops.core.words import counted, percent, span
from lookhops.report.content import Block, Chart, Section, Subheading
from lookhops.report.folders import Answers, ModelFolder
from lookhops.report.sections.class_charts import calibration, confusion, ranking_curves
from lookhops.report.sections.number_charts import number_charts
from lookhops.tasks import Classification
from lookhops.tasks.metrics import RESAMPLES, confusion_matrix, interval, rates
from lookhops.tasks.task import Head, Metric

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
        lead, charts = _target(model, heads[0], n)
        return Section("results", "Results", lead, [metrics_table(model, heads[0], n), *charts])
    main = model.task.main
    blocks: list[Block] = []
    for head in heads:
        if model.answers is not None:  # blanks do not count
            known = counted(len(model.answers.of(head)), "test graph")
            n = f"n = {known} with {head.name}, {counted(len(tested), 'seed')}"
        lead, charts = _target(model, head, n)
        blocks += [Subheading(head.name, lead), metrics_table(model, head, n), *charts]
    lead = f"{counted(len(heads), 'target')}, answered by one network."
    lead += f" The {main.title}: {score}." if (score := model.score(main)) else ""
    return Section("results", "Results", lead, blocks)


def metrics_table(model: ModelFolder, head: Head, n: str) -> Table:
    """Mean, spread and interval of each metric of a target, and the seeds where there are few."""
    metrics = model.config["metrics"]
    seeds, summary = metrics["seeds"], metrics["summary"]
    several = len(seeds) > 1
    own = list(seeds) if several and len(seeds) <= SHOWN_SEEDS else []
    intervals: Mapping[str, Any] = {}
    if model.answers is not None and isinstance(head.task, Classification):
        intervals = _intervals(model, head, model.answers.of(head))
    rows = []
    for metric in (metric for metric in head.task.metrics if metric.shown):
        name = head.key(metric.name)
        found = summary.get(name)
        if found is None:
            continue
        ends = found.get("interval") or intervals.get(metric.name) or ()
        written = metric.written(found["mean"], *([found["std"]] if several else []))
        each = [metric.written(seeds[seed][name]) for seed in own]
        rows.append([metric.title, written, metric.written(*ends, joint=" to "), *each])
    columns = ("test", "mean ± std" if several else "value", "95% interval")
    caption = f"{n}. Interval: 95% of {RESAMPLES:,} redrawn sets of test graphs, mean over seeds."
    return Table((*columns, *(f"seed {seed}" for seed in own)), rows, caption)


def _target(model: ModelFolder, head: Head, n: str) -> tuple[str, Sequence[Chart]]:
    """What is said of one target, and its charts."""
    if isinstance(head.task, Classification):
        return _of_classes(model, head, n)
    return _of_numbers(model, head, n)


def _score(model: ModelFolder, head: Head, metric: Metric) -> str:
    found = model.config["metrics"]["summary"].get(head.key(metric.name))
    return metric.written(found["mean"]) if found else "not known"


def _covered(model: ModelFolder, head: Head, what: str) -> str:
    """How often the conformal regions held the truth."""
    summary = model.config["metrics"]["summary"]
    coverage, seeds = summary.get(head.key("coverage")), model.config["metrics"]["seeds"]
    if coverage is None:
        return ""
    share = percent(coverage["mean"])
    return f" Its 90% {what} held the truth of {share} of the test graphs" + (
        " (mean of seeds)." if len(seeds) > 1 else "."
    )


# -------------------------------------------------------------------- numbers


def _of_numbers(model: ModelFolder, head: Head, n: str) -> tuple[str, Sequence[Chart]]:
    """What is said of a regression, and its charts."""
    known = {metric.name: metric for metric in head.task.metrics}
    mae, mean, width = (
        _score(model, head, known[name]) for name in ("mae", "mean_mae", "interval_width")
    )
    lead = (
        f"Of graphs that it had not seen, the model missed {head.task.name} by {mae} on average; "
        f"the mean of the training graphs misses it by {mean}."
    )
    covered = _covered(model, head, "intervals")
    lead += f"{covered[:-1]}; they are {width} wide." if covered else ""
    if model.answers is None:
        return lead, []
    own = model.answers.of(head)
    if not len(own):
        return lead, []
    measured, predicted = own.targets[:, 0], own.values[:, 0]
    name = head.task.name
    return lead, number_charts(measured, predicted, own.ids, own.nodes, name, n)


# -------------------------------------------------------------------- classes


def _best_and_worst(right: Array, names: Sequence[str]) -> str:
    """Which class is known best and which least, by the share that is right."""
    best, worst = int(right.argmax()), int(right.argmin())
    if right[best] == right[worst]:
        return f" It knows all classes alike ({percent(right[best], 0)} right)."
    return (
        f" It knows {names[best]} best ({percent(right[best], 0)} right) and {names[worst]} "
        f"least ({percent(right[worst], 0)})."
    )


def _of_classes(model: ModelFolder, head: Head, n: str) -> tuple[str, Sequence[Chart]]:
    """What is said of a classification, and its charts."""
    metrics, names = model.config["metrics"], list(head.task.class_names)
    overview = metrics["targets"][head.name] if head.name else metrics
    matrix = np.asarray(overview["confusion"])
    right = matrix.diagonal() / np.maximum(matrix.sum(1), 1)
    there = np.flatnonzero(matrix.sum(1))
    score = _score(model, head, head.task.main)
    lead = f"Of graphs that it had not seen, the model classified {score} correctly."
    if len(there) > 1:
        lead += _best_and_worst(right[there], [names[number] for number in there])
    lead += _covered(model, head, "sets") + _threshold(model, head)
    charts = [confusion(matrix, names, f"Confusion matrix, all seeds together. {n}.")]
    own = None if model.answers is None else model.answers.of(head)
    if own is not None and len(own):
        charts += ranking_curves(own.true, own.p, names, f"All seeds together, {n}")
        key, seeds = head.key("temperature"), metrics["seeds"]
        temperature = np.array([seeds[str(seed)][key] for seed in own.seed.tolist()])
        errors = [
            metrics["summary"].get(head.key(name), {}).get("mean")
            for name in ("ece_before", "ece_after")
        ]
        charts.append(calibration(own.true, own.p, temperature, errors, n))
    return lead, charts


def _threshold(model: ModelFolder, head: Head) -> str:
    """From which probability the second class is said, where that was chosen."""
    seeds = model.config["metrics"]["seeds"].values()
    known = [own[key] for own in seeds if (key := head.key("threshold")) in own]
    if not known:
        return ""
    ends = " to ".join(dict.fromkeys(f"{value:.2f}" for value in (min(known), max(known))))
    return f" It says {head.task.class_names[1]} from a probability of {ends}."


def _intervals(model: ModelFolder, head: Head, answers: Answers) -> dict[str, list[float] | None]:
    """Bootstrap intervals of what follows from the confusion matrix alone.

    To redraw n test graphs is to draw their confusion matrix from a multinomial distribution.
    """
    generator = np.random.default_rng(0)
    classes = head.task.out_channels
    resampled: dict[str, list[Array]] = {}
    for seed in dict.fromkeys(answers.seed.tolist()):
        one = answers.of_seed(seed)
        own = head.calibration(model.config["metrics"]["seeds"][str(seed)])
        matrix = confusion_matrix(one.true, head.task.decided(one.p, own), classes)
        draws = generator.multinomial(len(one), matrix.flatten() / len(one), size=RESAMPLES)
        for key, values in rates(draws.reshape(-1, classes, classes)).items():
            resampled.setdefault(key, []).append(values)
    return {key: interval(np.mean(of_seeds, axis=0)) for key, of_seeds in resampled.items()}
