"""How a command prints and writes: tables on stdout, progress and remarks on stderr, files."""

from __future__ import annotations

import json
import re
import shlex
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console, Group, RenderableType
from rich.markup import escape
from rich.panel import Panel
from rich.table import Table as RichTable
from rich.text import Text

from lookhops.core.errors import LookHopsError
from lookhops.core.tables import Table, lines_of, without_bold
from lookhops.core.words import CONTROL, visible

if TYPE_CHECKING:
    from lookhops.report.page import Chart, Report, Section


class PlainConsole(Console):
    """A console that obeys our own markup, and no control character that a name may hold."""

    def render_str(self, text: str, **options: Any) -> Text:
        """The text as it is shown."""
        return super().render_str(visible(text), **options)


# Tables go to stdout; progress and remarks to stderr, so that stdout can be piped.
out = PlainConsole(highlight=False, soft_wrap=False)
err = PlainConsole(stderr=True, highlight=False)
#: Columns that the corners of a box take, with what is around its title.
BORDER = 6
#: Columns of text, and of the longest bar beside a table.
WIDTH, BAR = 80, 20


def warn(text: str) -> None:
    """Print a remark on stderr."""
    err.print(f"[yellow]warning:[/] {escape(text)}", soft_wrap=True)


def print_json(value: Any) -> None:
    """Print a value as JSON on stdout."""
    text = json.dumps(value, indent=2, ensure_ascii=False)
    typer.echo(escaped_json(text))


def escaped_json(text: str) -> str:
    """The same JSON, with control characters that it allows in text written as escapes."""
    return CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def print_line(text: str, console: Console = out) -> None:
    """Print text that may hold paths, which are never broken."""
    console.print(escape(text), soft_wrap=True)


def remark(text: str) -> None:
    """Print such text on stderr."""
    print_line(text, err)


def bar(fraction: float, width: int) -> str:
    """A bar of at most ``width`` characters."""
    block = "█" if out.encoding.lower().startswith("utf") else "#"
    return block * round(fraction * width)


def grid(
    rows: Iterable[Sequence[str]],
    head: Sequence[str] = (),
    columns: Sequence[str] = (),
    *,
    title: str | None = None,
) -> RichTable:
    """Rows of cells in Rich's markup (what a user wrote is escaped), without lines around them.

    ``columns`` says what each is: ``left``, ``right`` or ``center``; ``wrap``; and a style, such as
    ``bold``. By default the first is ``left wrap``, for names, which may be long and differ at the
    end; the others are ``right``.
    """
    rows = list(rows)
    table = RichTable(title=title, title_justify="left", box=None, header_style="dim")
    table.show_header, table.pad_edge = bool(head), False
    table.padding, table.collapse_padding = (0, 2), True
    for i in range(max(len(cells) for cells in (head, *rows))):
        words = (columns[i] if i < len(columns) else "right" if i else "left wrap").split()
        style = " ".join(word for word in words if word not in ("left", "right", "center", "wrap"))
        table.add_column(
            head[i] if i < len(head) else "",
            justify="right" if "right" in words else "center" if "center" in words else "left",
            no_wrap="wrap" not in words,
            overflow="fold" if "wrap" in words else "ellipsis",  # a number that is cut shows it
            style=style,
        )
    for row in rows:
        table.add_row(*row)
    return table


def _broken(name: Sequence[str]) -> Iterator[str]:
    """A row's name, that of a model such as ``gcn/hidden=32/k=2`` broken between its options."""
    width = max(out.width // 4, 12)
    for line in name:
        shown = ""
        for part in re.findall(r"[/\s]?[^/\s]+|\S", line):
            word = shown.rpartition("\n")[2].rpartition(" ")[2]
            fits = part[0] != "/" or not word or len(word) + len(part) <= width
            shown += part if fits else f"\n{part}"
        yield shown


def as_grid(table: Table) -> RichTable:
    """A table for the terminal, without its note; variants of a row stand below it, indented."""
    rows, before = [], "\n"
    for name, *cells in table.rows:
        shown = "\n".join(_broken(lines_of(name))).replace(f"{before}, ", "  ")
        before = lines_of(name)[0]
        texts = ("\n".join(without_bold(line) for line in lines_of(cell)) for cell in cells)
        rows.append([escape(text) for text in (shown, *texts)])
    if table.best is not None:
        rows[table.best] = [f"[bold green]{cell}[/]" for cell in rows[table.best]]
    columns = ["left wrap", *("right" if name else "left" for name in table.head[1:])]
    return grid(rows, [*map(escape, table.head)], columns, title=escape(table.title) or None)


def print_table(table: Table) -> None:
    """Print a table and its note."""
    out.print(as_grid(table))
    out.print()
    if table.note:
        out.print(escape(table.note), style="dim")


def print_section(section: Section) -> None:
    """Print a section of tables and charts, and then its text."""
    from lookhops.core.charts import Chart

    for block in section.blocks:
        if isinstance(block, Table):
            print_table(block)
        elif isinstance(block, Chart):
            print_table(replace(with_bars(block), note=block.caption))
        out.print()
    out.print(f"[bold]{escape(section.lead)}[/]", width=WIDTH)


def with_bars(chart: Chart) -> Table:
    """The numbers of a chart; beside those of one series of bars, the bars."""
    table, (first, *others) = chart.numbers, chart.figure["data"]
    if first["type"] != "bar" or others:
        return table
    sizes = first["x"] if first.get("orientation") == "h" else first["y"]
    sizes = [max(size or 0.0, 0.0) for size in sizes]
    bars = (bar(size / (max(sizes) or 1.0), BAR) for size in sizes)
    rows = [[*row, drawn] for row, drawn in zip(table.rows, bars, strict=True)]
    if table.best is not None:  # colours are lost in a pipe
        rows[table.best][0] = f"{rows[table.best][0]} <-"
    return replace(table, head=[*table.head, ""], rows=rows)


def panel(title: str, *parts: RenderableType) -> Panel:
    """Parts below one another, a blank line between, in a box with a title.

    A title that the upper line of the box has no room for stands inside, whole.
    """
    shown = out.render_str(f"[bold cyan]{escape(title)}[/]")
    fits = shown.cell_len <= out.width - BORDER
    inside = parts if fits else (shown, *parts)
    spaced = [line for part in inside for line in (Text(), part)][1:]
    above = shown if fits else None
    return Panel.fit(Group(*spaced), title=above, title_align="left", padding=(1, 2))


def check_output(path: Path, kinds: tuple[str, ...], source: str) -> None:
    """Refuse a file that is not written so, or that holds the input, before anything is read."""
    if path.suffix.lower() not in kinds:
        known = " or ".join(filter(None, kinds))
        raise LookHopsError(f"{path}: is written as {known}; end its name so.")
    is_input = False
    with suppress(OSError, RuntimeError, ValueError):  # one of the two is no file
        given = Path(source).expanduser()
        tables = [file for name in ("edges", "nodes", "graphs") for file in given.glob(f"{name}.*")]
        resolved = path.resolve()  # also through folders that are yet to be made
        is_input = any(resolved.samefile(file) for file in (given, *tables))
    if is_input:
        raise LookHopsError(f"{path}: is the input itself; write to another file.")


def check_folder(path: Path) -> None:
    """Say now, not after hours of training, that a folder cannot be written to."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=path):
            pass
    except OSError as error:
        reason = "it is a file" if path.is_file() else error.strerror
        raise LookHopsError(f"{path}: cannot be written ({reason}).") from error


def check_picture(path: Path | None, kinds: tuple[str, ...]) -> None:
    """Say before any work that a picture is of one of these kinds of files."""
    if path is not None and path.suffix.lower() not in kinds:
        raise LookHopsError(f"{path}: a picture ends in {', '.join(kinds)}.")


def check_page(path: Path | None) -> Path | None:
    """Say before any work that a report is an HTML file, in a folder that can be had."""
    if path is None:
        return None
    if path.suffix.lower() not in (".html", ".htm"):
        raise LookHopsError(f"{path}: a report is an HTML page; give it a name that ends in .html.")
    if path.is_dir():
        raise LookHopsError(f"{path}: a folder; a report is written to a file.")
    check_folder(path.parent)
    return path


#: The option that lets other commands end with a report.
ReportFile = Annotated[
    Path | None,
    typer.Option(
        "--report",
        help="Also write a report, an HTML page, to this file.",
        show_default="none",
        callback=check_page,
    ),
]


def write_page(made: Report, path: Path, quiet: bool = False) -> None:
    """Write a report and say where it is: on stderr where stdout is for JSON alone."""
    from lookhops.report.page import write_report

    write_report(made, path)
    print_line(f"report: {path}", err if quiet else out)


def print_saved(model: Path) -> None:
    """Say where a model is, and what to type next."""
    out.print(f"[dim]saved in[/] {escape(str(model))}", soft_wrap=True)
    shown = escape(shlex.quote(str(model)))
    out.print(f"[dim]next:[/] lookhops predict {shown} INPUT", soft_wrap=True)


def command_line() -> str:
    """The command that is running, as a user would type it to have the same from the start."""
    words = [word for word in sys.argv[1:] if word not in ("--resume", "--overwrite")]
    return shlex.join(["lookhops", *words])
