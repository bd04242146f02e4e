"""Answers that are classes: as records, in words, as columns and as charts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from lookhops.core.arrays import Array
from lookhops.core.charts import (
    DIAGONAL,
    MOST_SERIES,
    Chart,
    Figure,
    axis,
    colour,
    figure,
    label,
    named_axis,
    rounded,
    series,
)
from lookhops.core.tables import Table
from lookhops.core.words import NONE, percent, short
from lookhops.tasks.answers import Column, TargetAnswers
from lookhops.tasks.metrics import auroc, average_precision, confusion_matrix

#: More classes than this have no room for numbers in the matrix.
NUMBERED_CLASSES = 10
#: Bins of the drawn calibration curve: few enough that each has some graphs.
DRAWN_BINS = 10
#: Points of a drawn curve.
POINTS = 200
DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot", "solid")
#: Probabilities beyond these log-odds are taken for 0 and 1.
MOST_LOG_ODDS = 20.0


@dataclass(frozen=True, eq=False)
class ClassAnswers(TargetAnswers):
    """Answers to which class each graph is of.

    Args:
        name: Of the target; nothing where it is the only one.
        class_names: Names of the classes.
        probabilities: Calibrated, the mean over seeds, shape (g, classes).
        numbers: Number of the class that is answered, shape (g).
        agreement: The share of networks that, asked alone, answer the same class, shape (g).
        spread: Standard deviation over the networks of that class's probability, shape (g).
        models: How many networks answered: the members of all seeds.
        sets: Which classes the conformal set holds, shape (g, classes); none where the model has
            no validation answers to make it from.
    """

    name: str
    class_names: tuple[str, ...]
    probabilities: Array
    numbers: Array
    agreement: Array
    spread: Array
    models: int
    sets: Array | None = None

    found_in: ClassVar[str] = "a class; it is in `classes`"

    @property
    def classes(self) -> list[str]:
        """Name of the class that is answered, for each graph."""
        return [self.class_names[number] for number in self.numbers.tolist()]

    @property
    def output(self) -> Array:
        """Probabilities."""
        return self.probabilities

    @property
    def chosen(self) -> Array:
        """The class that is answered."""
        return self.numbers

    def explained(self, graph: int) -> str:
        """The class that is answered."""
        return self.class_names[self.numbers[graph]]

    def shared(self) -> Array:
        """Log-odds of the class that is answered; NaN where they are too large to be known."""
        p = self.probabilities[np.arange(len(self.numbers)), self.numbers].astype(np.float64)
        with np.errstate(divide="ignore"):
            odds = np.log(p / (1 - p))
        return np.where(np.abs(odds) <= MOST_LOG_ODDS, odds, np.nan)

    def named_set(self, graph: int) -> list[str]:
        """Names of the classes in a graph's conformal set."""
        held = () if self.sets is None else np.flatnonzero(self.sets[graph])
        return [self.class_names[number] for number in held]

    def record(self, graph: int) -> dict[str, Any]:
        """The answer to one graph, as JSON can hold it."""
        p = self.probabilities[graph].tolist()
        return {
            "class": self.class_names[self.numbers[graph]],
            "probabilities": dict(zip(self.class_names, p, strict=True)),
            **({} if self.sets is None else {"set": self.named_set(graph)}),
            "agreement": float(self.agreement[graph]),
            "spread": float(self.spread[graph]),
        }

    def said(self, graph: int, named: bool = False) -> str:
        """The answer to one graph in words: ``high (62%)``."""
        number = self.numbers[graph]
        said = f"{self.class_names[number]} ({self.probabilities[graph, number]:.0%})"
        return f"{self.name} {said}" if named else said

    def columns(self, coverage: float) -> dict[str, Column]:
        """The class, the probability of each, the set, and how far the networks agree."""
        found: dict[str, Column] = {"predicted": (self.classes, "")}
        for name, column in zip(self.class_names, self.probabilities.T, strict=True):
            found[f"p_{name}"] = column, "%.4f"
        if self.sets is not None:
            found[f"set_{100 * coverage:g}"] = self._sets_in_words(self.sets), ""
        if self.models > 1:
            found |= {"agreement": (self.agreement, "%.2f"), "spread": (self.spread, "%.4f")}
        return found

    def _sets_in_words(self, sets: Array) -> list[str]:
        """The conformal set of each graph in words: few are different."""
        if not len(sets):
            return []
        _, first, which = np.unique(sets, axis=0, return_index=True, return_inverse=True)
        said = np.array([" | ".join(self.named_set(graph)) for graph in first], dtype=object)
        return said[which.ravel()].tolist()

    def charts(self, truth: Array, ids: Sequence[str], nodes: Array | None, n: str) -> list[Chart]:
        """The confusion matrix, and ROC and precision-recall curves."""
        y, names = truth.astype(np.int64), self.class_names
        matrix = confusion_matrix(y, self.numbers, len(names))
        drawn = confusion(matrix, names, f"Confusion matrix. {n}.")
        return [drawn, *ranking_curves(y, self.probabilities, names, n)]


# -------------------------------------------------------------------- confusion


def confusion(
    counts: Array, names: Sequence[str], caption: str, in_sets: Sequence[int] | None = None
) -> Chart:
    """True class by predicted class, shaded by the share of the true class.

    Args:
        counts: How many graphs, shape (classes, classes).
        names: Of the classes.
        caption: What is said below.
        in_sets: How many graphs of each class have it in their conformal set.
    """
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
    head = ["true class", *(f"as {short(name)}" for name in names), "right"]
    if in_sets is not None:
        head.append("in 90% sets")
        found = in_sets / np.maximum(counts.sum(1), 1)
        rows = [[*row, percent(one)] for row, one in zip(rows, found, strict=True)]
    return Chart(
        figure(
            [heat],
            named_axis("predicted class", names, 14, tickangle=angle),
            named_axis("true class", names, 14, autorange="reversed"),
        ),
        f"Confusion matrix. {said}.",
        f"{caption} Rows are true classes; per cent of the row.",
        Table(head, rows),
        height=max(340, min(140 + 46 * len(names), 640)),
    )


# -------------------------------------------------------------------- ranking


def ranking_curves(y: Array, p: Array, names: Sequence[str], n: str) -> list[Chart]:
    """ROC and precision-recall curves, one class against the rest; none where none is defined.

    Args:
        y: True classes, shape (n).
        p: Probabilities, shape (n, classes).
        names: Of the classes.
        n: Sample sizes, for the captions.
    """
    from sklearn.metrics import precision_recall_curve, roc_curve

    shown = list(_ranked_classes(y, len(names)))
    if not shown:
        return []
    roc = [series("lines", [0, 100], [0, 100], name="by chance", line=DIAGONAL)]
    recalled: list[Figure] = []
    rows = []
    for i, c in enumerate(shown):
        positive, score = y == c, p[:, c]
        name, look = names[c], {"color": colour(i), "dash": DASHES[i], "width": 2}
        area, precision = (
            auroc(np.stack((-score, score), 1), positive),
            average_precision(score, positive),
        )
        wrong, right, _ = roc_curve(positive, score)
        hits, recall, _ = precision_recall_curve(positive, score)
        end = f"<extra>{label(name)}</extra>"
        hover = "%{y:.0f} % of the class found, with %{x:.0f} % of the others" + end
        roc.append(_curve(wrong, right, hover, name, look))
        hover = "%{x:.0f} % of the class found, %{y:.0f} % of those said to be it" + end
        recalled.append(_curve(recall[::-1], hits[::-1], hover, name, look))
        figures = (NONE if value is None else f"{value:.3f}" for value in (area, precision))
        rows.append([short(name), *figures, percent(positive.mean()), f"{positive.sum():,}"])
    table = Table(("class", "AUROC", "average precision", "share", "graphs"), rows)
    areas = ", ".join(f"{row[0]} {row[1]}" for row in rows)
    precisions = ", ".join(f"{row[0]} {row[2]}" for row in rows)
    of_one = f" Of {short(names[shown[0]])}."
    several = " Each class against the rest." if len(shown) > 1 else of_one
    return [
        Chart(
            _square(roc, "others taken for the class, %", "of the class found (recall), %"),
            f"ROC curve. AUROC: {areas}.",
            f"ROC curve. AUROC: {areas}.{several} {n}.",
            table,
            height=340,
        ),
        Chart(
            _square(recalled, "of the class found (recall), %", "rightly said (precision), %"),
            f"Precision-recall curve. Average precision: {precisions}.",
            f"Precision-recall curve. Average precision: {precisions}.{several} {n}.",
            table,
            height=340,
        ),
    ]


def _ranked_classes(y: Array, classes: int) -> Iterator[int]:
    """The second of two classes; of more the commonest, as many as have colours of their own."""
    counts = np.bincount(y, minlength=classes)
    if classes == 2:
        yield from ([1] if counts.all() else [])
        return
    there = [c for c in np.argsort(-counts, kind="stable") if 0 < counts[c] < len(y)]
    yield from sorted(int(c) for c in there[:MOST_SERIES])


def _curve(x: Array, y: Array, hover: str, name: str, look: Figure) -> Figure:
    kept = np.unique(np.linspace(0, len(x) - 1, POINTS).round().astype(int))
    points = rounded(100 * x[kept]), rounded(100 * y[kept])
    return series("lines", *points, hover, name=label(name, 16), line=look)


def _square(traces: Sequence[Figure], x: str, y: str) -> Figure:
    ends = {"range": [-2, 102], "zeroline": False}
    return figure(traces, axis(x, **ends), axis(y, **ends))


# -------------------------------------------------------------------- calibration


def calibration_curve(
    y: Array, p: Array, temperature: Array, errors: Sequence[float | None], n: str
) -> Chart:
    """How often the model was right, against how sure it was, without and with temperature.

    Args:
        y: True classes, shape (n).
        p: Calibrated probabilities, shape (n, classes).
        temperature: By which they were calibrated, shape (n).
        errors: Expected calibration error before and with temperature.
        n: Sample sizes, for the caption.
    """
    # Calibrated probabilities are softmax(log p / T): raised to T they are the model's own again.
    own = np.maximum(p, 1e-300) ** temperature[:, None]
    own /= own.sum(1, keepdims=True)
    hit = p.argmax(1) == y
    curves = (
        ("before", own.max(1), "var(--orange)", "dash", "square-open"),
        ("with temperature", p.max(1), "var(--blue)", "solid", "circle"),
    )
    traces = [series("lines", [0, 100], [0, 100], name="perfect", line=DIAGONAL)]
    hover = "%{customdata} graphs: %{x:.0f} % sure, %{y:.0f} % right"
    rows, lowest = [], 1.0
    for name, sureness, shade, dash, symbol in curves:
        sure, right, count = _bins(sureness, hit)
        lowest = min(lowest, sure.min())
        size = rounded(6 + 12 * np.sqrt(count / len(hit)))
        traces.append(
            series(
                "lines+markers",
                rounded(100 * sure),
                rounded(100 * right),
                f"{hover}<extra>{name}</extra>",
                name=name,
                line={"color": shade, "dash": dash, "width": 1.5},
                customdata=count.tolist(),
                marker={"symbol": symbol, "color": shade, "opacity": 1, "size": size},
            )
        )
        bins = zip(sure, right, count, strict=True)
        rows += [[name, percent(s, 0), percent(r, 0), f"{graphs:,}"] for s, r, graphs in bins]
    start = max(0, 10 * int(10 * lowest) - 5)
    before, after = (percent(error) for error in errors)
    return Chart(
        figure(
            traces,
            axis("probability of the predicted class, %", range=[start, 102], zeroline=False),
            axis("graphs that were right, %", range=[-4, 106], zeroline=False),
        ),
        "Calibration curve: share of right answers against the probability that the model gave, "
        "before and with temperature; the dotted diagonal is perfect.",
        f"Calibration. Expected calibration error {before} before, {after} with temperature "
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
