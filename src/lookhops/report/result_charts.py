"""Charts of results: confusion, calibration, accuracies and their paired differences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookhops import words
from lookhops.experiments.compare import ALPHA
from lookhops.experiments.statistics import Pair, mean_std
from lookhops.report.charts import Figure, axis, figure, label, positions, rounded
from lookhops.report.content import Chart, TableBlock
from lookhops.words import MINUS, between, p_value, percent, short, signed

Array = NDArray[Any]

#: More classes than this have no room for numbers in the matrix.
NUMBERED_CLASSES = 10
#: Bins of the drawn calibration curve: few enough that each has some graphs.
DRAWN_BINS = 10


def confusion(matrix: Sequence[Sequence[int]], names: Sequence[str], caption: str) -> Chart:
    """True class by predicted class, shaded by the share of the true class."""
    counts = np.asarray(matrix, dtype=float)
    share = counts / np.maximum(counts.sum(1, keepdims=True), 1)
    heat: Figure = {
        "type": "heatmap",
        "z": [rounded(100 * row) for row in share],
        "zmin": 0,
        "zmax": 100,
        "xgap": 2,
        "ygap": 2,
        "colorscale": [[0, "var(--panel)"], [1, "var(--blue)"]],
        "text": [[f"{n:,}" for n in row] for row in counts.astype(int).tolist()],
        "hovertemplate": "%{text} graphs, %{z:.1f} % of the class<extra></extra>",
        "colorbar": {"thickness": 12, "outlinewidth": 0, "ticksuffix": " %"},
    }
    if len(names) <= NUMBERED_CLASSES:
        heat["texttemplate"] = "<b>%{text}</b><br>%{z:.0f} %"
        heat["showscale"] = False
    drawn = figure(
        [heat],
        axis("predicted class", **positions(names, 14, tickangle=_angle(names))),
        axis("true class", **positions(names, 14, autorange="reversed")),
    )
    said = "; ".join(f"{name}: {percent(share[i, i])} right" for i, name in enumerate(names))
    rows = [
        [short(name), *(f"{int(n):,}" for n in counts[i]), percent(share[i, i])]
        for i, name in enumerate(names)
    ]
    head = ("true class", *(f"as {short(name)}" for name in names), "right")
    return Chart(
        drawn,
        f"Confusion matrix. {said}.",
        f"{caption} Rows are true classes; per cent of the row.",
        TableBlock(head, rows),
        height=max(340, min(140 + 46 * len(names), 640)),
    )


def _angle(names: Sequence[str]) -> int:
    """Names that would run into each other, or out of the chart, are turned."""
    return -30 if max(len(name) for name in names) * len(names) > 24 else 0


def calibration(before: Array, after: Array, hit: Array, caption: str) -> Chart:
    """How often the model was right, against how sure it was.

    Args:
        before, after: Probability of the predicted class, without and with temperature, shape (n).
        hit: Whether that class was the true one, shape (n).
        caption: With the sample size and the calibration error.
    """
    diagonal = {
        "type": "scatter",
        "mode": "lines",
        "name": "perfect",
        "x": [0, 100],
        "y": [0, 100],
        "line": {"color": "var(--muted)", "dash": "dot", "width": 1.5},
        "hoverinfo": "skip",
    }
    traces, rows, lowest = [diagonal], [], 100.0
    looks = (
        ("before", before, "var(--orange)", "square-open", "dash"),
        ("with temperature", after, "var(--blue)", "circle", "solid"),
    )
    for name, sure, colour, symbol, dash in looks:
        bins = _bins(sure, hit)
        lowest = min(lowest, *(100 * bin_sure for bin_sure, _, _ in bins))
        traces.append(
            {
                "type": "scatter",
                "mode": "lines+markers",
                "name": name,
                "x": rounded([100 * bin_sure for bin_sure, _, _ in bins]),
                "y": rounded([100 * right for _, right, _ in bins]),
                "customdata": [count for _, _, count in bins],
                "line": {"color": colour, "dash": dash, "width": 1.5},
                "marker": {
                    "symbol": symbol,
                    "color": colour,
                    "opacity": 1,
                    "size": rounded([6 + 12 * np.sqrt(n / len(hit)) for _, _, n in bins]),
                },
                "hovertemplate": "%{customdata} graphs: %{x:.0f} % sure, %{y:.0f} % right"
                f"<extra>{name}</extra>",
            }
        )
        rows += [[name, percent(s, 0), percent(right, 0), f"{n:,}"] for s, right, n in bins]
    start = max(0, 10 * int(lowest // 10) - 5)
    drawn = figure(
        traces,
        axis("probability of the predicted class, %", range=[start, 102], zeroline=False),
        axis("graphs that were right, %", range=[-4, 106], zeroline=False),
    )
    return Chart(
        drawn,
        "Calibration curve: share of right answers against the probability that the model gave, "
        "before and with temperature; the dotted diagonal is perfect.",
        f"{caption} {DRAWN_BINS} bins of equal width; larger marks hold more graphs.",
        TableBlock(("curve", "sure", "right", "graphs"), rows),
        height=340,
    )


def _bins(sure: Array, hit: Array) -> list[tuple[float, float, int]]:
    """Of each bin that is not empty: mean probability, share of right answers, graphs."""
    place = np.minimum((sure * DRAWN_BINS).astype(int), DRAWN_BINS - 1)
    found = []
    for number in range(DRAWN_BINS):
        inside = place == number
        if inside.any():
            found.append((float(sure[inside].mean()), float(hit[inside].mean()), int(inside.sum())))
    return found


# -------------------------------------------------------------------- comparison


def accuracies(scores: Mapping[str, Sequence[float]], caption: str, rows_high: int = 0) -> Chart:
    """Test accuracy of each model: a dot a seed, and the mean with its standard deviation.

    Args:
        scores: Of each model, in per cent.
        caption: With the sample size.
        rows_high: Make it as high as a chart of so many rows, to stand beside one.
    """
    names = list(scores)
    found = [mean_std(scores[name]) for name in names]
    dots = {
        "type": "scatter",
        "mode": "markers",
        "name": "one seed",
        "x": [value for name in names for value in rounded(scores[name])],
        "y": [i for i, name in enumerate(names) for _ in scores[name]],
        "marker": {"color": "var(--muted)", "symbol": "circle-open", "size": 8},
        "hovertemplate": "%{x:.1f} %<extra></extra>",
    }
    means = {
        "type": "scatter",
        "mode": "markers",
        "name": "mean",
        "x": rounded([mean for mean, _ in found]),
        "y": list(range(len(names))),
        "marker": {"color": "var(--blue)", "symbol": "diamond", "size": 11},
        "hovertemplate": "mean %{x:.1f} %<extra></extra>",
    }
    if any(len(values) > 1 for values in scores.values()):
        spread = rounded([std for _, std in found])
        means["name"] = "mean ± standard deviation"
        means["error_x"] = {"type": "data", "array": spread, "thickness": 2}
    drawn = figure(
        [dots, means],
        axis("test accuracy, %", zeroline=False),
        axis("", **positions(names, 26, range=[len(names) - 0.4, -0.6])),
    )
    several = [len(scores[name]) > 1 for name in names]
    texts = [
        words.mean_std(mean / 100, std / 100, more)
        for (mean, std), more in zip(found, several, strict=True)
    ]
    said = "; ".join(f"{name} {text}" for name, text in zip(names, texts, strict=True))
    rows = [[n, t, str(len(scores[n]))] for n, t in zip(names, texts, strict=True)]
    return Chart(
        drawn,
        f"Test accuracy by model, best first: {said}.",
        caption,
        TableBlock(("model", "test accuracy", "seeds"), rows),
        height=140 + 34 * max(len(names), rows_high),
    )


def differences(pairs: Sequence[Pair], caption: str, rows_high: int = 0) -> Chart:
    """Paired differences with 95% intervals; filled marks differ at 5 % after Holm's adjustment.

    Args:
        pairs: The pairs.
        caption: With the sample size.
        rows_high: Make it as high as a chart of so many rows, to stand beside one.
    """
    names = [f"{short(p.first)} {MINUS} {short(p.second)}" for p in pairs]
    alike = len(pairs) > 1 and len({p.first for p in pairs}) == 1
    labels = [
        f"{MINUS} {short(p.second, 26)}"
        if alike
        else f"{short(p.first, 16)} {MINUS} {short(p.second, 16)}"
        for p in pairs
    ]
    traces = []
    for differ, name, symbol, colour in (
        (True, "differ at 5 %", "diamond", "var(--blue)"),
        (False, "not decidable", "diamond-open", "var(--muted)"),
    ):
        chosen = [(i, p) for i, p in enumerate(pairs) if (p.adjusted_p < ALPHA) == differ]
        if not chosen:
            continue
        traces.append(
            {
                "type": "scatter",
                "mode": "markers",
                "name": name,
                "x": rounded([p.difference.mean for _, p in chosen]),
                "y": [i for i, _ in chosen],
                "error_x": {
                    "type": "data",
                    "symmetric": False,
                    "array": rounded([p.difference.high - p.difference.mean for _, p in chosen]),
                    "arrayminus": rounded(
                        [p.difference.mean - p.difference.low for _, p in chosen]
                    ),
                    "thickness": 2,
                },
                "marker": {"color": colour, "symbol": symbol, "size": 11},
                "hovertemplate": "%{x:+.1f} points<extra></extra>",
            }
        )
    drawn = figure(
        traces,
        axis(
            f"{label(pairs[0].first, 16)} {MINUS} others, percentage points"
            if alike
            else "difference, percentage points",
            zeroline=True,
            zerolinecolor="var(--ink)",
            zerolinewidth=1,
        ),
        axis("", **positions(labels, 36, range=[len(names) - 0.4, -0.6])),
        showlegend=True,
    )
    rows = [
        [
            name,
            signed(p.difference.mean),
            between((p.difference.low, p.difference.high), ""),
            p_value(p.adjusted_p),
        ]
        for name, p in zip(names, pairs, strict=True)
    ]
    said = "; ".join(f"{row[0]}: {row[1]}, from {row[2]}" for row in rows[:8])
    return Chart(
        drawn,
        f"Paired differences of test accuracy, in percentage points: {said}.",
        caption,
        TableBlock(("pair", "difference", "95% interval", "Holm's p"), rows),
        height=140 + 34 * max(len(names), rows_high),
    )
