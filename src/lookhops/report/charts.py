"""Charts as Plotly's JSON: their one style, and what they share.

Plain dictionaries: Plotly itself is needed in the reader's browser only. Colours are written as CSS
variables, which the page's script replaces by those of the theme. What comes from the data goes
through :func:`label`, because Plotly reads some HTML in its texts.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np

from lookhops.drawing.palette import SERIES_NAMES
from lookhops.words import short

Figure = dict[str, Any]

SYMBOLS = ("circle", "square", "triangle-up", "diamond", "triangle-down", "cross", "x")
#: Bars of different series differ by a light pattern too.
PATTERN = {"fillmode": "overlay", "fgcolor": "var(--page)", "size": 6, "solidity": 0.18}
PATTERNS = ("", "/", ".", "\\", "x", "-", "+")
#: The most classes that have their own colour.
MOST_SERIES = len(SERIES_NAMES)


def colour(number: int) -> str:
    """The colour of a series."""
    return f"var(--{SERIES_NAMES[number % len(SERIES_NAMES)]})"


def label(text: str, width: int = 28) -> str:
    """A text from the data, as Plotly shows it letter by letter."""
    plain = short(text, width).replace("%{", "%\N{ZERO WIDTH SPACE}{")  # no templates from the data
    return escape(plain, quote=False)


def rounded(values: Any) -> list[float | None]:
    """Numbers with five digits, which is more than a picture shows; none where it is no number."""
    found = np.asarray(values, dtype=float).tolist()
    return [float(f"{value:.5g}") if np.isfinite(value) else None for value in found]


# -------------------------------------------------------------------- series


def marks(name: str, x: Any, y: Any, look: tuple[str, str, int], hover: str, **rest: Any) -> Figure:
    """A mark for each pair of numbers; its look is a colour, a symbol and a size."""
    marker = dict(zip(("color", "symbol", "size"), look, strict=True))
    return {**_scatter("markers", name, x, y), "marker": marker, **_hover(hover), **rest}


def line(
    name: str, x: Any, y: Any, look: tuple[str, str, float], hover: str = "", **rest: Any
) -> Figure:
    """A line through pairs of numbers; its look is a colour, a dash and a width."""
    style = dict(zip(("color", "dash", "width"), look, strict=True))
    return {**_scatter("lines", name, x, y), "line": style, **_hover(hover), **rest}


def bars(x: Any, y: Any, marker: Figure, hover: str, **rest: Any) -> Figure:
    """Bars."""
    return {"type": "bar", "x": x, "y": y, "marker": marker, **_hover(hover), **rest}


def interval(low: Any, middle: Any, high: Any) -> Figure:
    """Error bars from low to high around marks in between."""
    above, below = np.subtract(high, middle), np.subtract(middle, low)
    ends = {"array": rounded(above), "arrayminus": rounded(below)}
    return {"type": "data", "symmetric": False, "thickness": 2, **ends}


def _scatter(mode: str, name: str, x: Any, y: Any) -> Figure:
    return {"type": "scatter", "mode": mode, "name": name, "x": list(x), "y": list(y)}


def _hover(text: str) -> Figure:
    """What to say at a point: a template of Plotly's, with ``<extra>`` the series' name."""
    if not text:
        return {"hoverinfo": "skip"}
    return {"hovertemplate": text if "<extra>" in text else f"{text}<extra></extra>"}


# -------------------------------------------------------------------- axes and figures


def axis(title: str, **rest: Any) -> Figure:
    """An axis in the one style of the page."""
    plain = {"gridcolor": "var(--line)", "zerolinecolor": "var(--line)", "automargin": True}
    name = {"text": title, "standoff": 8, "font": {"size": 13, "color": "var(--muted)"}}
    return {"title": name, "linecolor": "var(--line)", **plain, **rest}


def named_axis(title: str, names: Sequence[str], width: int = 28, **rest: Any) -> Figure:
    """An axis of names: two names that look alike stay two."""
    ticks = {"tickvals": list(range(len(names))), "ticktext": [label(n, width) for n in names]}
    return axis(title, **ticks, **{"ticks": "", "zeroline": False, "showgrid": False, **rest})


def rows_axis(names: Sequence[str], width: int) -> Figure:
    """An axis of names from top to bottom, a row each."""
    return named_axis("", names, width, range=[len(names) - 0.4, -0.6])


def figure(traces: Sequence[Figure], x: Figure, y: Figure, **layout: Any) -> Figure:
    """A figure in the one style of the page."""
    font = {"family": "var(--font)", "color": "var(--ink)"}
    return {
        "data": list(traces),
        "layout": {
            "font": {**font, "size": 13},
            "paper_bgcolor": "rgba(0,0,0,0)",
            "plot_bgcolor": "rgba(0,0,0,0)",
            "margin": {"l": 8, "r": 12, "t": 12, "b": 8},
            "xaxis": x,
            "yaxis": y,
            "legend": {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"}
            | {"traceorder": "normal"},
            "hoverlabel": {"bgcolor": "var(--panel)", "bordercolor": "var(--line)", "font": font},
            "showlegend": len(traces) > 1,
            **layout,
        },
    }
