"""One table for every medium: Markdown, LaTeX, CSV, HTML, and the terminal of the commands."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import zip_longest
from pathlib import Path
from typing import Any

from lookhops.core.files import write_text
from lookhops.core.words import MINUS, NONE, QUICK_MARK, visible

#: How what spreadsheets would take for a formula begins, or does after apostrophes.
_BEGINS = "'=+-@\t\r"
#: A text, or several lines of text.
Cell = str | Sequence[str]


@dataclass(frozen=True)
class Table:
    """A table that can be written in several languages; its first column names the rows."""

    head: Sequence[str]
    rows: Sequence[Sequence[Cell]]  # in Markdown and LaTeX text between ``**`` is bold
    note: str = ""  # below it: what it shows, with units and sample sizes
    name: str = ""  # of its files
    title: str = ""
    records: Sequence[Mapping[str, Any]] = ()  # the same numbers one by one, for CSV
    best: int | None = None  # number of the row to stand out

    def markdown(self) -> str:
        """As a Markdown table; the lines of a cell below each other."""
        lines = ["| " + " | ".join(map(in_markdown, self.head)) + " |"]
        lines.append("| --- |" + " ---: |" * (len(self.head) - 1))
        for row in self.rows:
            cells = ("<br>".join(map(in_markdown, lines_of(cell))) for cell in row)
            lines.append("| " + " | ".join(cells) + " |")
        return "\n".join(lines) + "\n"

    def html(self) -> str:
        """As an HTML table: all its text is escaped, the best row has the class ``best``."""
        head = "".join(f'<th scope="col">{escape(name)}</th>' for name in self.head)
        lines = [f"<table>\n<thead><tr>{head}</tr></thead>\n<tbody>"]
        for number, row in enumerate(self.rows):
            lines_of_cells = (
                [escape(without_bold(line)) for line in lines_of(cell)] for cell in row
            )
            name, *cells = map("<br>".join, lines_of_cells)
            mark = ' class="best"' if number == self.best else ""
            values = "".join(f"<td>{cell}</td>" for cell in cells)
            lines.append(f'<tr{mark}><th scope="row">{name}</th>{values}</tr>')
        return "\n".join([*lines, "</tbody>\n</table>"])

    def latex(self) -> str:
        """As a LaTeX tabular; a row of text for each line of its cells."""
        lines = [
            f"% {' '.join(visible(self.title).split())}",
            r"% needs \usepackage{booktabs,amssymb}",
            rf"\begin{{tabular}}{{l{'r' * (len(self.head) - 1)}}}",
            r"\toprule",
            " & ".join(map(_latex, self.head)) + r" \\",
            r"\midrule",
        ]
        for row in self.rows:
            for texts in zip_longest(*map(lines_of, row), fillvalue=""):
                lines.append(" & ".join(map(_latex, texts)) + r" \\")
        return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", ""])

    def write(self, folder: Path, quick: bool = False) -> list[Path]:
        """Write it as Markdown, LaTeX and CSV; the files."""
        title = f"{self.title}{QUICK_MARK}" if quick else self.title
        note = f"\n{self.note}\n" if self.note else ""
        mark = "% quick version: says nothing about the models\n" if quick else ""
        records = [{**record, "quick": True} for record in self.records] if quick else self.records
        texts = {
            ".md": f"# {title}\n\n{self.markdown()}{note}",
            ".tex": mark + self.latex(),
            ".csv": to_csv(records),
        }
        paths = {folder / f"{self.name}{suffix}": text for suffix, text in texts.items()}
        for path, text in paths.items():
            write_text(path, text)
        return [*paths]


def lines_of(cell: Cell) -> Sequence[str]:
    """The lines of a cell."""
    return [cell] if isinstance(cell, str) else cell


def without_bold(line: str) -> str:
    """A line without the marks of bold text around it; other asterisks, as of a SMILES, stay."""
    return line[2:-2] if line.startswith("**") and line.endswith("**") and line[4:] else line


def csv_text(
    head: Sequence[str], rows: Iterable[Sequence[Any]], *, for_spreadsheets: bool = True
) -> str:
    """Rows as CSV below the names of columns, texts :func:`without_formula` or as they are."""
    text = io.StringIO()
    written = ([without_formula(cell) for cell in row] for row in (head, *rows))
    writer = csv.writer(text, lineterminator="\n")
    writer.writerows(written if for_spreadsheets else [head, *rows])
    return text.getvalue()


def cell_text(cell: Any) -> str:
    """What a cell says; of None, NaN and their like nothing."""
    return "" if cell is None or cell != cell else str(cell)


def without_formula(cell: Any) -> Any:
    """A cell that spreadsheets show and do not compute: ``'=1+1``; numbers and a dash stay."""
    if not isinstance(cell, str) or cell[:1] not in _BEGINS or not cell:
        return cell
    if not re.match(r"'*[=+\-@\t\r]", cell):
        return cell
    try:
        float(cell.replace(",", "."))  # spreadsheets of some countries have decimal commas
        return cell
    except ValueError:
        return f"'{cell}" if cell != "-" else cell


def with_formula(text: str) -> str:
    """The text before :func:`without_formula`."""
    return text[1:] if re.match(r"'+[=+\-@\t\r]", text) else text


def to_csv(records: Sequence[Mapping[str, Any]]) -> str:
    """Records as CSV; a column for every key that any of them has."""
    names = list(dict.fromkeys(name for record in records for name in record))
    return csv_text(names, ([record.get(name, "") for name in names] for record in records))


def in_markdown(text: str) -> str:
    """Text of a cell: what a name holds makes no cells, no HTML and no links."""
    text = " ".join(visible(text).split("\n"))
    return re.sub(r"[|\[\]<]", lambda sign: "&lt;" if sign[0] == "<" else f"\\{sign[0]}", text)


def _latex(text: str) -> str:
    text = " ".join(visible(text).split("\n"))
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
