"""Figures of hop information, in Matplotlib and in Plotly; both draw the same two panels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from lookhops.core.palette import GREEN, PALE, SERIES, VERMILLION
from lookhops.core.words import compact_percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from lookhops.information.result import HopInformation

MARKERS = ("o", "s", "^", "D", "v", "P", "X")
# Bars of the share lost are drawn up to here: beyond it they cannot be seen.
LAST_BAR = 6


@dataclass(frozen=True)
class Series:
    """One set of gains to draw: all graphs, or one class."""

    label: str
    colour: str
    marker: str
    found: HopInformation


def series(found: HopInformation) -> list[Series]:
    """The classes, where there are any, else all graphs."""
    named = {f"class {name}": one for name, one in found.per_class.items()}
    named = named or {"gain, and 95% of resamples" if found.resampled_b.size else "gain": found}
    return [
        Series(label, SERIES[i % len(SERIES)], MARKERS[i % len(MARKERS)], one)
        for i, (label, one) in enumerate(named.items())
    ]


def matplotlib_figure(found: HopInformation) -> Figure:
    """Gains with their intervals and the fitted curve; the share lost at each k."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.8), layout="constrained")
    gains, lost = figure.subplots(1, 2, width_ratios=(3, 2))
    _draw_gains(gains, found)
    _draw_lost(lost, found)
    figure.suptitle(f"{found.name}: how much each further hop can tell", fontsize=12)
    for axes in (gains, lost):
        axes.spines[["top", "right"]].set_visible(False)
    return figure


def _draw_gains(axes: Axes, found: HopInformation) -> None:
    every = series(found)
    smooth = np.linspace(found.k[0], found.k[-1], 200)
    for i, one in enumerate(every):
        # Classes stand a little apart, so that their intervals do not hide one another.
        k = one.found.k + 0.12 * (i - (len(every) - 1) / 2)
        interval = one.found.gain_interval
        if interval is not None:
            axes.vlines(k, *interval.T, color=one.colour, linewidth=2.5, alpha=0.45)
        axes.plot(k, one.found.gain, one.marker, color=one.colour, label=one.label)
        decay = one.found.decay
        label = f"{decay.a:.3g} e$^{{{-decay.b:.2f}\\,k}}$"
        axes.plot(smooth, decay(smooth), "--", color=one.colour, linewidth=1, label=label)
    axes.set(xlabel="hops k", ylabel="information gain IG(k)", xticks=found.k, ylim=(0, None))
    axes.legend(frameon=False)


def _draw_lost(axes: Axes, found: HopInformation) -> None:
    k, lost = _bars(found)
    colours = [GREEN if one == found.suggested_k else PALE for one in k]
    bars = axes.bar(k, 100 * lost, color=colours)
    axes.bar_label(bars, [compact_percent(share) for share in lost], fontsize=9, padding=2)
    axes.axhline(100 * found.epsilon, color=VERMILLION, linewidth=1, linestyle=":")
    axes.annotate(
        f"{compact_percent(found.epsilon)} may be lost",
        (k[-1] + 0.5, 100 * found.epsilon),
        xytext=(0, 14),
        textcoords="offset points",
        ha="right",
        color=VERMILLION,
        fontsize=9,
    )
    axes.set(xlabel="hops k", ylabel="% of the information lost beyond k", xticks=k)
    axes.set_title(_title(found), fontsize=10, color=GREEN)


def plotly_figure(found: HopInformation) -> Any:
    """The same as :func:`matplotlib_figure`, to explore in a browser."""
    from plotly import graph_objects as go
    from plotly.subplots import make_subplots

    figure = make_subplots(1, 2, column_widths=[0.6, 0.4], subplot_titles=("", _title(found)))
    smooth = np.linspace(found.k[0], found.k[-1], 200)
    for one in series(found):
        style = {"color": one.colour}
        interval, gain = one.found.gain_interval, one.found.gain
        bars = None
        if interval is not None:
            above, below = interval[:, 1] - gain, gain - interval[:, 0]
            bars = {"type": "data", "symmetric": False, "array": above, "arrayminus": below}
        dots = go.Scatter(
            x=one.found.k, y=gain, mode="markers", name=one.label, marker=style, error_y=bars
        )
        curve = one.found.decay
        fit = go.Scatter(
            x=smooth,
            y=curve(smooth),
            mode="lines",
            line={**style, "dash": "dash", "width": 1},
            name=f"{curve.a:.3g} exp({-curve.b:.2f} k)",
        )
        figure.add_traces([dots, fit], rows=[1, 1], cols=[1, 1])
    k, lost = _bars(found)
    colours = [GREEN if one == found.suggested_k else PALE for one in k]
    shares = go.Bar(
        x=k,
        y=100 * lost,
        marker={"color": colours},
        text=[compact_percent(share) for share in lost],
        showlegend=False,
        name="lost",
    )
    figure.add_trace(shares, row=1, col=2)
    figure.add_hline(100 * found.epsilon, line={"color": VERMILLION, "dash": "dot"}, row=1, col=2)
    figure.update_xaxes(title="hops k", dtick=1)
    figure.update_yaxes(title="information gain IG(k)", rangemode="tozero", row=1, col=1)
    figure.update_yaxes(title="% of the information lost beyond k", row=1, col=2)
    figure.update_layout(
        title=f"{found.name}: how much each further hop can tell", template="plotly_white"
    )
    return figure


def _bars(found: HopInformation) -> tuple[np.ndarray, np.ndarray]:
    """Up to which k to draw the share lost, and that share."""
    suggested = found.suggested_k or 0
    k = np.arange(1, max(min(found.max_k, LAST_BAR), min(suggested + 1, found.max_k)) + 1)
    return k, found.lost(k)


def _title(found: HopInformation) -> str:
    k = found.suggested_k
    if k is None:
        return "no k can be suggested"
    return f"k = {k} keeps {compact_percent(1 - found.lost(k))}"
