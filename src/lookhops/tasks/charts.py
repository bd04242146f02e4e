"""Charts of answers beside the truth: of classes, and of numbers.

Here ``y`` are the true classes, shape (n), ``p`` probabilities, shape (n, classes), ``names`` those
of the classes, and ``n`` says sample sizes, for the captions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from lookhops.core import charts
from lookhops.core.arrays import Array
from lookhops.core.charts import Chart, Figure, axis, figure, label, named_axis, numbers, series
from lookhops.core.tables import Table
from lookhops.core.words import MINUS, NONE, counted, percent, short, span
from lookhops.tasks.metrics import auroc, average_precision

#: With more classes than this the confusion matrix shows colours without numbers.
NUMBERED_CLASSES = 10
#: Bins of the drawn calibration curve: few enough that each has some graphs.
DRAWN_BINS = 10
#: Points of a drawn curve.
CURVE_POINTS = 200
DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot", "solid")
#: More graphs than this are too many to tell apart: a sample of them is drawn.
MOST_POINTS = 2000
#: Bars of the distribution of residuals; parts that graphs are sorted into.
BARS, PARTS = 30, 6


def three_digits(value: float) -> str:
    """A number with three significant digits: ``−2.31``."""
    return f"{value:.3g}".replace("-", MINUS)


def _diagonal(name: str, low: float = 0, high: float = 100) -> Figure:
    """The line of what is perfect, or of chance."""
    return series("lines", [low, high], [low, high], name=name, line=charts.DIAGONAL)


def confusion_chart(
    counts: Array, names: Sequence[str], caption: str, in_sets: Sequence[int] | None = None
) -> Chart:
    """True class by predicted class, shaded by the share of the true class.

    ``in_sets`` says how many graphs of each class have it in their conformal set.
    """
    share = counts / np.maximum(counts.sum(1, keepdims=True), 1)
    texts = np.array([[f"{n:,}" for n in row] for row in counts.tolist()], dtype=object)
    heat: Figure = {
        "type": "heatmap",
        "z": (100 * share).tolist(),
        **{"zmin": 0, "zmax": 100, "xgap": 2, "ygap": 2},
        "colorscale": [[0, "var(--panel)"], [1, "var(--blue)"]],
        "text": texts.tolist(),
        "hovertemplate": "%{text} graphs, %{z:.1f} % of the class<extra></extra>",
        "colorbar": {"thickness": 12, "outlinewidth": 0, "ticksuffix": " %"},
    }
    if len(names) <= NUMBERED_CLASSES:
        heat |= {"texttemplate": "<b>%{text}</b><br>%{z:.0f} %", "showscale": False}
    # Names that would run into each other, or out of the chart, are turned.
    angle = -30 if max(map(len, names)) * len(names) > 24 else 0
    x = named_axis("predicted class", names, 14, tickangle=angle)
    y = named_axis("true class", names, 14, autorange="reversed")
    right = [percent(value) for value in share.diagonal()]
    said = "; ".join(f"{name}: {text} right" for name, text in zip(names, right, strict=True))
    sizes, predicted = counts.sum(1), np.maximum(counts.sum(0), 1)
    head = ["true class", *map(short, names), "graphs", "recall", "precision"]
    precision = [percent(value) for value in counts.diagonal() / predicted]
    shown = [short(name) for name in names]
    columns: list[Sequence[str]] = [shown, *texts.T, [f"{n:,}" for n in sizes], right, precision]
    if in_sets is not None:
        head.append("in 90%")
        columns.append([percent(each) for each in in_sets / np.maximum(sizes, 1)])
    return Chart(
        figure([heat], x, y),
        f"Confusion matrix. {said}.",
        f"{caption} Rows are true classes; per cent of the row.",
        Table(head, [list(row) for row in zip(*columns, strict=True)]),
        height=max(340, min(140 + 46 * len(names), 640)),
    )


def ranking_curves(y: Array, p: Array, names: Sequence[str], n: str) -> list[Chart]:
    """ROC and precision-recall curves, one class against the rest; none where none is defined."""
    from sklearn.metrics import precision_recall_curve, roc_curve

    shown = list(_ranked_classes(y, len(names)))
    if not shown:
        return []
    roc, precision, rows = [_diagonal("by chance")], list[Figure](), []
    for i, c in enumerate(shown):
        positive, score, name = y == c, p[:, c], names[c]
        style = {"color": charts.colour(i), "dash": DASHES[i], "width": 2}
        false_rate, true_rate, _ = roc_curve(positive, score)
        precisions, recalls, _ = precision_recall_curve(positive, score)
        end = f"<extra>{label(name)}</extra>"
        hover = "%{y:.0f} % of the class found, with %{x:.0f} % of the others" + end
        roc.append(_curve(false_rate, true_rate, hover, name, style))
        hover = "%{x:.0f} % of the class found, %{y:.0f} % of those said to be it" + end
        precision.append(_curve(recalls[::-1], precisions[::-1], hover, name, style))
        area = auroc(np.stack((-score, score), 1), positive)
        both = area, average_precision(score, positive)
        written = (NONE if value is None else f"{value:.3f}" for value in both)
        rows.append([short(name), *written, percent(positive.mean()), f"{positive.sum():,}"])
    table = Table(("class", "AUROC", "average precision", "share", "graphs"), rows)
    of_one = f" Of {short(names[shown[0]])}."
    which = " Each class against the rest." if len(shown) > 1 else of_one
    areas, precisions = (", ".join(f"{row[0]} {row[i]}" for row in rows) for i in (1, 2))
    recall = "of the class found (recall), %"

    def chart(traces: Sequence[Figure], x: str, y: str, alt: str) -> Chart:
        ends = {"range": [-2, 102], "zeroline": False}
        drawn = figure(traces, axis(x, **ends), axis(y, **ends))
        return Chart(drawn, alt, f"{alt}{which} {n}.", table, height=340)

    said = f"Precision-recall curve. Average precision: {precisions}."
    return [
        chart(roc, "others taken for the class, %", recall, f"ROC curve. AUROC: {areas}."),
        chart(precision, recall, "rightly said (precision), %", said),
    ]


def _ranked_classes(y: Array, classes: int) -> Iterator[int]:
    """The second of two classes; of more the commonest, as many as have colours of their own."""
    counts = np.bincount(y, minlength=classes)
    if classes == 2:
        yield from ([1] if counts.all() else [])
        return
    there = [c for c in np.argsort(-counts, kind="stable") if 0 < counts[c] < len(y)]
    yield from sorted(int(c) for c in there[: charts.MOST_SERIES])


def _curve(x: Array, y: Array, hover: str, name: str, style: Figure) -> Figure:
    kept = np.unique(np.linspace(0, len(x) - 1, CURVE_POINTS).round().astype(int))
    return series("lines", 100 * x[kept], 100 * y[kept], hover, name=label(name, 16), line=style)


def calibration_curve(
    y: Array, p: Array, temperature: Array, errors: Sequence[float | None], n: str
) -> Chart:
    """How often the model was right, against how sure it was, without and with temperature.

    ``p`` are calibrated by the ``temperature``, shape (n); ``errors`` are the expected calibration
    error before and with it.
    """
    # Calibrated probabilities are softmax(log p / T): raised to T they are the model's own again.
    uncalibrated = np.maximum(p, 1e-300) ** temperature[:, None]
    uncalibrated /= uncalibrated.sum(1, keepdims=True)
    hit = p.argmax(1) == y
    traces, rows, lowest = [_diagonal("perfect")], [], 1.0
    for name, each, colour, dash, symbol in (
        ("before", uncalibrated, "var(--orange)", "dash", "square-open"),
        ("with temperature", p, "var(--blue)", "solid", "circle"),
    ):
        confidence = each.max(1)
        in_bin = np.minimum((confidence * DRAWN_BINS).astype(int), DRAWN_BINS - 1)
        sums = (np.bincount(in_bin, of, DRAWN_BINS) for of in (None, confidence, hit))
        count, sure, right = (one[np.unique(in_bin)] for one in sums)
        sure, right = sure / count, right / count
        lowest = min(lowest, sure.min())
        size = numbers(6 + 12 * np.sqrt(count / len(hit)))
        look: Figure = {
            "line": {"color": colour, "dash": dash, "width": 1.5},
            "marker": {"symbol": symbol, "color": colour, "opacity": 1, "size": size},
        }
        hover = (
            f"%{{customdata}} graphs: %{{x:.0f}} % sure, %{{y:.0f}} % right<extra>{name}</extra>"
        )
        points = 100 * sure, 100 * right, hover
        traces.append(
            series("lines+markers", *points, name=name, customdata=numbers(count), **look)
        )
        bins = zip(sure, right, count, strict=True)
        rows += [[name, percent(s, 0), percent(r, 0), f"{graphs:,}"] for s, r, graphs in bins]
    start = max(0, 10 * int(10 * lowest) - 5)
    before, after = map(percent, errors)
    x = axis("probability of the predicted class, %", range=[start, 102], zeroline=False)
    return Chart(
        figure(traces, x, axis("graphs that were right, %", range=[-4, 106], zeroline=False)),
        "Calibration curve: share of right answers against the probability that the model gave, "
        "before and with temperature; the dotted diagonal is perfect.",
        f"Calibration. Expected calibration error {before} before, {after} with temperature "
        f"(mean of seeds). {n}. {DRAWN_BINS} bins of equal width; larger marks hold more graphs.",
        Table(("curve", "sure", "right", "graphs"), rows),
        height=340,
    )


def number_charts(
    measured: Array, predicted: Array, ids: Sequence[str], nodes: Array | None, name: str, n: str
) -> list[Chart]:
    """All charts of a number, called ``name``: ``ids`` and ``nodes`` are those of the graphs."""
    drawn = [_agreement(measured, predicted, ids, name, n), _residuals(predicted - measured, n)]
    if nodes is not None and len(np.unique(nodes)) > 1:
        drawn.append(_error_by_size(np.abs(predicted - measured), nodes, n))
    return drawn


def _agreement(measured: Array, predicted: Array, ids: Sequence[str], name: str, n: str) -> Chart:
    """Every graph by what was measured and what was predicted."""
    drawn = np.arange(len(measured))
    if len(drawn) > MOST_POINTS:
        drawn = np.sort(np.random.default_rng(0).choice(drawn, MOST_POINTS, replace=False))
    points = series(
        "markers",
        measured[drawn],
        predicted[drawn],
        "%{text}: measured %{x:.4g}, predicted %{y:.4g}",
        name="graphs",
        text=[label(ids[int(i)]) for i in drawn],
        marker={"color": "var(--blue)", "size": 7 if len(drawn) < 300 else 5, "opacity": 0.55},
    )
    rows = []
    for part in _parts(measured):
        low, high = measured[part].min(), measured[part].max()
        means = predicted[part].mean(), np.abs(predicted[part] - measured[part]).mean()
        ranges = f"{three_digits(low)} to {three_digits(high)}"
        rows.append([ranges, f"{len(part):,}", *map(three_digits, means)])
    ends = min(measured.min(), predicted.min()), max(measured.max(), predicted.max())
    sampled = f" {MOST_POINTS:,} of them are drawn." if len(drawn) < len(measured) else ""
    x, y = (axis(f"{what} {label(name)}", zeroline=False) for what in ("measured", "predicted"))
    return Chart(
        figure([_diagonal("equal", *ends), points], x, y),
        f"Scatter plot of predicted against measured {name}; the dotted diagonal is perfect.",
        f"Predicted against measured. {n}.{sampled}",
        Table(("measured", "graphs", "predicted on average", "mean error"), rows),
        height=380,
    )


def _residuals(residual: Array, n: str) -> Chart:
    counts, edges = np.histogram(residual, BARS)
    blue = {"color": "var(--blue)"}
    middles, hover = (edges[1:] + edges[:-1]) / 2, "about %{x:.3g}: %{y:,} graphs"
    bars = series("bar", middles, counts, hover, marker=blue)
    moments = f"mean {three_digits(residual.mean())}, "
    moments += f"standard deviation {three_digits(residual.std())}"
    shares = (0.05, 0.25, 0.5, 0.75, 0.95)
    quantiles = zip(shares, np.quantile(residual, shares), strict=True)
    rows = [[f"{100 * share:.0f} %", three_digits(value)] for share, value in quantiles]
    return Chart(
        figure([bars], axis("predicted minus measured"), axis("graphs"), bargap=0.06),
        f"Histogram of predicted minus measured: {moments}.",
        f"Residuals, predicted minus measured: {moments}. {n}.",
        Table(("share of graphs below", "residual"), rows),
        height=380,
    )


def _error_by_size(error: Array, nodes: Array, n: str) -> Chart:
    """Whether the error grows with the graphs."""
    sizes, means, halves, ranges, rows = [], [], [], [], []
    for part in _parts(nodes):
        mean, half = error[part].mean(), 1.96 * error[part].std() / np.sqrt(len(part))
        sizes.append(nodes[part].mean())
        means.append(mean)
        halves.append(half)
        ranges.append(span(int(nodes[part].min()), int(nodes[part].max())))
        rows.append([ranges[-1], f"{len(part):,}", three_digits(mean), three_digits(half)])
    marks = series(
        "lines+markers",
        sizes,
        means,
        "%{text} nodes: mean error %{y:.3g}",
        text=ranges,
        line={"color": "var(--blue)", "width": 1.5},
        marker={"color": "var(--blue)", "size": 8},
        error_y={"type": "data", "array": halves, "thickness": 2},
    )
    return Chart(
        figure([marks], axis("nodes in a graph"), axis("mean absolute error", rangemode="tozero")),
        "Mean absolute error by the number of nodes in a graph.",
        f"Error by size: graphs in {counted(len(rows), 'part')} of about equal number, with 95% "
        f"intervals of the mean. {n}.",
        Table(("nodes", "graphs", "mean error", "± 95%"), rows),
        height=340,
    )


def _parts(values: Array) -> Iterator[Array]:
    """Numbers of the graphs in at most so many parts by a value, equal values together."""
    edges = np.unique(np.quantile(values, np.linspace(0, 1, PARTS + 1)[1:-1]))
    part = np.searchsorted(edges, values, side="left")
    for number in np.unique(part):
        yield np.flatnonzero(part == number)
