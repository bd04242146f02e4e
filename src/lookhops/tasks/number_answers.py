"""Answers that are numbers: as records, in words, as columns and as charts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any, ClassVar

import numpy as np

from lookhops.core.arrays import Array
from lookhops.core.charts import DIAGONAL, Chart, axis, figure, interval, label, rounded, series
from lookhops.core.tables import Table
from lookhops.core.words import MINUS, counted, span
from lookhops.tasks.answers import Column, TargetAnswers

#: More points than this are too many to tell apart: a sample of them is drawn.
MOST_POINTS = 2000
#: Bars of the distribution of residuals; parts that graphs are sorted into.
BARS, PARTS = 30, 6


@dataclass(frozen=True, eq=False)
class NumberAnswers(TargetAnswers):
    """Answers to how large something is of each graph.

    Args:
        name: Of the target.
        values: The mean over seeds, shape (g).
        spread: Standard deviation over the networks, shape (g).
        models: How many networks answered: the members of all seeds.
        intervals: Lower and upper end of the conformal interval, shape (g, 2); none where the model
            has no validation answers to make it from.
    """

    name: str
    values: Array
    spread: Array
    models: int
    intervals: Array | None = None

    found_in: ClassVar[str] = "a number; it is in `values`"

    @property
    def output(self) -> Array:
        """The numbers, shape (g, 1)."""
        return self.values[:, None]

    def explained(self, graph: int) -> str:
        """What was measured."""
        return self.name

    def shared(self) -> Array:
        """The numbers."""
        return self.values

    def record(self, graph: int) -> dict[str, Any]:
        """The answer to one graph, as JSON can hold it: an end that is not known is none."""
        ends = () if self.intervals is None else self.intervals[graph].tolist()
        return {
            "value": float(self.values[graph]),
            **({"interval": [end if isfinite(end) else None for end in ends]} if ends else {}),
            "spread": float(self.spread[graph]),
        }

    def said(self, graph: int, named: bool = False) -> str:
        """The answer to one graph in words: ``logS −2.31``."""
        return f"{self.name} {_said(self.values[graph])}"

    def columns(self, coverage: float) -> dict[str, Column]:
        """The number, its interval, and the spread of the networks."""
        found: dict[str, Column] = {"predicted": (self.values, "%.6g")}
        if self.intervals is not None:
            for name, ends in zip(("low", "high"), self.intervals.T, strict=True):
                found[f"{name}_{100 * coverage:g}"] = ends, "%.6g"
        if self.models > 1:
            found["spread"] = self.spread, "%.4g"
        return found

    def charts(self, truth: Array, ids: Sequence[str], nodes: Array | None, n: str) -> list[Chart]:
        """Predicted against measured, residuals, and the error by the size of graphs."""
        return number_charts(truth, self.values, ids, nodes, self.name, n)


def number_charts(
    measured: Array,
    predicted: Array,
    ids: Sequence[str],
    nodes: Array | None,
    name: str,
    n: str,
) -> list[Chart]:
    """All charts of a number.

    Args:
        measured: Numbers that were measured, shape (n).
        predicted: Those that were answered, shape (n).
        ids: What the graphs are called.
        nodes: Their numbers of nodes, where known, shape (n).
        name: What was measured.
        n: Sample sizes, for the captions.
    """
    charts = [agreement(measured, predicted, ids, name, n), residuals(predicted - measured, n)]
    if nodes is not None and len(np.unique(nodes)) > 1:
        charts.append(error_by_size(np.abs(predicted - measured), nodes, n))
    return charts


def agreement(measured: Array, predicted: Array, ids: Sequence[str], name: str, n: str) -> Chart:
    """Every graph by what was measured and what was predicted."""
    drawn = np.arange(len(measured))
    if len(drawn) > MOST_POINTS:
        drawn = np.sort(np.random.default_rng(0).choice(drawn, MOST_POINTS, replace=False))
    ends = rounded((min(measured.min(), predicted.min()), max(measured.max(), predicted.max())))
    size = 7 if len(drawn) < 300 else 5
    points = series(
        "markers",
        rounded(measured[drawn]),
        rounded(predicted[drawn]),
        "%{text}: measured %{x:.4g}, predicted %{y:.4g}",
        name="graphs",
        text=[label(ids[int(i)]) for i in drawn],
        marker={"color": "var(--blue)", "size": size, "opacity": 0.55},
    )
    rows = []
    for part in _parts(measured):
        own, error = measured[part], np.abs(predicted[part] - measured[part])
        ranges = f"{_said(own.min())} to {_said(own.max())}"
        rows.append([ranges, f"{len(part):,}", _said(predicted[part].mean()), _said(error.mean())])
    sampled = f" {MOST_POINTS:,} of them are drawn." if len(drawn) < len(measured) else ""
    return Chart(
        figure(
            [series("lines", ends, ends, name="equal", line=DIAGONAL), points],
            axis(f"measured {label(name)}", zeroline=False),
            axis(f"predicted {label(name)}", zeroline=False),
        ),
        f"Scatter plot of predicted against measured {name}; the dotted diagonal is perfect.",
        f"Predicted against measured. {n}.{sampled}",
        Table(("measured", "graphs", "predicted on average", "mean error"), rows),
        height=380,
    )


def residuals(residual: Array, n: str) -> Chart:
    """How the errors are distributed."""
    counts, edges = np.histogram(residual, BARS)
    middle = (edges[1:] + edges[:-1]) / 2
    bars = series(
        "bar",
        rounded(middle),
        counts.tolist(),
        "about %{x:.3g}: %{y:,} graphs",
        marker={"color": "var(--blue)"},
    )
    mean, spread = _said(residual.mean()), _said(residual.std())
    shares = (0.05, 0.25, 0.5, 0.75, 0.95)
    rows = [
        [f"{100 * share:.0f} %", _said(value)]
        for share, value in zip(shares, np.quantile(residual, shares), strict=True)
    ]
    return Chart(
        figure([bars], axis("predicted minus measured"), axis("graphs"), bargap=0.06),
        f"Histogram of predicted minus measured: mean {mean}, standard deviation {spread}.",
        f"Residuals, predicted minus measured: mean {mean}, standard deviation {spread}. {n}.",
        Table(("share of graphs below", "residual"), rows),
        height=380,
    )


def error_by_size(error: Array, nodes: Array, n: str) -> Chart:
    """Whether the error grows with the graphs."""
    found = []
    for part in _parts(nodes):
        own = error[part]
        half = 1.96 * own.std() / np.sqrt(len(own))
        found.append((nodes[part].mean(), own.mean(), half, nodes[part], len(part)))
    size, mean, half = (np.array(column) for column in list(zip(*found, strict=True))[:3])
    ranges = [span(int(own.min()), int(own.max())) for *_, own, _ in found]
    marks = series(
        "lines+markers",
        rounded(size),
        rounded(mean),
        "%{text} nodes: mean error %{y:.3g}",
        text=ranges,
        line={"color": "var(--blue)", "width": 1.5},
        marker={"color": "var(--blue)", "size": 8},
        error_y=interval(mean - half, mean, mean + half),
    )
    rows = [
        [text, f"{count:,}", _said(value), _said(wide)]
        for text, (*_, count), value, wide in zip(ranges, found, mean, half, strict=True)
    ]
    return Chart(
        figure([marks], axis("nodes in a graph"), axis("mean absolute error", rangemode="tozero")),
        "Mean absolute error by the number of nodes in a graph.",
        f"Error by size: graphs in {counted(len(found), 'part')} of about equal number, with 95% "
        f"intervals of the mean. {n}.",
        Table(("nodes", "graphs", "mean error", "± 95%"), rows),
        height=340,
    )


def _parts(values: Array) -> Iterator[Array]:
    """Numbers of the graphs in at most so many parts by a value, equal values together."""
    edges = np.unique(np.quantile(values, np.linspace(0, 1, PARTS + 1)[1:-1]))
    place = np.searchsorted(edges, values, side="left")
    for number in np.unique(place):
        yield np.flatnonzero(place == number)


def _said(value: float) -> str:
    return f"{value:.3g}".replace("-", MINUS)
