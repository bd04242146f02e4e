"""The page: a report as one HTML file that needs nothing else."""

from __future__ import annotations

import json
import re
from functools import cache
from importlib.resources import files
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lookhops import __version__
from lookhops.core.charts import PAGE, templates_of
from lookhops.core.errors import LookHopsError
from lookhops.core.files import write_text
from lookhops.report.content import Chart, Report

if TYPE_CHECKING:
    from jinja2 import Template
    from markupsafe import Markup

#: Letters of a word that may not fit a line of a small screen.
LONG = 25


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
        figures=Markup(embedded([chart.figure for chart in charts])),
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
    try:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except ValueError as error:
        raise LookHopsError("A number to be drawn in the report is not finite.") from error
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
