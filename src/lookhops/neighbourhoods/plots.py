"""The figure of hop information, in Matplotlib."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lookhops.core.palette import GREEN, PALE, SERIES, VERMILLION
from lookhops.core.words import compact_percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from lookhops.neighbourhoods.information import HopInformation

MARKERS = ("o", "s", "^", "D", "v", "P", "X")
# Bars of the share lost are drawn up to here: beyond it they cannot be seen.
LAST_BAR = 6


def draw(found: HopInformation) -> Figure:
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
    """The gains of each class where there are any, else of all graphs."""
    series = {f"class {name}": one for name, one in found.per_class.items()}
    series = series or {"gain, and 95% of resamples" if found.resampled_b.size else "gain": found}
    smooth = np.linspace(found.k[0], found.k[-1], 200)
    for i, (label, one) in enumerate(series.items()):
        colour, marker = SERIES[i % len(SERIES)], MARKERS[i % len(MARKERS)]
        # Classes stand a little apart, so that their intervals do not hide one another.
        k = one.k + 0.12 * (i - (len(series) - 1) / 2)
        if one.gain_interval is not None:
            axes.vlines(k, *one.gain_interval.T, color=colour, linewidth=2.5, alpha=0.45)
        axes.plot(k, one.gain, marker, color=colour, label=label)
        fit = f"{one.decay.a:.3g} e$^{{{-one.decay.b:.2f}\\,k}}$"
        axes.plot(smooth, one.decay(smooth), "--", color=colour, linewidth=1, label=fit)
    axes.set(xlabel="hops k", ylabel="information gain IG(k)", xticks=found.k, ylim=(0, None))
    axes.legend(frameon=False)


def _draw_lost(axes: Axes, found: HopInformation) -> None:
    suggested = found.suggested_k
    last = max(min(found.max_k, LAST_BAR), min((suggested or 0) + 1, found.max_k))
    k = np.arange(1, last + 1)
    lost = found.lost(k)
    colours = [GREEN if one == suggested else PALE for one in k]
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
    title = "no k can be suggested"
    if suggested is not None:
        title = f"k = {suggested} keeps {compact_percent(1 - found.lost(suggested))}"
    axes.set_title(title, fontsize=10, color=GREEN)
