"""What pictures and pages share: the palette, charts as Plotly's JSON, and templates.

Charts are plain dictionaries: Plotly itself is needed in the reader's browser only. Colours are
written as CSS variables, which the page's script replaces by those of the theme; it also has the
template that gives all charts one style. What comes from the data goes through :func:`label`,
because Plotly reads some HTML in its texts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from lookhops.core.tables import Table
from lookhops.core.words import short

if TYPE_CHECKING:
    from jinja2 import Environment

# Okabe and Ito's colours, which people with any kind of colour vision can tell apart. Figures never
# rely on them alone: markers or dashes differ too.
#: Series are coloured in this order.
SERIES = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
SERIES_NAMES = ("blue", "vermillion", "green", "purple", "orange", "sky", "black")
#: Text and lines; what is there but does not count; a bar among bars that is not the chosen one.
INK, FAINT, PALE = "#1B2530", "#C3CCD5", "#C8C8C8"
#: Scores, from the lowest to the highest: light to dark, readable without telling hues apart.
SCORE_LOW, SCORE_HIGH = "#EDF2FA", SERIES[0]

#: A page's colours by name, in light and in dark: the same hues, lighter where the page is dark.
PAGE = {
    "page": ("#FFFFFF", "#0F141A"),
    "panel": ("#F5F7F9", "#182029"),
    "ink": (INK, "#E6EBF0"),
    "muted": ("#56626E", "#9CA9B5"),
    "line": ("#DCE2E8", "#2B3641"),
    "pale": (PALE, "#4B5763"),
    "blue": (SERIES[0], "#4BA6E3"),
    "vermillion": ("#C25500", "#F08544"),
    "green": ("#00805D", "#35C29A"),
    "purple": ("#A8527F", "#E0A0C4"),
    "orange": ("#A87400", "#F0B73F"),
    "sky": ("#2C86BD", "#93D2F6"),
    "black": ("#3A4550", "#C9D2DA"),
}

Figure = dict[str, Any]

SYMBOLS = ("circle", "square", "triangle-up", "diamond", "triangle-down", "cross", "x")
#: Bars of different series differ by a light pattern too.
PATTERN = {"fillmode": "overlay", "fgcolor": "var(--page)", "size": 6, "solidity": 0.18}
PATTERNS = ("", "/", ".", "\\", "x", "-", "+")
#: The line of what is perfect.
DIAGONAL = {"color": "var(--muted)", "dash": "dot", "width": 1.5}
#: The axis of differences: zero stands out.
ZERO = {"zeroline": True, "zerolinecolor": "var(--ink)", "zerolinewidth": 1}
#: The most classes that have their own colour.
MOST_SERIES = len(SERIES_NAMES)


@dataclass(frozen=True)
class Chart:
    """A chart that Plotly draws in the reader's browser."""

    figure: Mapping[str, Any]  # Plotly's ``data`` and ``layout``; colours are CSS variables
    alt: str  # the chart in words, for who does not see it
    caption: str  # what it shows, with units and sample sizes
    numbers: Table  # the same as a small table
    height: int = 300  # in pixels
    wide: bool = False


def colour(number: int) -> str:
    """The colour of a series."""
    return f"var(--{SERIES_NAMES[number % len(SERIES_NAMES)]})"


def label(text: str, width: int = 28) -> str:
    """A text from the data, as Plotly shows it letter by letter."""
    plain = short(text, width).replace("%{", "%\N{ZERO WIDTH SPACE}{")  # no templates from the data
    return escape(plain, quote=False)


def rounded(value: Any) -> Any:
    """A figure whose numbers have five digits, more than it shows; none where it is no number."""
    if isinstance(value, Mapping):
        return {name: rounded(one) for name, one in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [rounded(one) for one in np.asarray(value, dtype=object).tolist()]
    if isinstance(value, float):
        return float(f"{value:.5g}") if np.isfinite(value) else None
    return value


def series(kind: str, x: Any, y: Any, hover: str = "", **look: Any) -> Figure:
    """A series of numbers.

    Args:
        kind: ``bar``, ``markers``, ``lines`` or ``lines+markers``.
        x, y: The numbers.
        hover: What to say at a point: a template of Plotly's, with ``<extra>`` the series' name.
        look: Plotly's ``name``, ``marker``, ``line`` and whatever else it knows.
    """
    drawn = {"type": "bar"} if kind == "bar" else {"type": "scatter", "mode": kind}
    hover = hover if "<extra>" in hover else f"{hover}<extra></extra>" if hover else ""
    said = {"hovertemplate": hover} if hover else {"hoverinfo": "skip"}
    return {**drawn, "x": numbers(x), "y": numbers(y), **said, **look}


def numbers(values: Any) -> list[Any]:
    """Numbers as JSON can hold them."""
    found: list[Any] = np.asarray([*values]).tolist()
    return found


def marks(
    x: Any,
    y: Any,
    hover: str,
    name: str,
    colour: str,
    symbol: str = "diamond",
    size: int = 11,
    error_x: Figure | None = None,
) -> Figure:
    """Points of one colour, named as in the palette, and shape; see :func:`series`."""
    marker = {"color": f"var(--{colour})", "symbol": symbol, "size": size}
    bars = {"error_x": error_x} if error_x else {}
    return series("markers", x, y, hover, name=name, marker=marker, **bars)


def interval(low: Any, middle: Any, high: Any) -> Figure:
    """Error bars from low to high around marks in between."""
    above, below = np.subtract(high, middle), np.subtract(middle, low)
    ends = {"array": numbers(above), "arrayminus": numbers(below)}
    return {"type": "data", "symmetric": False, "thickness": 2, **ends}


def axis(title: str, **settings: Any) -> Figure:
    """An axis."""
    return {"title": {"text": title}, **settings}


def named_axis(title: str, names: Sequence[str], width: int = 28, **settings: Any) -> Figure:
    """An axis of names: two names that look alike stay two."""
    ticks = {"tickvals": list(range(len(names))), "ticktext": [label(n, width) for n in names]}
    return axis(title, **ticks, **{"ticks": "", "zeroline": False, "showgrid": False, **settings})


def rows_axis(names: Sequence[str], width: int = 28) -> Figure:
    """An axis of names from top to bottom, a row each."""
    return named_axis("", names, width, range=[len(names) - 0.4, -0.6])


def figure(traces: Sequence[Figure], x: Figure, y: Figure, **layout: Any) -> Figure:
    """A figure; the page's script gives it the one style of the page."""
    shared = {"xaxis": x, "yaxis": y, "showlegend": len(traces) > 1}
    return {"data": list(traces), "layout": {**shared, **layout}}


def score_colour(share: float) -> str:
    """The colour of a score, from 0 for the lowest to 1 for the highest, as ``#rrggbb``."""
    low, high = (np.array([*bytes.fromhex(one[1:])]) for one in (SCORE_LOW, SCORE_HIGH))
    return "#" + bytes(np.rint(low + (high - low) * share).astype(np.uint8)).hex()


def templates_of(package: str, **options: Any) -> Environment:
    """The templates in a package's folder ``templates``; a name without a value is an error."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    loader = PackageLoader(package)
    return Environment(loader=loader, undefined=StrictUndefined, trim_blocks=True, **options)
