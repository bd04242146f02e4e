"""What hops tell about the classes, from what ``lookhops look`` measured."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lookhops.report.charts import axis, figure, rounded, series
from lookhops.report.content import Chart
from lookhops.tables import Table
from lookhops.words import between, counted, percent, plus_minus


def label_accuracy(told: Mapping[str, Any]) -> Chart:
    """Validation accuracy by what lies within 0, 1, ... hops, and the fewest that are enough.

    Args:
        told: What :meth:`~lookhops.information.LabelInformation.to_dict` gives.
    """
    hops, enough = told["hops"], told["enough"]
    mean, std, lost = ([100 * v for v in told[key]] for key in ("accuracy", "std", "lost"))
    ends = [[100 * end for end in one] for one in told["lost_interval"]]
    drawn = series(
        "bar",
        hops,
        rounded(mean),
        "within %{x} hops: %{y:.1f} % right",
        error_y={"type": "data", "array": rounded(std), "thickness": 2},
        marker={"color": ["var(--green)" if h == enough else "var(--pale)" for h in hops]},
    )
    commonest = {
        "type": "line",
        "xref": "paper",
        "x0": 0,
        "x1": 1,
        "y0": 100 * told["majority"],
        "y1": 100 * told["majority"],
        "line": {"color": "var(--vermillion)", "dash": "dash", "width": 1.5},
    }
    said = "no number of hops tells them" if enough is None else f"{enough} are enough"
    rows = [
        [str(h), plus_minus((mean[h], std[h])), f"{lost[h]:.1f}", between(ends[h])] for h in hops
    ]
    return Chart(
        figure(
            [drawn],
            axis("hops h", dtick=1, showgrid=False),
            axis("% right", range=[0, 105]),
            shapes=[commonest],
        ),
        f"Bar chart of how many classes are told right by what lies within h hops; {said}.",
        f"From the classes: held-out graphs that a linear model puts in the right class by what "
        f"lies within h hops of their nodes, mean and standard deviation of "
        f"{counted(told['splits'], 'split')}. Dashed: the commonest class, "
        f"{percent(told['majority'])}. n = {counted(told['graphs'], 'graph')}."
        + ("" if enough is None else " Green: the fewest hops that lose nothing beyond noise."),
        Table(("hops h", "% right", "below the best, points", "95% interval"), rows),
    )
