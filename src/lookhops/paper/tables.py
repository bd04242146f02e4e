"""The paper's tables: ours beside theirs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lookhops.experiments.results import CellResult, Results
from lookhops.paper.reference import (
    COST_DATASET,
    DATASETS,
    ROWS,
    Row,
    best_published,
    paper_name,
    paper_numbers,
    published,
    published_cost,
    rows_of,
)
from lookhops.tables import Table
from lookhops.words import NONE, plus_minus, signed

LEGEND = (
    "In each cell: **ours** (mean ± standard deviation of the test accuracy over the seeds, in per "
    "cent), the paper's, and the difference with ✓ where it is within one standard deviation of "
    "the paper's and ✗ where it is not."
)
COST = (
    f"Parameters and time are those on {COST_DATASET}. Time is 50 times the median epoch among the "
    "2nd to the 30th, training and validation together, in seconds; where seeds were trained "
    "together it is one seed's share."
)
#: What the paper's names of its own rows mean.
ROW_NAMES = (
    "In the names of the LookHops rows, NF is the normalised feature (noNF: without it), pN drops "
    "nodes and pE edges too."
)


def datasets_in_order(results: Results) -> list[str]:
    """The data sets that there are results of: the paper's order first."""
    known = [name for name in DATASETS if name in results.datasets]
    return known + [name for name in results.datasets if name not in known]


def accuracy_table(results: Results, name: str) -> Table:
    """The table ``conv`` or ``pool``."""
    datasets = datasets_in_order(results)
    frankenstein = "BURSI" in datasets
    rows: list[list[list[str]]] = []
    records: list[dict[str, Any]] = []
    for row in rows_of(name):
        cells = [_cell(results, row, dataset, records) for dataset in datasets]
        if frankenstein:
            theirs = published(row, "FRANKENSTEIN")
            cells.append(["", plus_minus(theirs)] if theirs else [NONE])
        rows.append([[row.label, f"`{row.slug}`"], *cells, *_cost(results, row, records)])
    extra = ["FRANKENSTEIN (paper)"] if frankenstein else []
    title = {"conv": "Convolutions", "pool": "Poolings, with LiCheb convolutions"}[name]
    head = ["row", *datasets, *extra, "parameters", "50 epochs"]
    legend = [LEGEND, COST, *([ROW_NAMES] if name == "pool" else [])]
    return Table(name, title, head, rows, records, " ".join(legend))


def _cell(results: Results, row: Row, dataset: str, records: list[dict[str, Any]]) -> list[str]:
    theirs = published(row, dataset)
    mine = results.find(dataset, row.architecture(dataset))
    record: dict[str, Any] = {"row": row.slug, "dataset": dataset}
    lines = [NONE if mine is None else f"**{plus_minus(mine.mean_std(), len(mine.seeds))}**"]
    if mine is not None:
        mean, std = mine.mean_std()
        record |= {"mean": mean, "std": std, "seeds": len(mine.seeds)}
    if theirs is not None:
        lines.append(plus_minus(theirs))
        record |= {"paper_mean": theirs[0], "paper_std": theirs[1]}
    elif paper_name(dataset) == dataset:
        lines.append(NONE)
    if mine is not None and theirs is not None:
        difference = mine.mean_std()[0] - theirs[0]
        within = abs(difference) <= theirs[1]
        lines.append(f"{signed(difference)} {'✓' if within else '✗'}")
        record |= {"difference": difference, "within_one_std": within}
    records.append(record)
    return lines


def _cost(results: Results, row: Row, records: list[dict[str, Any]]) -> list[list[str]]:
    theirs = published_cost(row)
    mine = results.find(COST_DATASET, row.architecture(COST_DATASET))
    record: dict[str, Any] = {"row": row.slug, "dataset": f"{COST_DATASET}, cost"}
    parameters, seconds = [NONE], [NONE]
    if mine is not None:
        count, time = mine.metrics["parameters"][0], fifty_epochs(mine)
        parameters, seconds = [f"**{count / 1000:.1f}k**"], [f"**{time:.3g} s**"]
        if mine.device != results.device:
            seconds.append(f"on {mine.device}")
        record |= {"parameters": count, "seconds_50_epochs": time}
    if theirs is not None:
        parameters.append(f"{theirs[0]}k")
        seconds.append(f"{theirs[1]} s")
        record |= {"paper_parameters": 1000 * theirs[0], "paper_seconds_50_epochs": theirs[1]}
    records.append(record)
    return [parameters, seconds]


def fifty_epochs(cell: CellResult) -> float:
    """Seconds of 50 epochs of one seed: 50 times the mean over seeds of the median epoch."""
    seconds = cell.metrics["seconds_per_epoch"]
    return 50 * sum(seconds) / len(seconds)


def data_table(results: Results) -> Table:
    """The paper's table of data sets."""
    columns = ("graphs", "nodes", "edges", "features", "classes")
    rows, records = [], []
    for name in datasets_in_order(results):
        mine = results.facts.get(name, {}).get("data")
        theirs = paper_numbers()["datasets"].get(name)
        cells = []
        for column in columns:
            lines = [f"**{mine[column]:,}**" if mine else NONE]
            if theirs:
                same = mine and mine[column] == theirs[column]
                lines.append(f"{theirs[column]:,}{' ✓' if same else ' ✗' if mine else ''}")
            cells.append(lines)
        rows.append([[name], *cells])
        paper = {f"paper_{c}": theirs[c] for c in columns} if theirs else {}
        records.append({"dataset": name, **(mine or {}), **paper})
    note = "**Ours**, then the paper's, with ✓ where they are the same. Edges are undirected ones."
    return Table("data", "Data sets", ["data set", *columns], rows, records, note)


def gain_table(results: Results) -> Table:
    """The paper's table of fits a exp(-b k) to the information gain."""
    digits = {"a": 2, "b": 4, "r2": 4, "mse": 4}
    rows, records = [], []
    for name in datasets_in_order(results):
        mine = (results.facts.get(name, {}).get("gain") or {}).get("fit")
        theirs = paper_numbers()["gain_fit"].get(name)
        cells = []
        for key, places in digits.items():
            value = None if mine is None else mine[key]
            lines = [NONE if value is None else f"**{value:.{places}f}**"]
            if theirs:
                lines.append(f"{theirs[key]:.{places}f}")
            cells.append(lines)
        suggested = (results.facts.get(name, {}).get("gain") or {}).get("suggested_k")
        rows.append([[name], *cells, [str(suggested) if suggested else NONE]])
        paper = {f"paper_{key}": theirs[key] for key in digits} if theirs else {}
        own = {key: mine[key] for key in digits} if mine else {}
        records.append({"dataset": name, **own, "suggested_k": suggested, **paper})
    note = (
        "IG(k) for k = 2 to 9, fitted by least squares. **Ours**, then the paper's. The suggested "
        "k is the smallest that loses at most 5% of the information, exp(\N{MINUS SIGN}b k)."
    )
    head = ["data set", "a", "b", "R²", "MSE", "suggested k"]
    return Table("gain", "Information gain a exp(\N{MINUS SIGN}b k)", head, rows, records, note)


def recommended_table(results: Results) -> Table:
    """The recommended network beside the best number that the paper prints for each data set."""
    (row,) = rows_of("recommended")
    rows, records = [], []
    for dataset in datasets_in_order(results):
        mine, best = results.find(dataset, row.architecture(dataset)), best_published(dataset)
        light = results.find(dataset, ROWS["licheb"].architecture(dataset))
        lines = [f"**{plus_minus(mine.mean_std(), len(mine.seeds))}**" if mine else NONE]
        paper = [f"{best[0]:.1f}", best[1]] if best else [NONE]
        reached = [NONE]
        record: dict[str, Any] = {"dataset": dataset}
        if mine is not None:
            record |= {"mean": mine.mean_std()[0], "std": mine.mean_std()[1]}
            record["parameters"] = mine.metrics["parameters"][0]
        if mine is not None and best is not None:
            difference = mine.mean_std()[0] - best[0]
            reached = ["yes" if difference > 0 else "no", signed(difference)]
            record |= {"paper_best": best[0], "paper_row": best[1], "difference": difference}
        size = [f"{mine.metrics['parameters'][0] / 1000:.1f}k"] if mine else [NONE]
        plain = [plus_minus(light.mean_std(), len(light.seeds))] if light else [NONE]
        rows.append([[dataset], lines, paper, reached, size, plain])
        records.append(record)
    head = ["data set", "recommended", "paper's best", "above it", "parameters", "our LiCheb row"]
    note = "The last column is LiCheb as in the table above, without pooling, sum or dropout."
    return Table("recommended", "The recommended network", head, rows, records, note)


def make_tables(results: Results, names: Sequence[str]) -> list[Table]:
    """The tables that are asked for, and the recommended network's where accuracy is."""
    makers = {"data": data_table, "gain": gain_table}
    tables = [
        makers[name](results) if name in makers else accuracy_table(results, name) for name in names
    ]
    if {"conv", "pool"} & {*names}:
        tables.append(recommended_table(results))
    return tables
