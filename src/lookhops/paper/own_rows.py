"""The recommended model beside what a person would use instead, on the paper's splits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lookhops.experiments.results import Results
from lookhops.experiments.statistics import holm, over_datasets
from lookhops.paper.claims import Contrast, measure
from lookhops.paper.reference import COST_DATASET, DATASETS, ROWS, Row, best_published, rows_of
from lookhops.tables import Table
from lookhops.words import NONE, plus_minus, signed

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
    best = [best_published(name) for name in datasets]
    rows: list[list[list[str]]] = [
        [
            ["the paper's best"],
            *([f"{one[0]:.1f}", one[1]] if one else [NONE] for one in best),
            [_mean([one[0] for one in best if one], datasets)],
            [NONE],
            [NONE],
        ]
    ]
    known = [*rows_of("ours"), *(ROWS[slug] for slug in OF_THE_PAPER)]
    shown = [row for row in known if any(row.cell(results, name) for name in datasets)]
    ahead = _ahead(results, [row for row in shown if row.slug != RECOMMENDED and row.members == 1])
    records: list[dict[str, Any]] = []
    for row in shown:
        cells = [row.cell(results, name) for name in datasets]
        found = [cell.mean_std() for cell in cells if cell]
        mark = "**" if row.slug == RECOMMENDED else ""
        accuracies = [
            [f"{mark}{plus_minus(cell.mean_std(), len(cell.seeds))}{mark}" if cell else NONE]
            for cell in cells
        ]
        mean = f"{mark}{_mean([one[0] for one in found], datasets)}{mark}"
        sized = row.cell(results, COST_DATASET)
        size = f"{sized.parameters / 1000:.1f}k" if sized and sized.parameters else NONE
        name = [row.label, f"`{row.slug}`"]
        rows.append([name, *accuracies, [mean], [size], ahead.get(row.slug, [NONE])])
        for dataset, cell in zip(datasets, cells, strict=True):
            if cell:
                values = dict(zip(("mean", "std"), cell.mean_std(), strict=True))
                records.append({"row": row.slug, "dataset": dataset, **values})
    head = ["row", *datasets, "mean", "parameters", "behind by"]
    return Table(head, rows, NOTE, "ours", "The recommended model", records)


def _mean(values: Sequence[float], datasets: Sequence[str]) -> str:
    """Over the data sets, where there is a value for each."""
    complete = bool(datasets) and len(values) == len(datasets)
    return f"{sum(values) / len(values):.1f}" if complete else NONE


def _ahead(results: Results, rows: Sequence[Row]) -> dict[str, list[str]]:
    """For each row, by how much the recommended model is ahead of it, and p."""
    found = {}
    for row in rows:
        measured = measure(Contrast(row.label, (RECOMMENDED,), (row.slug,)), results)
        if measured:
            found[row.slug] = over_datasets(list(measured.values()))
    adjusted = holm([one.p for one in found.values()])
    return {
        slug: [signed(one.mean), f"p = {p:.2g}"]
        for (slug, one), p in zip(found.items(), adjusted, strict=True)
    }
