"""The paper's tables, ours beside theirs; and the recommended model beside its rivals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lookhops.core.tables import Table
from lookhops.core.words import NONE, plus_minus, signed
from lookhops.report.paper.claims import measure
from lookhops.runs.paper import (
    COST_DATASET,
    DATASETS,
    ROWS,
    Row,
    best_published,
    paper_name,
    paper_numbers,
    rows_of,
)
from lookhops.runs.results import CellResult, Results
from lookhops.runs.statistics import holm, over_datasets

LEGEND = (
    "In each cell: **ours** (mean ± standard deviation of the test accuracy over the seeds, in per "
    "cent), the paper's, and the difference with ✓ where it is within one standard deviation of "
    "the paper's and ✗ where it is not."
)
COST = (
    f"Parameters and time are those on {COST_DATASET}. Time is 50 times the median epoch among the "
    "2nd to the 30th, training and validation together, in seconds; where seeds were trained "
    "together it is one seed's share. A row that only trained while others shared the GPU has none."
)
#: What the paper's names of its own rows mean.
ROW_NAMES = (
    "In the names of the LookHops rows, NF is the normalised feature (noNF: without it), pN drops "
    "nodes and pE edges too."
)
#: Rows that the paper has no numbers of.
OF_ITS_TEXT = "DiffPool, HGP-SL and iPool are named in the paper's text, without numbers."


def datasets_in_order(results: Results) -> list[str]:
    """The data sets that there are results of: the paper's order first."""
    ours = [name for name in DATASETS if name in results.datasets]
    return ours + [name for name in results.datasets if name not in ours]


def accuracy_table(results: Results, name: str) -> Table:
    """The table ``conv`` or ``pool``."""
    datasets = datasets_in_order(results)
    extra = ["FRANKENSTEIN (paper)"] if "BURSI" in datasets else []
    rows: list[list[list[str]]] = []
    records: list[dict[str, Any]] = []
    for row in rows_of(name):
        cells = [_cell(results, row, dataset, records) for dataset in datasets]
        if extra:
            theirs = row.published("FRANKENSTEIN")
            cells.append(["", plus_minus(theirs)] if theirs else [NONE])
        rows.append([[row.label, f"`{row.slug}`"], *cells, *_cost(results, row, records)])
    title = {"conv": "Convolutions", "pool": "Poolings, with LiCheb convolutions"}[name]
    head = ["row", *datasets, *extra, "parameters", "50 epochs"]
    legend = [LEGEND, COST, *([ROW_NAMES, OF_ITS_TEXT] if name == "pool" else [])]
    return Table(head, rows, " ".join(legend), name, title, records)


def _cell(results: Results, row: Row, dataset: str, records: list[dict[str, Any]]) -> list[str]:
    theirs, mine = row.published(dataset), row.cell(results, dataset)
    record: dict[str, Any] = {"row": row.slug, "dataset": dataset}
    lines = [_accuracy(mine, "**")]
    if mine is not None:
        mean, std = mine.mean_std()
        record |= {"mean": mean, "std": std, "seeds": len(mine.seeds)}
    if theirs is not None:
        lines.append(plus_minus(theirs))
        record |= {"paper_mean": theirs[0], "paper_std": theirs[1]}
    elif paper_name(dataset) == dataset:
        lines.append(NONE)
    if mine is not None and theirs is not None:
        difference = record["mean"] - theirs[0]
        within = abs(difference) <= theirs[1]
        lines.append(f"{signed(difference)} {'✓' if within else '✗'}")
        record |= {"difference": difference, "within_one_std": within}
    records.append(record)
    return lines


def _accuracy(cell: CellResult | None, bold: str) -> str:
    if cell is None:
        return NONE
    return f"{bold}{plus_minus(cell.mean_std(), len(cell.seeds))}{bold}"


def _cost(results: Results, row: Row, records: list[dict[str, Any]]) -> list[list[str]]:
    theirs, mine = row.published_cost, row.cell(results, COST_DATASET)
    record: dict[str, Any] = {"row": row.slug, "dataset": f"{COST_DATASET}, cost"}
    parameters, seconds = [NONE], [NONE]
    if mine is not None:
        parameters = [f"**{mine.parameters / 1000:.1f}k**"]
        record["parameters"] = mine.parameters
        if None not in (epochs := mine.metrics["seconds_per_epoch"]):
            record["seconds_50_epochs"] = time = 50 * sum(epochs) / len(epochs)
            elsewhere = [f"on {mine.device}"] if mine.device != results.device else []
            seconds = [f"**{time:.3g} s**", *elsewhere]
    if theirs is not None:
        parameters.append(f"{theirs[0]}k")
        seconds.append(f"{theirs[1]} s")
        record |= {"paper_parameters": 1000 * theirs[0], "paper_seconds_50_epochs": theirs[1]}
    records.append(record)
    return [parameters, seconds]


def data_table(results: Results) -> Table:
    """The paper's table of data sets."""
    formats = dict.fromkeys(("graphs", "nodes", "edges", "features", "classes"), ",")
    rows, records = [], []
    for name in datasets_in_order(results):
        mine = results.notes.get(name, {}).get("data") or {}
        cells, theirs = _beside(mine, "datasets", name, formats)
        rows.append([[name], *cells])
        records.append({"dataset": name, **mine, **theirs})
    note = "**Ours**, then the paper's, with ✓ where they are the same. Edges are undirected ones."
    return Table(["data set", *formats], rows, note, "data", "Data sets", records)


def gain_table(results: Results) -> Table:
    """The paper's table of fits a exp(-b k) to the information gain."""
    formats = {"a": ".2f", "b": ".4f", "r2": ".4f", "mse": ".4f"}
    rows, records = [], []
    for name in datasets_in_order(results):
        gain = results.notes.get(name, {}).get("gain") or {}
        mine, suggested = gain.get("fit", {}), gain.get("suggested_k")
        cells, theirs = _beside(mine, "gain_fit", name, formats)
        rows.append([[name], *cells, [str(suggested) if suggested else NONE]])
        fitted = {key: mine[key] for key in formats if key in mine}
        records.append({"dataset": name, **fitted, "suggested_k": suggested, **theirs})
    note = (
        "IG(k) for k = 2 to 9, fitted by least squares. **Ours**, then the paper's. The suggested "
        "k is the smallest that loses at most 5% of the information, exp(\N{MINUS SIGN}b k)."
    )
    head = ["data set", "a", "b", "R²", "MSE", "suggested k"]
    title = "Information gain a exp(\N{MINUS SIGN}b k)"
    return Table(head, rows, note, "gain", title, records)


def _beside(
    mine: Mapping[str, Any], table: str, dataset: str, formats: Mapping[str, str]
) -> tuple[list[list[str]], dict[str, Any]]:
    """A cell for each number: ours, then the paper's, counts marked; and the paper's by name."""
    theirs, cells = paper_numbers()[table].get(dataset, {}), []
    for name, form in formats.items():
        value = mine.get(name)
        lines = [NONE if value is None else f"**{value:{form}}**"]
        if theirs:
            mark = (" ✓" if value == theirs[name] else " ✗") if form == "," and mine else ""
            lines.append(f"{theirs[name]:{form}}{mark}")
        cells.append(lines)
    return cells, {f"paper_{name}": theirs[name] for name in formats if theirs}


def make_tables(results: Results, names: Sequence[str]) -> list[Table]:
    """The tables that are asked for."""
    makers = {"data": data_table, "gain": gain_table, "ours": own_table}
    return [
        makers[name](results) if name in makers else accuracy_table(results, name) for name in names
    ]


RECOMMENDED = "recommended"
#: Rows of other tables that stand below ours.
OF_THE_PAPER = ("licheb", "cheb", "gcn")
NOTE = (
    "Test accuracy in per cent, mean ± standard deviation over the seeds, and parameters on "
    f"{COST_DATASET}. The last column is how far a row is behind the recommended model: the mean "
    "over the data sets of the differences paired by seed, in percentage points, with the p-value "
    "of the corrected resampled t-test (Nadeau and Bengio), Holm-adjusted. Members are "
    "several networks for each split whose answers are averaged: not one model, so they are not "
    "compared. `wl` and `wl-oa` are Weisfeiler-Lehman kernels with a support vector machine; "
    "`baseline` knows sizes and counts alone. The paper's best is the best number that it prints."
)


def own_table(results: Results) -> Table:
    """Accuracy of our own rows, and how far the recommended model is ahead of each."""
    datasets = [name for name in DATASETS if ROWS[RECOMMENDED].cell(results, name)]

    def mean(values: Sequence[float]) -> str:
        """Over the data sets, where there is a value for each."""
        complete = bool(values) and len(values) == len(datasets)
        return f"{sum(values) / len(values):.1f}" if complete else NONE

    best = [best_published(name) for name in datasets]
    published_best = [[f"{one[0]:.1f}", one[1]] if one else [NONE] for one in best]
    mean_best = [mean([one[0] for one in best if one])]
    rows = [[["the paper's best"], *published_best, mean_best, [NONE], [NONE]]]
    every = [*rows_of("ours"), *(ROWS[slug] for slug in OF_THE_PAPER)]
    shown = [row for row in every if any(row.cell(results, name) for name in datasets)]
    ahead = _ahead(results, [row for row in shown if row.slug != RECOMMENDED and row.members == 1])
    records: list[dict[str, Any]] = []
    for row in shown:
        cells = {name: row.cell(results, name) for name in datasets}
        scores = {name: cell.mean_std() for name, cell in cells.items() if cell}
        mark = "**" if row.slug == RECOMMENDED else ""
        accuracies = [[_accuracy(cell, mark)] for cell in cells.values()]
        average = f"{mark}{mean([score for score, _ in scores.values()])}{mark}"
        sized = row.cell(results, COST_DATASET)
        size = f"{sized.parameters / 1000:.1f}k" if sized and sized.parameters else NONE
        names = [row.label, f"`{row.slug}`"]
        rows.append([names, *accuracies, [average], [size], ahead.get(row.slug, [NONE])])
        for dataset, (score, std) in scores.items():
            records.append({"row": row.slug, "dataset": dataset, "mean": score, "std": std})
    head = ["row", *datasets, "mean", "parameters", "behind by"]
    return Table(head, rows, NOTE, "ours", "The recommended model", records)


def _ahead(results: Results, rows: Sequence[Row]) -> dict[str, list[str]]:
    """For each row, by how much the recommended model is ahead of it, and p."""
    measured = {row.slug: measure([RECOMMENDED], [row.slug], results) for row in rows}
    found = {slug: over_datasets([*each.values()]) for slug, each in measured.items() if each}
    adjusted = holm([one.p for one in found.values()])
    pairs = zip(found.items(), adjusted, strict=True)
    return {slug: [signed(one.mean), f"p = {p:.2g}"] for (slug, one), p in pairs}
