"""The figures: information gain, accuracy against k, and mean ranks; one family of pictures."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lookhops.core.files import replacing
from lookhops.core.palette import SERIES
from lookhops.core.words import short, visible
from lookhops.report.paper.side_by_side import datasets_in_order
from lookhops.runs.paper import HOPS, paper_numbers, rows_of
from lookhops.runs.results import Results
from lookhops.runs.statistics import Cost, pareto_front

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

STYLE: Any = {
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 9,
    "axes.titleweight": "bold",
    "svg.fonttype": "none",
    "svg.hashsalt": "lookhops",  # the same picture is the same file
}
QUICK = "quick version: says nothing about the models"


@contextmanager
def _drawing() -> Iterator[None]:
    import matplotlib as mpl

    with mpl.rc_context(STYLE):
        yield


def new_figure(width: float, height: float, quick: bool = False) -> Figure:
    """An empty figure that no window will show."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    if quick:
        figure.suptitle(QUICK, color=SERIES[1], fontsize=9)
    return figure


def save(figure: Figure, folder: Path, name: str) -> list[Path]:
    """Write a figure as SVG and PNG; the files."""
    paths = [folder / f"{name}.{kind}" for kind in ("svg", "png")]
    for path in paths:
        draw(figure, path)
    return paths


def draw(figure: Figure, path: Path) -> None:
    """Write a figure to a file, as the kind that its name says."""
    from matplotlib.text import Text

    kind = path.suffix[1:].lower()
    rest: dict[str, Any] = {"dpi": 150} if kind == "png" else {}
    if kind == "svg":
        rest = {"metadata": {"Date": None}}
    for text in figure.findobj(Text):  # fonts have no control characters
        text.set_text(visible(text.get_text()))
    with _drawing(), replacing(path) as part:
        figure.savefig(part, format=kind, **rest)
        if kind == "svg":  # names with control characters would make it no XML
            part.write_text(visible(part.read_text(encoding="utf-8")), encoding="utf-8")


def _panels(
    contents: Mapping[str, Any], draw: Callable[[Axes, str, Any], None], quick: bool
) -> Figure | None:
    """A panel for each data set, three in a row; none where there is nothing to draw."""
    if not contents:
        return None
    lines = -(-len(contents) // 3)
    with _drawing():
        figure = new_figure(9, 2.6 * lines + 0.3, quick)
        axes = figure.subplots(lines, min(3, len(contents)), squeeze=False).flat
        for ax in axes[len(contents) :]:
            ax.set_axis_off()
        for ax, (name, content) in zip(axes, contents.items(), strict=False):
            ax.set_title(name)
            ax.set_xlabel("k (hops)")
            draw(ax, name, content)
    return figure


def gain_figure(results: Results) -> Figure | None:
    """IG(k) of each data set with its fit, and the paper's fit; none where nothing is measured."""
    notes = {name: results.notes.get(name, {}) for name in datasets_in_order(results)}
    gains = {name: note["gain"] for name, note in notes.items() if note.get("gain")}
    return _panels(gains, _gain_panel, results.quick)


def _gain_panel(ax: Axes, name: str, gain: Mapping[str, Any]) -> None:
    k = np.asarray(gain["k"])
    fine = np.linspace(k[0], k[-1], 100)
    fit, paper = gain["fit"], paper_numbers()["gain_fit"].get(name)
    ax.semilogy(k, gain["gain"], "o", color=SERIES[0], markersize=4, label="IG(k)")
    ax.semilogy(fine, fit["a"] * np.exp(-fit["b"] * fine), color=SERIES[0], label="fit")
    if paper:
        curve = paper["a"] * np.exp(-paper["b"] * fine)
        ax.semilogy(fine, curve, "--", color=SERIES[1], label="the paper's fit")
    ax.set_ylabel("information gain")
    ax.set_xticks(k)
    ax.legend(frameon=False, fontsize=8)


def accuracy_by_k_figure(results: Results) -> Figure | None:
    """Test accuracy of LiCheb against k, mean and standard error of the seeds."""
    rows = dict(zip(HOPS, rows_of("accuracy-by-k"), strict=True))
    found = {}
    for dataset in datasets_in_order(results):
        cells = {k: cell for k, row in rows.items() if (cell := row.cell(results, dataset))}
        if cells:
            found[dataset] = [(k, *c.mean_std(), len(c.seeds)) for k, c in cells.items()]

    def draw(ax: Axes, _: str, points: Sequence[tuple[float, ...]]) -> None:
        k, mean, std, count = map(np.array, zip(*points, strict=True))
        ax.errorbar(k, mean, std / np.sqrt(count), fmt="o-", color=SERIES[0], capsize=3)
        ax.set_ylabel("test accuracy, %")
        ax.set_xticks(HOPS)

    figure = _panels(found, draw, results.quick)
    shown = figure.axes[: len(found)] if figure else []
    half = max((float(np.ptp(ax.get_ylim())) for ax in shown), default=0.0) / 2
    for ax in shown:  # one scale: what looks steep is steep
        middle = float(np.mean(ax.get_ylim()))
        ax.set_ylim(middle - half, middle + half)
    return figure


FIGURE_MAKERS = {"gain": gain_figure, "accuracy-by-k": accuracy_by_k_figure}


def rank_figure(ranks: Mapping[str, float], groups: Sequence[Sequence[str]]) -> Figure:
    """Models on an axis of mean ranks; a bar joins those that do not differ significantly.

    Args:
        ranks: Mean rank of each model.
        groups: Models that a bar joins.
    """
    order = sorted(ranks, key=lambda name: ranks[name])
    lines = -(-len(order) // 2)
    top = 0.6 + 0.35 * len(groups)
    with _drawing():
        figure = new_figure(8, 0.9 + 0.3 * (lines + len(groups)))
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
            _rank_label(ax, name, ranks[name], i, lines, len(order), top, last)
        for i, group in enumerate(groups):
            inside = [ranks[name] for name in group]
            ends, height = [min(inside) - 0.04, max(inside) + 0.04], -0.35 * (i + 1)
            ax.plot(ends, [height] * 2, color=SERIES[1], linewidth=3, solid_capstyle="butt")
    return figure


def _rank_label(
    ax: Axes, name: str, rank: float, i: int, lines: int, count: int, top: float, last: int
) -> None:
    """The better half is named on the left, the other on the right, so that no lines cross."""
    left = i < lines
    height = -top - 0.7 * (i if left else count - 1 - i)
    end = 0.75 if left else last + 0.25
    ax.plot([rank, rank, end], [0.5, height, height], color=SERIES[0], linewidth=1)
    side = "right" if left else "left"
    ax.text(end, height, f" {name} ({rank:.1f}) ", ha=side, va="center", clip_on=False)


def cost_figure(costs: Sequence[Cost], score: str, higher_is_better: bool = True) -> Figure:
    """The models' scores against their time and their parameters, with the Pareto fronts.

    Args:
        costs: What each model takes, best first.
        score: What the score is called on its axis.
        higher_is_better: Whether more of it is better.
    """
    from matplotlib.ticker import EngFormatter

    counted = [cost for cost in costs if cost.parameters]
    panels: list[tuple[str, Sequence[Cost], list[float]]] = [
        ("seconds a split", costs, [cost.seconds for cost in costs]),
        ("parameters", counted, [float(cost.parameters or 0) for cost in counted]),
    ]
    number = {cost.model: str(i + 1) for i, cost in enumerate(costs)}
    with _drawing():
        figure = new_figure(9, max(3.4, 0.2 * len(costs)))
        *axes, names = figure.subplots(1, 3, width_ratios=(3, 3, 2))
        for ax, (title, shown, x) in zip(axes, panels, strict=True):
            y = [cost.score for cost in shown]
            front = pareto_front(x, y, higher_is_better)
            ax.plot([x[i] for i in front], [y[i] for i in front], color=SERIES[0], zorder=1)
            colours = [SERIES[0] if i in front else "0.6" for i in range(len(x))]
            ax.scatter(x, y, s=26, color=colours, zorder=2)
            for i, cost in enumerate(shown):
                ends = (x[i], y[i])
                ax.annotate(number[cost.model], ends, (4, 4), textcoords="offset points")
            if x and max(x) > 10 * min(x) > 0:
                ax.set_xscale("log")
            ax.xaxis.set_major_formatter(EngFormatter(sep=""))  # 110k
            ax.set_xlabel(title)
            ax.set_ylabel(score)
        names.set_axis_off()
        listed = "\n".join(f"{i}  {short(name)}" for name, i in number.items())
        names.text(0, 1, listed, va="top", fontsize=8)
        names.text(0, 0, "On the line: no other model\nis better at less cost.", fontsize=8)
    return figure
