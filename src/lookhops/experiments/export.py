"""Results as files: CSV, JSON, Markdown, LaTeX."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lookhops.errors import LookHopsError
from lookhops.experiments.keys import canonical
from lookhops.experiments.results import Results
from lookhops.files import replacing

NONE, MINUS = "\N{EN DASH}", "\N{MINUS SIGN}"
SUFFIXES = (".csv", ".json", ".md", ".tex")


@dataclass(frozen=True)
class Table:
    """A table that can be written in several languages.

    Args:
        name: Its name, for files.
        title: Above it.
        head: Names of the columns.
        rows: Each cell is one or more lines of text; text between ``**`` is bold.
        records: The same numbers one by one, for CSV.
        note: Below it.
    """

    name: str
    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[Sequence[str]]]
    records: Sequence[Mapping[str, Any]] = field(default_factory=list)
    note: str = ""

    def markdown(self) -> str:
        """As a Markdown table; the lines of a cell below each other."""
        lines = ["| " + " | ".join(self.head) + " |"]
        lines.append("| --- |" + " ---: |" * (len(self.head) - 1))
        for row in self.rows:
            lines.append("| " + " | ".join("<br>".join(cell) for cell in row) + " |")
        return "\n".join(lines) + "\n"

    def latex(self) -> str:
        """As a LaTeX tabular; a row of text for each line of its cells."""
        needed = "% needs \\usepackage{booktabs,amssymb}"
        lines = [rf"% {self.title}", needed, rf"\begin{{tabular}}{{l{'r' * (len(self.head) - 1)}}}"]
        lines += [r"\toprule", " & ".join(map(_latex, self.head)) + r" \\", r"\midrule"]
        for row in self.rows:
            height = max(len(cell) for cell in row)
            for i in range(height):
                texts = (_latex(cell[i]) if i < len(cell) else "" for cell in row)
                lines.append(" & ".join(texts) + r" \\")
        return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", ""])

    def csv(self) -> str:
        """Its numbers, one record a line."""
        return to_csv(self.records)

    def write(self, folder: Path, quick: bool = False) -> list[Path]:
        """Write it as Markdown, LaTeX and CSV; the files."""
        title = f"{self.title} (quick version)" if quick else self.title
        note = f"\n{self.note}\n" if self.note else ""
        mark = "% quick version: says nothing about the models\n" if quick else ""
        records = [{**record, "quick": True} for record in self.records] if quick else self.records
        texts = {
            ".md": f"# {title}\n\n{self.markdown()}{note}",
            ".tex": mark + self.latex(),
            ".csv": to_csv(records),
        }
        paths = []
        for suffix, text in texts.items():
            paths.append(folder / f"{self.name}{suffix}")
            write_text(paths[-1], text)
        return paths


def to_csv(records: Sequence[Mapping[str, Any]]) -> str:
    """Records as CSV; a column for every key that any of them has."""
    names = list(dict.fromkeys(name for record in records for name in record))
    text = io.StringIO()
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(records)
    return text.getvalue()


def _latex(text: str) -> str:
    bold = text.startswith("**") and text.endswith("**") and len(text) > 4
    for old, new in (
        ("**", ""),
        ("`", ""),
        ("\\", r"\textbackslash "),
        *((sign, "\\" + sign) for sign in "%&_#${}"),
        ("^", r"\^{}"),
        ("~", r"\~{}"),
        ("±", r"$\pm$"),
        (MINUS, "$-$"),
        ("²", "$^2$"),
        ("✓", r"$\checkmark$"),
        ("✗", r"$\times$"),
        (NONE, "--"),
    ):
        text = text.replace(old, new)
    return rf"\textbf{{{text}}}" if bold else text


def write_text(path: Path, text: str) -> None:
    """Write a file whole or not at all."""
    with replacing(path) as part:
        part.write_text(text, encoding="utf-8", newline="\n")


def export(results: Results, path: Path) -> None:
    """Write results as the file's name says: all runs as CSV or JSON, a summary otherwise."""
    check_suffix(path)
    if path.suffix == ".json":
        write_text(path, compact_json(results.to_json()))
    elif path.suffix == ".csv":
        write_text(path, to_csv(run_records(results)))
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


def run_records(results: Results) -> list[dict[str, Any]]:
    """One record a run: which it is, its metrics, where it ran."""
    return [
        {
            "dataset": cell.dataset,
            "model": cell.model,
            "seed": seed,
            **{name: values[i] for name, values in cell.metrics.items()},
            "architecture": canonical(cell.architecture),
            "protocol": canonical(cell.protocol),
            "device": cell.environments[i]["machine"]["device"],
            "quick": results.quick,
        }
        for cell in results.cells
        for i, seed in enumerate(cell.seeds)
    ]


def summary_table(results: Results) -> Table:
    """Models by data sets: mean and standard deviation of the test accuracy."""
    datasets = list(dict.fromkeys(cell.dataset for cell in results.cells))
    models = list(dict.fromkeys(cell.model for cell in results.cells))
    found = {(cell.model, cell.dataset): cell for cell in results.cells}
    rows = []
    for model in models:
        cells = [found.get((model, dataset)) for dataset in datasets]
        rows.append(
            [[model], *([plus_minus(c.mean_std(), len(c.seeds))] if c else [NONE] for c in cells)]
        )
    mark = " (quick version)" if results.quick else ""
    return Table("summary", f"Test accuracy{mark}", [f"model{mark}", *datasets], rows)


def plus_minus(value: tuple[float, float], count: int = 2) -> str:
    """``80.6 ± 1.8``; without the spread where there is one value only."""
    return f"{value[0]:.1f} ± {value[1]:.1f}" if count > 1 else f"{value[0]:.1f}"


def counted(count: int, thing: str, things: str | None = None) -> str:
    """``1 run``, ``1,080 runs``."""
    return f"{count:,} {thing if count == 1 else things or thing + 's'}"


def signed(value: float, digits: int = 1) -> str:
    """A difference with its sign, which a small one keeps: an interval holds 0 or does not."""
    return f"{value:+.{digits}f}".replace("-", MINUS)
