"""What a model is worth: metrics with intervals, the confusion matrix, the calibration.

The table holds for every task; each kind of task has its own words and charts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookhops.report.charts import Figure, axis, figure, named_axis, rounded, series
from lookhops.report.content import Chart, Section
from lookhops.report.folders import Answers, ModelFolder
from lookhops.tables import Table
from lookhops.tasks import Classification
from lookhops.tasks.metrics import interval, rates
from lookhops.words import counted, percent, short

Array = NDArray[Any]

#: More seeds than this have no columns of their own.
SHOWN_SEEDS = 5
RESAMPLES = 1000
#: More classes than this have no room for numbers in the matrix.
NUMBERED_CLASSES = 10
#: Bins of the drawn calibration curve: few enough that each has some graphs.
DRAWN_BINS = 10


def performance_section(model: ModelFolder) -> Section | None:
    """Metrics with intervals, the confusion matrix, the calibration; none without a test."""
    metrics = model.config["metrics"]
    if not metrics["seeds"]:
        return None
    tested = [metrics["seeds"][seed]["test_graphs"] for seed in metrics["seeds"]]
    each = f"{tested[0]:,}" if len(set(tested)) == 1 else f"{min(tested):,} to {max(tested):,}"
    n = f"n = {each} test graphs a seed, {counted(len(tested), 'seed')}"
    lead, charts = SHOWN[model.task.kind](model, n)
    return Section("results", "Results", lead, [metrics_table(model, n), *charts])


def metrics_table(model: ModelFolder, n: str) -> Table:
    """Mean, spread and interval of each metric, and the seeds where there are few."""
    metrics = model.config["metrics"]
    seeds, summary = metrics["seeds"], metrics["summary"]
    several = len(seeds) > 1
    own = list(seeds) if several and len(seeds) <= SHOWN_SEEDS else []
    intervals = _intervals(model.answers, len(model.class_names)) if model.answers else {}
    rows = []
    for metric in model.task.metrics:
        if metric.shown and (score := model.score(metric)):
            ends = summary[metric.name].get("interval") or intervals.get(metric.name) or ()
            each = [metric.written(seeds[seed][metric.name]) for seed in own]
            rows.append([metric.title, score, metric.written(*ends, joint=" to "), *each])
    head = ("test", "mean ± std" if several else "value", "95% interval")
    caption = f"{n}. Interval: 95% of {RESAMPLES:,} redrawn sets of test graphs, mean over seeds."
    return Table((*head, *(f"seed {seed}" for seed in own)), rows, caption)


# -------------------------------------------------------------------- classes


def _of_classes(model: ModelFolder, n: str) -> tuple[str, list[Chart]]:
    """What is said of a classification, and its charts."""
    metrics, names = model.config["metrics"], model.class_names
    matrix = np.asarray(metrics["confusion"])
    right = matrix.diagonal() / np.maximum(matrix.sum(1), 1)
    there = np.flatnonzero(matrix.sum(1))
    score = model.score(model.task.main)
    lead = f"Of graphs that it had not seen, the model classified {score} correctly."
    if len(there) > 1:
        best, worst = there[right[there].argmax()], there[right[there].argmin()]
        lead += (
            f" It knows {names[best]} best ({percent(right[best], 0)} right) and {names[worst]} "
            f"least ({percent(right[worst], 0)})."
        )
    charts = [confusion(matrix, names, f"Confusion matrix, all seeds together. {n}.")]
    if model.answers is not None:
        charts.append(calibration(model, model.answers, n))
    return lead, charts


def _intervals(answers: Answers, classes: int) -> dict[str, list[float] | None]:
    """Bootstrap intervals of what follows from the confusion matrix alone.

    To redraw n test graphs is to draw their confusion matrix from a multinomial distribution.
    """
    generator = np.random.default_rng(0)
    resampled: dict[str, list[Array]] = {}
    for seed in dict.fromkeys(answers.seed.tolist()):
        one = answers.of_seed(seed)
        pairs = np.bincount(one.true * classes + one.p.argmax(1), minlength=classes**2)
        draws = generator.multinomial(len(one.true), pairs / len(one.true), size=RESAMPLES)
        for key, values in rates(draws.reshape(-1, classes, classes)).items():
            resampled.setdefault(key, []).append(values)
    return {key: interval(np.mean(of_seeds, axis=0)) for key, of_seeds in resampled.items()}


def confusion(counts: Array, names: Sequence[str], caption: str) -> Chart:
    """True class by predicted class, shaded by the share of the true class."""
    share = counts / np.maximum(counts.sum(1, keepdims=True), 1)
    heat: Figure = {
        "type": "heatmap",
        "z": [rounded(100 * row) for row in share],
        "zmin": 0,
        "zmax": 100,
        "xgap": 2,
        "ygap": 2,
        "colorscale": [[0, "var(--panel)"], [1, "var(--blue)"]],
        "text": [[f"{n:,}" for n in row] for row in counts.tolist()],
        "hovertemplate": "%{text} graphs, %{z:.1f} % of the class<extra></extra>",
        "colorbar": {"thickness": 12, "outlinewidth": 0, "ticksuffix": " %"},
    }
    if len(names) <= NUMBERED_CLASSES:
        heat |= {"texttemplate": "<b>%{text}</b><br>%{z:.0f} %", "showscale": False}
    # Names that would run into each other, or out of the chart, are turned.
    angle = -30 if max(map(len, names)) * len(names) > 24 else 0
    right = [percent(value) for value in share.diagonal()]
    said = "; ".join(f"{name}: {text} right" for name, text in zip(names, right, strict=True))
    rows = [
        [short(name), *row, text]
        for name, row, text in zip(names, heat["text"], right, strict=True)
    ]
    return Chart(
        figure(
            [heat],
            named_axis("predicted class", names, 14, tickangle=angle),
            named_axis("true class", names, 14, autorange="reversed"),
        ),
        f"Confusion matrix. {said}.",
        f"{caption} Rows are true classes; per cent of the row.",
        Table(("true class", *(f"as {short(name)}" for name in names), "right"), rows),
        height=max(340, min(140 + 46 * len(names), 640)),
    )


def calibration(model: ModelFolder, answers: Answers, n: str) -> Chart:
    """How often the model was right, against how sure it was, without and with temperature."""
    metrics = model.config["metrics"]
    seeds = answers.seed.tolist()
    temperature = np.array([metrics["seeds"][str(seed)]["temperature"] for seed in seeds])
    # Calibrated probabilities are softmax(log p / T): raised to T they are the model's own again.
    own = np.maximum(answers.p, 1e-300) ** temperature[:, None]
    own /= own.sum(1, keepdims=True)
    hit = answers.p.argmax(1) == answers.true
    curves = (
        ("before", own.max(1), "var(--orange)", "dash", "square-open"),
        ("with temperature", answers.p.max(1), "var(--blue)", "solid", "circle"),
    )
    diagonal = {"color": "var(--muted)", "dash": "dot", "width": 1.5}
    traces = [series("lines", [0, 100], [0, 100], name="perfect", line=diagonal)]
    hover = "%{customdata} graphs: %{x:.0f} % sure, %{y:.0f} % right"
    rows, lowest = [], 1.0
    for name, p, colour, dash, symbol in curves:
        sure, right, count = _bins(p, hit)
        lowest = min(lowest, sure.min())
        size = rounded(6 + 12 * np.sqrt(count / len(hit)))
        traces.append(
            series(
                "lines+markers",
                rounded(100 * sure),
                rounded(100 * right),
                f"{hover}<extra>{name}</extra>",
                name=name,
                line={"color": colour, "dash": dash, "width": 1.5},
                customdata=count.tolist(),
                marker={"symbol": symbol, "color": colour, "opacity": 1, "size": size},
            )
        )
        bins = zip(sure, right, count, strict=True)
        rows += [[name, percent(s, 0), percent(r, 0), f"{graphs:,}"] for s, r, graphs in bins]
    start = max(0, 10 * int(10 * lowest) - 5)
    errors = [percent(metrics["summary"][key]["mean"]) for key in ("ece_before", "ece_after")]
    return Chart(
        figure(
            traces,
            axis("probability of the predicted class, %", range=[start, 102], zeroline=False),
            axis("graphs that were right, %", range=[-4, 106], zeroline=False),
        ),
        "Calibration curve: share of right answers against the probability that the model gave, "
        "before and with temperature; the dotted diagonal is perfect.",
        f"Calibration. Expected calibration error {errors[0]} before, {errors[1]} with temperature "
        f"(mean of seeds). {n}. {DRAWN_BINS} bins of equal width; larger marks hold more graphs.",
        Table(("curve", "sure", "right", "graphs"), rows),
        height=340,
    )


def _bins(p: Array, hit: Array) -> tuple[Array, Array, Array]:
    """Of each bin that is not empty: mean probability, share of right answers, graphs."""
    place = np.minimum((p * DRAWN_BINS).astype(int), DRAWN_BINS - 1)
    count, sure, right = (np.bincount(place, of, DRAWN_BINS) for of in (None, p, hit))
    full = count > 0
    return sure[full] / count[full], right[full] / count[full], count[full]


#: For each kind of task, what makes its lead and its charts.
SHOWN = {Classification.kind: _of_classes}
