"""One table for every medium: Markdown, LaTeX, CSV, HTML, and the terminal of the commands."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import zip_longest
from pathlib import Path
from typing import Any

from lookhops.files import write_text
from lookhops.words import MINUS, NONE

#: A text, or several lines of text.
Cell = str | Sequence[str]


@dataclass(frozen=True)
class Table:
    """A table that can be written in several languages; its first column names the rows.

    Args:
        head: Names of the columns.
        rows: The cells; in Markdown and LaTeX text between ``**`` is bold.
        note: Below it: what it shows, with units and sample sizes.
        name: Its name, for files.
        title: Above it.
        records: The same numbers one by one, for CSV.
        best: Number of the row to stand out, if any.
    """

    head: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    note: str = ""
    name: str = ""
    title: str = ""
    records: Sequence[Mapping[str, Any]] = ()
    best: int | None = None

    def markdown(self) -> str:
        """As a Markdown table; the lines of a cell below each other."""
        lines = ["| " + " | ".join(self.head) + " |"]
        lines.append("| --- |" + " ---: |" * (len(self.head) - 1))
        for row in self.rows:
            lines.append("| " + " | ".join("<br>".join(lines_of(cell)) for cell in row) + " |")
        return "\n".join(lines) + "\n"

    def html(self) -> str:
        """As an HTML table: all its text is escaped, the best row has the class ``best``."""
        head = "".join(f'<th scope="col">{escape(name)}</th>' for name in self.head)
        lines = [f"<table>\n<thead><tr>{head}</tr></thead>\n<tbody>"]
        for number, row in enumerate(self.rows):
            name, *cells = ("<br>".join(map(escape, lines_of(cell))) for cell in row)
            mark = ' class="best"' if number == self.best else ""
            values = "".join(f"<td>{cell}</td>" for cell in cells)
            lines.append(f'<tr{mark}><th scope="row">{name}</th>{values}</tr>')
        return "\n".join([*lines, "</tbody>\n</table>"])

    def latex(self) -> str:
        """As a LaTeX tabular; a row of text for each line of its cells."""
        needed = "% needs \\usepackage{booktabs,amssymb}"
        lines = [rf"% {self.title}", needed, rf"\begin{{tabular}}{{l{'r' * (len(self.head) - 1)}}}"]
        lines += [r"\toprule", " & ".join(map(_latex, self.head)) + r" \\", r"\midrule"]
        for row in self.rows:
            for texts in zip_longest(*map(lines_of, row), fillvalue=""):
                lines.append(" & ".join(map(_latex, texts)) + r" \\")
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


def lines_of(cell: Cell) -> Sequence[str]:
    """The lines of a cell."""
    return [cell] if isinstance(cell, str) else cell


def csv_text(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Rows as CSV, below the names of their columns."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([head, *rows])
    return text.getvalue()


def to_csv(records: Sequence[Mapping[str, Any]]) -> str:
    """Records as CSV; a column for every key that any of them has."""
    names = list(dict.fromkeys(name for record in records for name in record))
    return csv_text(names, ([record.get(name, "") for name in names] for record in records))


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
