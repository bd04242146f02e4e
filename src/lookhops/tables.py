"""One table for every medium: Markdown, LaTeX, CSV; the command line prints the same object."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lookhops.files import write_text
from lookhops.words import MINUS, NONE


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
