"""Charts of what a model's score costs: time and parameters, with the Pareto fronts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from lookhops.core.charts import axis, figure, label, rounded, series
from lookhops.core.pictures import picture
from lookhops.core.tables import Table
from lookhops.core.words import joined, short
from lookhops.report.content import Chart
from lookhops.runs.statistics import Cost, pareto_front
from lookhops.tasks import Metric

if TYPE_CHECKING:
    from matplotlib.figure import Figure as MatplotlibFigure


def numbered(costs: Sequence[Cost]) -> dict[str, str]:
    """The number of each model, by which charts name it."""
    return {cost.model: str(i + 1) for i, cost in enumerate(costs)}


def cost_charts(costs: Sequence[Cost], main: Metric, n: str) -> dict[str, Chart]:
    """The main metric against time and against parameters; ``n`` is the sample size in words."""
    numbers = numbered(costs)
    time = {cost: cost.seconds for cost in costs}
    sizes = {cost: float(cost.parameters) for cost in costs if cost.parameters}
    charts = {"seconds a split": time, **({"parameters": sizes} if len(sizes) > 1 else {})}
    return {title: _chart(x, numbers, title, main, n) for title, x in charts.items()}


def cost_picture(costs: Sequence[Cost], main: Metric) -> MatplotlibFigure:
    """The same charts for a file, with the names of the models below."""
    panels = {title: chart.figure for title, chart in cost_charts(costs, main, "").items()}
    names = ", ".join(f"{number} {short(name)}" for name, number in numbered(costs).items())
    note = f"{names}. On the line: no other model is better at less cost."
    return picture(panels, note=note, height=3.4)


def _chart(
    found: Mapping[Cost, float], numbers: Mapping[str, str], title: str, main: Metric, n: str
) -> Chart:
    """The main metric against one cost; a line joins the models that no other beats for less."""
    costs, x = list(found), list(found.values())
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
            texts = [numbers[costs[i].model] for i in places]
            traces.append({**dots, "text": texts, "textposition": "top center"})
    rows = [
        (
            f"{numbers[cost.model]}  {cost.model}",
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
