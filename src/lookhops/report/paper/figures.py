"""The figures of the paper: information gain, accuracy against k; and of a comparison its ranks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from lookhops.core import charts
from lookhops.core.charts import SERIES, axis, series
from lookhops.core.pictures import drawing, new_picture, picture
from lookhops.report.paper.side_by_side import datasets_in_order
from lookhops.runs.paper import HOPS, paper_numbers, rows_of
from lookhops.runs.results import Results

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

QUICK = "quick version: says nothing about the models"


def gain_figure(results: Results) -> Figure | None:
    """IG(k) of each data set with its fit, and the paper's fit; none where nothing is measured."""
    notes = {name: results.notes.get(name, {}) for name in datasets_in_order(results)}
    panels = {name: _gains(name, note["gain"]) for name, note in notes.items() if note.get("gain")}
    return picture(panels, QUICK if results.quick else "") if panels else None


def _gains(name: str, gain: Mapping[str, Any]) -> charts.Figure:
    """The gains of a data set, on a logarithmic scale."""
    k, blue = gain["k"], {"color": "var(--blue)"}
    fine = np.linspace(k[0], k[-1], 100)
    traces = [series("markers", k, gain["gain"], name="IG(k)", marker=blue)]
    dashed = {"color": "var(--vermillion)", "dash": "dash"}
    fits = {"fit": (gain["fit"], blue)}
    if paper := paper_numbers()["gain_fit"].get(name):
        fits["the paper's fit"] = paper, dashed
    for said, (fit, line) in fits.items():
        curve = fit["a"] * np.exp(-fit["b"] * fine)
        traces.append(series("lines", fine, curve, name=said, line={**line, "width": 1.5}))
    return charts.figure(traces, axis("k (hops)", dtick=1), axis("information gain", type="log"))


def accuracy_by_k_figure(results: Results) -> Figure | None:
    """Test accuracy of LiCheb against k, mean and standard error of the seeds."""
    rows = dict(zip(HOPS, rows_of("accuracy-by-k"), strict=True))
    found = {}
    for dataset in datasets_in_order(results):
        cells = {k: cell for k, row in rows.items() if (cell := row.cell(results, dataset))}
        if cells:
            mean, std = np.array([cell.mean_std() for cell in cells.values()]).T
            error = std / np.sqrt([len(cell.seeds) for cell in cells.values()])
            found[dataset] = list(cells), mean, error
    # One scale: what looks steep is steep.
    ends = {name: ((m - e).min(), (m + e).max()) for name, (_, m, e) in found.items()}
    half = 0.55 * max((np.ptp(both) for both in ends.values()), default=0)
    panels = {}
    for name, (k, mean, error) in found.items():
        bars = {"type": "data", "array": error}
        line = series("lines+markers", k, mean, marker={"color": "var(--blue)"}, error_y=bars)
        middle = np.mean(ends[name])
        y = axis("test accuracy, %", range=[middle - half, middle + half])
        panels[name] = charts.figure([line], axis("k (hops)", dtick=1), y)
    return picture(panels, QUICK if results.quick else "") if panels else None


FIGURE_MAKERS = {"gain": gain_figure, "accuracy-by-k": accuracy_by_k_figure}


def rank_figure(ranks: Mapping[str, float], groups: Sequence[Sequence[str]]) -> Figure:
    """Models on an axis of mean ranks; a bar joins groups that do not differ significantly."""
    order = sorted(ranks, key=lambda name: ranks[name])
    lines = -(-len(order) // 2)
    top = 0.6 + 0.35 * len(groups)
    with drawing():
        figure = new_picture(8, 0.9 + 0.3 * (lines + len(groups)))
        ax = figure.subplots()
        last = max(len(order), 2)
        ax.set_xlim(0.4, last + 0.6)
        ax.set_ylim(-top - 0.7 * lines, 0.5)
        ax.spines[["left", "bottom"]].set_visible(False)
        ax.spines["top"].set_visible(True)
        ax.xaxis.tick_top()
        ax.xaxis.set_label_position("top")
        ax.set_xticks(range(1, last + 1))
        ax.set_yticks([])
        ax.set_xlabel("mean rank over the splits (1 is best)")
        for i, name in enumerate(order):
            # The better half is named on the left, the other on the right: no lines cross.
            left = i < lines
            height = -top - 0.7 * (i if left else len(order) - 1 - i)
            _rank_label(ax, name, ranks[name], height, 0.75 if left else last + 0.25, left)
        for i, group in enumerate(groups):
            inside = [ranks[name] for name in group]
            ends, height = [min(inside) - 0.04, max(inside) + 0.04], -0.35 * (i + 1)
            ax.plot(ends, [height] * 2, color=SERIES[1], linewidth=3, solid_capstyle="butt")
    return figure


def _rank_label(ax: Axes, name: str, rank: float, height: float, end: float, left: bool) -> None:
    """A line from a rank down and aside to the name of its model."""
    ax.plot([rank, rank, end], [0.5, height, height], color=SERIES[0], linewidth=1)
    side = "right" if left else "left"
    ax.text(end, height, f" {name} ({rank:.1f}) ", ha=side, va="center", clip_on=False)
