"""What a page is made of, and the page: a report as one HTML file that needs nothing else.

A report has sections, a section has blocks of a few shapes. All text here is plain text, which the
page escapes. Only pictures are markup, and the modules that draw them escape what they take from
the data.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from lookhops import __version__
from lookhops.core.charts import PAGE, rounded, templates_of
from lookhops.core.charts import Chart as Chart
from lookhops.core.files import write_text
from lookhops.core.tables import Table

if TYPE_CHECKING:
    from jinja2 import Template
    from markupsafe import Markup

#: Letters of a word that may not fit a line of a small screen.
LONG = 25
#: Command lines, each after what it does.
Lines = Sequence[tuple[str, str]]


class Folded(NamedTuple):
    """A table of which only the note shows until it is opened."""

    table: Table


class Card(NamedTuple):
    """One graph of the gallery."""

    name: str
    true: str  #: its class
    predicted: str
    probability: float  #: of the predicted class
    group: str  #: ``certain``, ``unsure`` or ``wrong``
    picture: str  #: an SVG whose shapes say at which layer they are dropped
    steps: Sequence[str]  #: what to say at each position of the slider
    like: str = ""  #: the most similar training graphs, where they are known


@dataclass(frozen=True)
class Gallery:
    """Graphs with a slider that walks through the pooling layers."""

    cards: Sequence[Card]
    caption: str

    @property
    def layers(self) -> int:
        return len(self.cards[0].steps) - 1

    @property
    def classes(self) -> list[str]:
        return list(dict.fromkeys(card.true for card in self.cards))


class Picture(NamedTuple):
    """A picture (SVG) with lines of text below it."""

    title: str
    svg: str
    lines: Sequence[str] = ()


class Pictures(NamedTuple):
    """Pictures side by side; small ones stand many in a row."""

    pictures: Sequence[Picture]
    caption: str
    small: bool = False


class Commands(NamedTuple):
    """Command lines, each with what it does."""

    lines: Lines


class Note(NamedTuple):
    """A remark."""

    text: str


class Subheading(NamedTuple):
    """A heading within a section, and what one sees below it."""

    text: str
    lead: str = ""


Block = Table | Folded | Chart | Gallery | Pictures | Commands | Note | Subheading


class Tile(NamedTuple):
    """A key figure: what it is, its value, and what to know besides."""

    label: str
    value: str
    note: str = ""


@dataclass(frozen=True)
class Section:
    """A part of the page."""

    name: str  #: for links
    title: str
    lead: str  #: what one sees here
    blocks: Sequence[Block]
    tiles: Sequence[Tile] = ()  #: key figures, which stand at the top of the page


@dataclass(frozen=True)
class Report:
    """A page: its heading, all of it in one sentence, the key figures, the sections in order."""

    title: str
    summary: str
    tiles: Sequence[Tile]
    sections: Sequence[Section]


def reproduce_section(lead: str, lines: Lines, rows: Sequence[Sequence[str]] = ()) -> Section:
    """Command lines, each with what it does, and what else decides the numbers."""
    blocks: list[Block] = [Commands(lines)] if lines else []
    blocks += [Table(("what", "value"), rows)] if rows else []
    return Section("reproduce", "How to reproduce", lead, blocks)


def write_report(report: Report, path: Path) -> Path:
    """Write the page; an interrupted write leaves what was there before."""
    write_text(path, render(report))
    return path


def render(report: Report) -> str:
    """The page as text: what comes from the data is escaped by Jinja or :func:`embedded`."""
    from markupsafe import Markup
    from plotly.offline import get_plotlyjs

    charts = [b for section in report.sections for b in section.blocks if isinstance(b, Chart)]
    folder = files("lookhops.report") / "templates"
    return _template().render(
        report=report,
        version=__version__,
        numbers={id(chart): number for number, chart in enumerate(charts)},
        number_of=id,
        kind=lambda block: type(block).__name__,
        figures=Markup(embedded([rounded(chart.figure) for chart in charts])),
        as_json=json.dumps,
        css=Markup(stylesheet()),
        script=Markup((folder / "report.js").read_text(encoding="utf-8")),
        plotly=Markup(get_plotlyjs()) if charts else "",
    )


@cache
def _template() -> Template:
    found = templates_of("lookhops.report", autoescape=True, lstrip_blocks=True)
    found.filters["whole_words"] = whole_words
    return found.get_template("report.html")


def whole_words(text: str) -> Markup:
    """A text, escaped, whose long words are not broken: one that does not fit ends in dots.

    Then a tooltip has all of it. Names of models may continue in the next line after a slash.
    """
    from markupsafe import Markup

    def piece(text: str) -> Markup:
        shown = Markup('<span class="long" title="{0}">{0}</span>')
        return shown.format(text) if len(text) >= LONG else Markup.escape(text)

    between, long = re.split(rf"\S{{{LONG},}}", text), re.findall(rf"\S{{{LONG},}}", text)
    words = [Markup("/<wbr>").join(map(piece, word.split("/"))) for word in long]
    parts = zip_longest(map(Markup.escape, between), words, fillvalue=Markup(""))
    return Markup("").join(part for pair in parts for part in pair)


def embedded(value: Any) -> str:
    """JSON that may stand in a script element: no ``<``, so that nothing in it can end it."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def stylesheet() -> str:
    """The style of every page. ``data-theme`` on the root chooses; the system does otherwise."""
    light, dark = (
        f"color-scheme: {name}; "
        + " ".join(f"--{colour}: {both[number]};" for colour, both in PAGE.items())
        for number, name in enumerate(("light", "dark"))
    )
    rules = files("lookhops.report") / "templates" / "report.css"
    return "\n".join(
        (
            f":root {{ {light} }}",
            "@media (prefers-color-scheme: dark) "
            f'{{ :root:not([data-theme="light"]) {{ {dark} }} }}',
            f':root[data-theme="dark"] {{ {dark} }}',
            f"@media print {{ :root:root {{ {light} }} }}",
            rules.read_text(encoding="utf-8"),
        )
    )
