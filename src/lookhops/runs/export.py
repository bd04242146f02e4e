"""Results as files: all runs as CSV or JSON, a summary as Markdown or LaTeX."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lookhops.core.errors import LookHopsError
from lookhops.core.files import write_text
from lookhops.core.tables import Table, to_csv
from lookhops.core.words import NONE
from lookhops.runs.plan import canonical
from lookhops.runs.results import Results

SUFFIXES = (".csv", ".json", ".md", ".tex")


def export(results: Results, path: Path) -> None:
    """Write results as the file's name says: all runs as CSV or JSON, a summary otherwise."""
    check_suffix(path)
    if path.suffix == ".json":
        write_text(path, compact_json(results.to_json()))
    elif path.suffix == ".csv":
        write_text(path, to_csv(run_rows(results)))
    else:
        table = summary_table(results)
        write_text(path, table.markdown() if path.suffix == ".md" else table.latex())


def check_suffix(path: Path) -> None:
    """Say early that a kind of file is not known."""
    if path.suffix not in SUFFIXES:
        raise LookHopsError(f"{path}: results are exported as {', '.join(SUFFIXES)}.")


def compact_json(value: Mapping[str, Any]) -> str:
    """JSON with a line for each entry of its lists: small, and a change shows where it is."""

    def entry(name: str, content: Any) -> str:
        if isinstance(content, list) and content:
            lines = ",\n".join("  " + json.dumps(each, ensure_ascii=False) for each in content)
            return f" {json.dumps(name)}: [\n{lines}\n ]"
        return f" {json.dumps(name)}: {json.dumps(content, ensure_ascii=False)}"

    return "{\n" + ",\n".join(entry(name, content) for name, content in value.items()) + "\n}\n"


def run_rows(results: Results) -> list[dict[str, Any]]:
    """One row a run: which it is, its metrics, where it ran; of members only how many there are."""
    return [
        {
            "dataset": cell.dataset,
            "model": cell.model,
            "seed": run.seed,
            **run.metrics,
            "members": cell.protocol.members,
            "architecture": canonical(cell.architecture),
            "protocol": canonical(cell.protocol),
            "device": run.machine.device,
            "quick": results.quick,
        }
        for cell in results.cells
        for run in cell.runs
    ]


def summary_table(results: Results) -> Table:
    """Models by data sets: mean and standard deviation of the main metric of the test part."""
    datasets = list(dict.fromkeys(cell.dataset for cell in results.cells))
    models = list(dict.fromkeys(cell.model for cell in results.cells))
    found = {(cell.model, cell.dataset): cell for cell in results.cells}
    rows = []
    for model in models:
        cells = [found.get((model, dataset)) for dataset in datasets]
        rows.append([[model], *([c.written()] if c else [NONE] for c in cells)])
    titles = " or ".join(dict.fromkeys(cell.main.title for cell in results.cells)) or "accuracy"
    mark = " (quick version)" if results.quick else ""
    return Table([f"model{mark}", *datasets], rows, name="summary", title=f"Test {titles}{mark}")
