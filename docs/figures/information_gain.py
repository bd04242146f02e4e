"""Draw docs/figures/information_gain.svg: IG(k) of the paper's data sets, measured here.

LOOKHOPS_DATA names the folder of the five sets. Numbers go to stdout as a Markdown table.
"""

from pathlib import Path

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure

import lookhops
from lookhops.core.charts import SERIES
from lookhops.core.pictures import MARKERS
from lookhops.neighbourhoods import HopInformation

NAMES = ("PROTEINS", "DD", "NCI1", "NCI109", "Mutagenicity")


def figure(every: list[HopInformation]) -> Figure:
    """Gains on an even and on a logarithmic scale, with the fitted curve on the first."""
    drawn = Figure(figsize=(9, 3.8), layout="constrained")
    plain, logarithmic = drawn.subplots(1, 2)
    smooth = np.linspace(2, 9, 100)
    for found, colour, marker in zip(every, SERIES, MARKERS.values(), strict=False):
        style = {"color": colour, "marker": marker, "markersize": 5}
        plain.plot(found.k, found.gain, linestyle="none", label=found.name, **style)
        plain.plot(smooth, found.decay(smooth), color=colour, linewidth=1)
        logarithmic.plot(found.k, found.gain, linewidth=1, **style)
        logarithmic.fill_between(found.k, *found.gain_interval.T, color=colour, alpha=0.2)
    plain.set(ylabel="information gain IG(k)")
    plain.set_title("gains, and a e$^{-bk}$ fitted to them", fontsize=10)
    logarithmic.set(yscale="log")
    logarithmic.set_title("on a logarithmic scale, with 95% intervals", fontsize=10)
    for axes in (plain, logarithmic):
        axes.set(xlabel="hops k", xticks=range(2, 10))
        axes.spines[["top", "right"]].set_visible(False)
    plain.legend(frameon=False)
    return drawn


def main() -> None:
    """Measure, print and draw."""
    every = [lookhops.look(lookhops.load(name)) for name in NAMES]
    print("| | IG(2) | IG(3) | IG(4) | IG(9) | a | b | R² | lost at the suggested k |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for found in every:
        gains = [f"{found.gain[i]:.4f}" for i in (0, 1, 2, -1)]
        low, high = found.b_interval or (np.nan, np.nan)
        k = found.suggested_k or 0
        fit = f"{found.decay.a:.1f} | {found.decay.b:.3f} ({low:.2f} to {high:.2f})"
        lost = f"k = {k}: {100 * found.lost(k):.1f}%"
        print(f"| {found.name} | {' | '.join(gains)} | {fit} | {found.decay.r2:.4f} | {lost} |")
    # Text as text, and no date: the same numbers give the same file.
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "lookhops"}):
        path = Path(__file__).with_suffix(".svg")
        figure(every).savefig(path, metadata={"Date": None})


if __name__ == "__main__":
    main()
