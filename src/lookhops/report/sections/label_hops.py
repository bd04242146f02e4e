"""What hops tell about the classes or a number, from what ``lookhops look`` measured."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lookhops.report.charts import axis, figure, rounded, series
from lookhops.report.content import Chart
from lookhops.tables import Table
from lookhops.words import between, counted, percent


def label_accuracy(told: Mapping[str, Any]) -> Chart:
    """Validation accuracy, or R², by what lies within 0, 1, ... hops; the fewest that are enough.

    Args:
        told: What :meth:`~lookhops.information.LabelInformation.to_dict` gives.
    """
    hops, enough, number = told["hops"], told["enough"], told.get("number")
    scale, digits, key = (1, 3, "r2") if number else (100, 1, "accuracy")
    mean, std, lost = ([scale * v for v in told[name]] for name in (key, "std", "lost"))
    ends = [[scale * end for end in one] for one in told["lost_interval"]]
    naive = scale * told["of_the_mean" if number else "majority"]
    head = "R²" if number else "% right"
    below = "below the best" if number else "below the best, points"
    drawn = series(
        "bar",
        hops,
        rounded(mean),
        "within %{x} hops: " + ("R² %{y:.3f}" if number else "%{y:.1f} % right"),
        error_y={"type": "data", "array": rounded(std), "thickness": 2},
        marker={"color": ["var(--green)" if h == enough else "var(--pale)" for h in hops]},
    )
    said = "no number of hops tells them" if enough is None else f"{enough} are enough"
    rows = [
        [
            str(h),
            f"{mean[h]:.{digits}f} ± {std[h]:.{digits}f}",
            f"{lost[h]:.{digits}f}",
            between(ends[h], digits),
        ]
        for h in hops
    ]
    splits = counted(told["splits"], "split")
    what = (
        f"From {number}: R² of a linear model on held-out graphs, by what lies within h hops of "
        f"their nodes, mean and standard deviation of {splits}. Dashed: the mean."
        if number
        else "From the classes: held-out graphs that a linear model puts in the right class by "
        f"what lies within h hops of their nodes, mean and standard deviation of {splits}. "
        f"Dashed: the commonest class, {percent(told['majority'])}."
    )
    return Chart(
        figure(
            [drawn],
            axis("hops h", dtick=1, showgrid=False),
            axis(head, range=[min(0, *mean), 1.05 * scale]),
            shapes=[_level(naive)],
        ),
        f"Bar chart of how well {number or 'the classes'} can be told by what lies within h hops; "
        f"{said}.",
        f"{what} n = {counted(told['graphs'], 'graph')}."
        + ("" if enough is None else " Green: the fewest hops that lose nothing beyond noise."),
        Table(("hops h", head, below, "95% interval"), rows),
    )


def _level(height: float) -> dict[str, Any]:
    """A dashed line across the chart."""
    line = {"color": "var(--vermillion)", "dash": "dash", "width": 1.5}
    return {"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": height, "y1": height} | {
        "line": line
    }
