"""Charts as files: the figures of pages, drawn by Matplotlib with a panel for each.

A figure is described once (:mod:`lookhops.core.charts`). Plotly draws it in a page, and this module
draws what such figures have: bars and points with their errors, lines, axes, rules and remarks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from html import unescape
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

from lookhops.core.charts import PAGE
from lookhops.core.files import replacing
from lookhops.core.words import visible

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

STYLE: Any = {
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 9,
    "axes.titleweight": "bold",
    "svg.fonttype": "none",
    "svg.hashsalt": "lookhops",  # the same picture is the same file
}
MARKERS = {
    "circle": "o",
    "square": "s",
    "triangle-up": "^",
    "diamond": "D",
    "triangle-down": "v",
    "cross": "P",
    "x": "X",
}
DASHES = {"solid": "-", "dash": "--", "dot": ":"}


@contextmanager
def drawing() -> Iterator[None]:
    """The style of all pictures, within the block."""
    import matplotlib as mpl

    with mpl.rc_context(STYLE):
        yield


def new_picture(width: float, height: float, head: str = "") -> Figure:
    """An empty picture that no window will show; its size is in inches."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    made = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(made)
    if head:
        made.suptitle(head, color=_colour("vermillion"), fontsize=9)
    return made


def picture(
    figures: Mapping[str, Mapping[str, Any]], head: str = "", note: str = "", height: float = 2.6
) -> Figure:
    """A panel for each figure by its title, three in a row, with a head above and a note below."""
    columns = min(3, len(figures))
    lines = -(-len(figures) // columns)
    with drawing():
        made = new_picture(9, height * lines + 0.3, head)
        axes = made.subplots(lines, columns, squeeze=False).flat
        for ax in axes[len(figures) :]:
            ax.set_axis_off()
        for ax, (title, figure) in zip(axes, figures.items(), strict=False):
            ax.set_title(visible(title))
            _draw(ax, figure["data"], figure["layout"])
        if note:
            made.supxlabel(fill(note, 130), fontsize=8)
    return made


def save(made: Figure, path: Path) -> Path:
    """Write a picture to a file, as the kind that its name says."""
    from matplotlib.text import Text

    kind = path.suffix[1:].lower()
    options: dict[str, Any] = {"dpi": 150} if kind == "png" else {}
    if kind == "svg":
        options = {"metadata": {"Date": None}}
    for text in made.findobj(Text):  # fonts have no control characters
        text.set_text(visible(text.get_text()))
    with drawing(), replacing(path) as part:
        made.savefig(part, format=kind, **options)
        if kind == "svg":  # names with control characters would make it no XML
            part.write_text(visible(part.read_text(encoding="utf-8")), encoding="utf-8")
    return path


def save_both(made: Figure, folder: Path, name: str) -> list[Path]:
    """Write a picture as SVG and PNG; the files."""
    return [save(made, folder / f"{name}.{kind}") for kind in ("svg", "png")]


def _draw(ax: Axes, traces: Sequence[Mapping[str, Any]], layout: Mapping[str, Any]) -> None:
    for trace in traces:
        label = _text(trace["name"]) if trace.get("showlegend", True) and "name" in trace else None
        (_bars if trace["type"] == "bar" else _points)(ax, trace, label)
    for side in ("x", "y"):
        _axis(ax, side, layout[f"{side}axis"])
    for shape in layout.get("shapes", ()):
        dash = DASHES[shape["line"]["dash"]]
        ax.axhline(shape["y0"], color=_colour(shape["line"]["color"]), linestyle=dash, linewidth=1)
    for remark in layout.get("annotations", ()):
        ax.annotate(
            _text(remark["text"]),
            (remark["x"], remark["y"]),
            xytext=(0, 4),
            xycoords=ax.get_yaxis_transform(),
            textcoords="offset points",
            ha=remark.get("xanchor", "center"),
            color=_colour(remark["font"]["color"]),
        )
    if layout.get("showlegend") and ax.get_legend_handles_labels()[1]:
        ax.legend(frameon=False, fontsize=8)


def _bars(ax: Axes, trace: Mapping[str, Any], label: str | None) -> None:
    colours = trace["marker"]["color"]
    several = not isinstance(colours, str)
    colour = [_colour(one) for one in colours] if several else _colour(colours)
    flat = trace.get("orientation") == "h"
    across, along = (trace["y"], trace["x"]) if flat else (trace["x"], trace["y"])
    (ax.barh if flat else ax.bar)(across, along, color=colour, label=label, **_errors(trace))


def _points(ax: Axes, trace: Mapping[str, Any], label: str | None) -> None:
    """Points with their errors and texts, a line, or both."""
    marker, line = trace.get("marker", {}), trace.get("line", {})
    style: dict[str, Any] = {"linestyle": "none", "color": _colour(marker.get("color", "blue"))}
    if "lines" in trace["mode"]:
        style = {"linestyle": DASHES[line.get("dash", "solid")], "linewidth": line.get("width", 2)}
        style["color"] = _colour(line.get("color", marker.get("color", "blue")))
    if "markers" in trace["mode"]:
        symbol, is_open, _ = marker.get("symbol", "circle").partition("-open")
        style |= {"marker": MARKERS[symbol], "markersize": marker.get("size", 8) / 2}
        style |= {"markerfacecolor": "none"} if is_open else {}
    ax.errorbar(trace["x"], trace["y"], label=label, **style, **_errors(trace))
    for x, y, text in zip(trace["x"], trace["y"], trace.get("text", ()), strict=False):
        ax.annotate(_text(text), (x, y), (4, 4), textcoords="offset points")


def _errors(trace: Mapping[str, Any]) -> dict[str, Any]:
    """Lengths of a trace's error bars, as Matplotlib takes them: one, or below and above."""
    found = {}
    for side in "xy":
        if bars := trace.get(f"error_{side}"):
            ends = (bars["arrayminus"], bars["array"]) if "arrayminus" in bars else bars["array"]
            found[f"{side}err"] = ends
    return found


def _axis(ax: Axes, side: str, axis: Mapping[str, Any]) -> None:
    from matplotlib.ticker import EngFormatter, MultipleLocator, NullFormatter

    known = {"x": ax.xaxis, "y": ax.yaxis}[side]
    known.set_label_text(_text(axis["title"]["text"]))
    if axis.get("type") == "log":
        (ax.set_xscale if side == "x" else ax.set_yscale)("log")
        if side == "x":
            known.set_major_formatter(EngFormatter(sep=""))  # 110k
            known.set_minor_formatter(NullFormatter())
    if "tickvals" in axis:
        known.set_ticks(axis["tickvals"], [_text(text) for text in axis["ticktext"]])
    elif "dtick" in axis:
        known.set_major_locator(MultipleLocator(axis["dtick"]))
    limit = ax.set_xlim if side == "x" else ax.set_ylim
    if "range" in axis:
        limit(*axis["range"])
    elif axis.get("rangemode") == "tozero":
        limit(0, None)


def _text(text: str) -> str:
    """A text of Plotly's, whose few tags and entities are HTML, as plain text."""
    lines = re.sub(r"</?b>|\N{ZERO WIDTH SPACE}", "", text).split("<br>")
    return "\n".join(visible(unescape(line)) for line in lines).replace("$", r"\$")


def _colour(name: str) -> str:
    """A colour of the page in light, from ``var(--blue)``."""
    return PAGE[name.removeprefix("var(--").removesuffix(")")][0]
