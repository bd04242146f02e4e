"""Charts of what a model's score costs: time and parameters, with the Pareto fronts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lookhops.core.charts import axis, figure, label, rounded, series
from lookhops.core.tables import Table
from lookhops.core.words import joined
from lookhops.report.comparable import Group
from lookhops.report.content import Chart
from lookhops.runs.statistics import Cost, pareto_front
from lookhops.tasks import Metric


def cost_charts(group: Group, n: str) -> list[Chart]:
    """The main metric against time and against parameters.

    Args:
        group: The models.
        n: The sample size, in words.
    """
    costs, main = group.found.costs(), group.found.main
    numbered = {cost.model: str(i + 1) for i, cost in enumerate(costs)}
    counted = [cost for cost in costs if cost.parameters]
    charts = [cost_chart(costs, numbered, "seconds a split", [c.seconds for c in costs], main, n)]
    if len(counted) > 1:
        sizes = [float(cost.parameters or 0) for cost in counted]
        charts.append(cost_chart(counted, numbered, "parameters", sizes, main, n))
    return charts


def cost_chart(
    costs: Sequence[Cost],
    numbered: Mapping[str, str],
    title: str,
    x: Sequence[float],
    main: Metric,
    n: str,
) -> Chart:
    """The main metric against one cost; a line joins the models that no other beats for less.

    Args:
        costs: The models.
        numbered: The number of each.
        title: What the cost is.
        x: The cost of each.
        main: The main metric.
        n: The sample size, in words.
    """
    y = [cost.score for cost in costs]
    front = pareto_front(x, y, main.higher_is_better)
    line = {"color": "var(--blue)", "width": 2}
    ends = rounded([x[i] for i in front]), rounded([y[i] for i in front])
    traces = [series("lines", *ends, name="no other is better for less", line=line)]
    for name, places, colour, symbol in (
        ("on the line", front, "var(--blue)", "diamond"),
        ("others", [i for i in range(len(x)) if i not in front], "var(--muted)", "circle-open"),
    ):
        if places:
            look = {"color": colour, "symbol": symbol, "size": 10}
            names = [label(costs[i].model) for i in places]
            at = rounded([x[i] for i in places]), rounded([y[i] for i in places])
            hover = "%{customdata}: %{y:.4g}"
            dots = series("markers+text", *at, hover, name=name, marker=look, customdata=names)
            numbers = [numbered[costs[i].model] for i in places]
            traces.append({**dots, "text": numbers, "textposition": "top center"})
    rows = [
        (
            f"{numbered[cost.model]}  {cost.model}",
            main.written(cost.score / main.scale),
            f"{value:,.4g}",
            "yes" if i in front else "no",
        )
        for i, (cost, value) in enumerate(zip(costs, x, strict=True))
    ]
    said = f"Test {main.title} against {title}"
    return Chart(
        figure(traces, axis(title, type="log"), axis(f"test {main.heading}", zeroline=False)),
        f"{said}. No other model is better for less than "
        f"{joined([costs[i].model for i in front])}.",
        f"{said}; the line joins the models that no other beats at less cost. Models are numbered "
        f"as in the table above. {n}.",
        Table(("model", f"test {main.title}", title, "on the line"), rows),
        420,
    )
