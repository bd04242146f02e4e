"""How a command prints: tables and panels on stdout, progress and remarks on stderr."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import typer
from rich.console import Console, Group, RenderableType
from rich.markup import escape
from rich.panel import Panel
from rich.table import Table as RichTable
from rich.text import Text

from lookhops.core.tables import Table
from lookhops.core.words import CONTROL, visible


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


def print_table(table: Table) -> None:
    """Print a table and its note."""
    rows = (
        ["\n".join(escape(line.strip("*")) for line in cell) for cell in (_broken(name), *cells)]
        for name, *cells in table.rows
    )
    out.print(grid(rows, table.head, title=escape(table.title)))
    out.print()
    if table.note:
        out.print(escape(table.note), style="dim")


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
