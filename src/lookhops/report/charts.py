"""Charts as Plotly's JSON: their one style, and those of the data.

Plain dictionaries: Plotly itself is needed in the reader's browser only. Colours are written as CSS
variables, which the page's script replaces by those of the theme. What comes from the data goes
through :func:`label`, because Plotly reads some HTML in its texts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from itertools import pairwise
from typing import Any

import numpy as np

from lookhops.palette import SERIES_NAMES
from lookhops.report.content import Chart, TableBlock
from lookhops.words import counted, percent, short

Figure = dict[str, Any]

SYMBOLS = ("circle", "square", "triangle-up", "diamond", "triangle-down", "cross", "x")
#: Bars of different series differ by a light pattern too.
PATTERN = {"fillmode": "overlay", "fgcolor": "var(--page)", "size": 6, "solidity": 0.18}
PATTERNS = ("", "/", ".", "\\", "x", "-", "+")
#: The most classes that have their own colour.
MOST_SERIES = len(SERIES_NAMES)


def colour(number: int) -> str:
    """The colour of a series."""
    return f"var(--{SERIES_NAMES[number % len(SERIES_NAMES)]})"


def label(text: str, width: int = 28) -> str:
    """A text from the data, as Plotly shows it letter by letter."""
    plain = short(text, width).replace("%{", "%\N{ZERO WIDTH SPACE}{")  # no templates from the data
    return escape(plain, quote=False)


def axis(title: str, **rest: Any) -> Figure:
    """An axis in the one style of the page."""
    plain = {"gridcolor": "var(--line)", "zerolinecolor": "var(--line)", "automargin": True}
    name = {"text": title, "standoff": 8, "font": {"size": 13, "color": "var(--muted)"}}
    return {"title": name, "linecolor": "var(--line)", **plain, **rest}


def figure(traces: Sequence[Figure], x: Figure, y: Figure, **layout: Any) -> Figure:
    """A figure in the one style of the page."""
    return {
        "data": list(traces),
        "layout": {
            "font": {"family": "var(--font)", "size": 13, "color": "var(--ink)"},
            "paper_bgcolor": "rgba(0,0,0,0)",
            "plot_bgcolor": "rgba(0,0,0,0)",
            "margin": {"l": 8, "r": 12, "t": 12, "b": 8},
            "xaxis": x,
            "yaxis": y,
            "legend": {
                "orientation": "h",
                "x": 0,
                "y": 1.02,
                "yanchor": "bottom",
                "traceorder": "normal",
            },
            "hoverlabel": {
                "bgcolor": "var(--panel)",
                "bordercolor": "var(--line)",
                "font": {"family": "var(--font)", "color": "var(--ink)"},
            },
            "showlegend": len(traces) > 1,
            **layout,
        },
    }


def positions(names: Sequence[str], width: int = 28, **rest: Any) -> Figure:
    """What makes an axis of names: two names that look alike stay two."""
    ticks = {"tickvals": list(range(len(names))), "ticktext": [label(n, width) for n in names]}
    return {**ticks, "ticks": "", "zeroline": False, "showgrid": False, **rest}


def rounded(values: Any) -> list[float | None]:
    """Numbers with five digits, which is more than a picture shows; none where it is no number."""
    found = np.asarray(values, dtype=float).tolist()
    return [float(f"{value:.5g}") if np.isfinite(value) else None for value in found]


# -------------------------------------------------------------------- the data


def class_balance(facts: Mapping[str, Any]) -> Chart:
    """How many graphs each class has."""
    names, counts = list(facts["class_names"]), list(facts["class_counts"])
    total = max(sum(counts), 1)
    shares = [percent(count / total) for count in counts]
    bars = {
        "type": "bar",
        "orientation": "h",
        "x": counts,
        "y": list(range(len(names))),
        "marker": {"color": [colour(i) for i in range(len(names))]}
        if len(names) <= MOST_SERIES
        else {"color": "var(--blue)"},
        "text": [f"{count:,} ({share})" for count, share in zip(counts, shares, strict=True)],
        "textposition": "auto",
        "insidetextanchor": "end",
        "hovertemplate": "%{text}<extra></extra>",
    }
    drawn = figure(
        [bars],
        axis("graphs", rangemode="tozero"),
        axis("", **positions(names, 16, autorange="reversed")),
        bargap=0.45,
        uniformtext={"minsize": 10, "mode": "hide"},
    )
    said = ", ".join(f"{n} {c:,} ({s})" for n, c, s in zip(names, counts, shares, strict=True))
    rows = [list(row) for row in zip(names, (f"{c:,}" for c in counts), shares, strict=True)]
    return Chart(
        drawn,
        f"Bar chart of graphs in each class: {said}.",
        f"Class balance. n = {counted(total, 'graph')}.",
        TableBlock(("class", "graphs", "share"), rows),
        height=max(300, min(90 + 30 * len(names), 640)),
    )


def sizes(facts: Mapping[str, Any]) -> Chart:
    """How large the graphs are, by class."""
    edges, counts = facts["sizes"]["edges"], facts["sizes"]["counts"]
    names = list(facts["class_names"]) or ["graphs"]
    if len(counts) > MOST_SERIES:
        counts, names = [np.sum(counts, axis=0).tolist()], ["graphs"]
    centres = [(low + high) / 2 for low, high in pairwise(edges)]
    ranges = [_range(low, high) for low, high in pairwise(edges)]
    bars = [
        {
            "type": "bar",
            "name": label(name, 16),
            "x": centres,
            "y": row,
            "customdata": ranges,
            "marker": {"color": colour(i), "pattern": {**PATTERN, "shape": PATTERNS[i]}},
            "hovertemplate": "%{customdata} nodes: %{y:,} graphs<extra>" + label(name) + "</extra>",
        }
        for i, (name, row) in enumerate(zip(names, counts, strict=True))
    ]
    drawn = figure(bars, axis("nodes in a graph"), axis("graphs"), barmode="stack", bargap=0.06)
    low, high = facts["nodes_range"]
    mean = facts["nodes"] / max(facts["graphs"], 1)
    rows = [
        [text, *(f"{row[i]:,}" for row in counts)]
        for i, text in enumerate(ranges)
        if any(row[i] for row in counts)
    ]
    return Chart(
        drawn,
        f"Histogram of nodes in a graph, from {low:,} to {high:,}, on average {mean:.1f}.",
        f"Sizes of the graphs: from {low:,} to {counted(high, 'node')}, {mean:.1f} on average. "
        f"n = {counted(facts['graphs'], 'graph')}.",
        TableBlock(("nodes", *names), rows),
    )


def _range(low: float, high: float) -> str:
    first, last = int(np.ceil(low)), int(np.ceil(high)) - 1
    return f"{first:,}" if first >= last else f"{first:,} to {last:,}"
