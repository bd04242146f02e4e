"""The paper reproduced: figures, and the page in Markdown with tables, figures and answers."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lookhops.core import charts
from lookhops.core.charts import SERIES, axis, series, templates_of
from lookhops.core.files import changing, write_text
from lookhops.core.paired import Estimate
from lookhops.core.pictures import drawing, new_picture, picture, save_both
from lookhops.core.tables import Table
from lookhops.core.words import NONE, QUICK_MARK, counted, signed
from lookhops.report.paper.claims import CLAIMS, Verdict, judge
from lookhops.report.paper.side_by_side import datasets_in_order, make_tables
from lookhops.runs.paper import (
    COST_DATASET,
    DATASETS,
    HOPS,
    QUICK_SEEDS,
    ROWS,
    best_published,
    paper_numbers,
    rows_of,
)
from lookhops.runs.results import Results
from lookhops.training import Protocol

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PAGE, FOLDER = "paper.md", "paper"
CAPTIONS = {
    "gain": "Information gain of each further hop, with its fit and the paper's. The fit is to the "
    "gains themselves, as the paper's is: the small gains of many hops, which this scale shows, "
    "hardly bear on it.",
    "accuracy-by-k": "Test accuracy of LiCheb without pooling against k: mean and standard error "
    "over the seeds. (The paper prints this figure without numbers.)",
}


def write_page(
    results: Results, folder: Path, tables: Sequence[str], figures: Sequence[str]
) -> list[Path]:
    """Write the page, its tables (Markdown, CSV, LaTeX) and figures (SVG, PNG); the files."""
    made = make_tables(results, tables)
    drawn = {name: picture for name in figures if (picture := FIGURE_MAKERS[name](results))}
    with changing(folder) as new:
        paths = [path for table in made for path in table.write(new / FOLDER, results.quick)]
        for name, picture in drawn.items():
            paths += save_both(picture, new / FOLDER, name)
        write_text(new / PAGE, _page(results, made, tables, drawn))
        paths.insert(0, new / PAGE)
    return [folder / path.relative_to(new) for path in paths]


def _page(
    results: Results, made: Sequence[Table], tables: Sequence[str], drawn: Mapping[str, Figure]
) -> str:
    """The page in Markdown, with these tables and figures."""
    all_rows = {"conv", "pool"} <= {*tables}
    chosen = asdict(ROWS["recommended"].model)
    page = templates_of("lookhops.report.paper", keep_trailing_newline=True)
    text = page.get_template(PAGE).render(
        results=results,
        mark=QUICK_MARK if results.quick else "",
        folder=FOLDER,
        tables=made,
        names=tables,
        drawn=drawn,
        captions=CAPTIONS,
        commands=_commands,
        verdicts=[judge(claim, results) for claim in CLAIMS] if all_rows else [],
        answered=partial(_answers, datasets_in_order(results)),
        recommended=", ".join(f"{key} = {v}" for key, v in chosen.items() if v is not None),
        reached=_reached(results),
        parameters=_parameters(results),
        ran=_environment(results),
    )
    return f"{text.rstrip()}\n"


def _reached(results: Results) -> str:
    """On which data sets the recommended model is above the paper's best number; if it was run."""
    above, below = list[str](), list[str]()
    for name in datasets_in_order(results):
        cell, best = ROWS["recommended"].cell(results, name), best_published(name)
        if cell and best:
            (above if cell.mean_std()[0] > best[0] else below).append(name)
    if not above and not below:
        return ""
    text = f"{len(above)} of {len(above) + len(below)} data sets"
    text += f" ({', '.join(above)})" if above else ""
    return text + (f"; not on {', '.join(below)}" if below else "")


def _commands(results: Results, table: str) -> list[str]:
    names = datasets_in_order(results)
    if table in ("data", "gain"):
        quick = " --quick" if results.quick else ""
        chosen = f" --datasets {','.join(names)}" if set(names) != {*DATASETS} else ""
        return [f"lookhops paper --tables {table} --figures none{quick}{chosen} -o again"]
    where = f"--tables {table} --figures none"
    if table == "accuracy-by-k":
        where = "--tables none --figures accuracy-by-k"
    return [
        f"lookhops paper {where} --rows {row.slug} --datasets {dataset}"
        f"{_protocol_options(cell.protocol, cell.seeds, results.quick)} -o again"
        for row in rows_of(table)
        for dataset in names
        if (cell := row.cell(results, dataset))
    ]


def _protocol_options(protocol: Protocol, seeds: Sequence[int], quick: bool) -> str:
    text = " --quick" if quick else ""
    if tuple(seeds) != (QUICK_SEEDS if quick else Protocol().seeds):
        text += f" --seeds {','.join(map(str, seeds))}"
    if protocol.precision != Protocol().precision:
        text += f" --precision {shlex.quote(protocol.precision)}"
    return text


def _answers(datasets: Sequence[str], verdict: Verdict) -> Table | None:
    rows = []
    for answer in verdict.answers:
        if answer.overall:
            estimates = (answer.by_dataset.get(name) for name in datasets)
            cells = [_interval(one) if one else [NONE] for one in estimates]
            overall = [*_interval(answer.overall, "**"), f"p = {answer.adjusted_p:.2g}"]
            rows.append([[answer.contrast], *cells, overall])
    return Table(["difference", *datasets, "all"], rows) if rows else None


def _interval(estimate: Estimate, bold: str = "") -> list[str]:
    low, high = signed(estimate.low), signed(estimate.high)
    return [f"{bold}{signed(estimate.mean)}{bold}", f"{low} to {high}"]


def _parameters(results: Results) -> str:
    light, full = (ROWS[slug].cell(results, COST_DATASET) for slug in ("licheb", "cheb"))
    if light is None or full is None:
        return ""
    a, b = light.parameters, full.parameters
    return f"Parameters on {COST_DATASET}: {a:,} against {b:,}, {a / b:.0%}."


def _environment(results: Results) -> list[str]:
    """Where the runs were trained, and how long that took."""
    if not results.cells:
        return []
    runs = Counter(
        (str(run.machine), run.versions["torch"], run.versions["lookhops"])
        for cell in results.cells
        for run in cell.runs
    )
    lines = []
    for (device, torch, version), count in runs.most_common():
        line = f"{counted(count, 'run')} on {device}, with PyTorch {torch} and LookHops {version}"
        where = dict[str, list[str]]()
        for cell in results.cells:
            if device in (str(run.machine) for run in cell.runs):
                where.setdefault(cell.model, []).append(cell.dataset)
        named = "; ".join(f"{model} on {', '.join(names)}" for model, names in where.items())
        lines.append(line if device == results.device else f"{line}: {named}")
    seconds = sum(sum(cell.metrics["seconds"]) for cell in results.cells)
    precision = Counter(cell.protocol.precision for cell in results.cells)
    said = ", ".join(f"{name} in {counted(n, 'cell')}" for name, n in precision.most_common())
    total = (
        f"{seconds / 60:.1f} minutes of training, added up over all runs, of which several may "
        f"have shared a machine at a time; precision {said}"
    )
    return [*lines, total]


#: Said above figures of few graphs.
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
