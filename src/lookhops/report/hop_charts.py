"""Charts of the hop information: what each hop tells, and what lies beyond each k."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

import numpy as np

from lookhops.report.charts import SYMBOLS, Figure, axis, colour, figure, label, rounded
from lookhops.report.content import Chart, TableBlock
from lookhops.words import MINUS, NONE, between, counted, percent


def gains(found: Mapping[str, Any], title: str = "") -> Chart:
    """The gain of each hop with its interval, and the fitted curve.

    Args:
        found: As :meth:`~lookhops.information.HopInformation.to_dict` gives it.
        title: Said first in the caption.
    """
    drawn = _gains_figure(_gain_traces(found, "measured", 0, 0.0))
    k, gain, fit = found["k"], found["gain"], found["fit"]
    resamples = _resamples(found)
    graphs = f" n = {counted(found['graphs'], 'graph')}." if "graphs" in found else ""
    quality = f", R² = {fit['r2']:.4f}" if fit.get("r2") is not None else ""
    return Chart(
        drawn,
        f"Information gain falls from {gain[0]:.3g} at {k[0]} hops to {gain[-1]:.3g} at {k[-1]}; "
        f"the dashed curve is the fit.",
        f"{title}How much each further hop tells, in nats, with the fit {_formula(fit)}{quality}."
        f"{resamples}{graphs}",
        TableBlock(("hops k", "gain", "95% interval", "fit"), _gain_rows(found)),
    )


def class_gains(found: Mapping[str, Any]) -> Chart:
    """The gains of the graphs of each class."""
    parts: Mapping[str, Any] = found["per_class"]
    middle = (len(parts) - 1) / 2
    traces = [
        {**trace, "showlegend": trace["mode"] == "markers"}
        for i, (name, part) in enumerate(parts.items())
        for trace in _gain_traces(part, name, i, 0.1 * (i - middle))
    ]
    fits = "; ".join(f"{name}: {_formula(part['fit'])}" for name, part in parts.items())
    sizes = ", ".join(f"{part['graphs']:,} {name}" for name, part in parts.items())
    rows = [[name, *row] for name, part in parts.items() for row in _gain_rows(part)]
    return Chart(
        _gains_figure(traces),
        "Information gain of each hop by class, with the fitted curves.",
        f"The same for the graphs of each class, in nats, with the fits {fits}."
        f"{_resamples(found)} n = {sizes}.",
        TableBlock(("class", "hops k", "gain", "95% interval", "fit"), rows),
        wide=True,
    )


def _gains_figure(traces: list[Figure]) -> Figure:
    return figure(
        traces,
        axis("hops k", dtick=1, zeroline=False),
        axis("information gain IG(k), nats", rangemode="tozero"),
    )


def _gain_rows(found: Mapping[str, Any]) -> list[list[str]]:
    interval, rows = found.get("gain_interval"), []
    for i, hop in enumerate(found["k"]):
        shown = between(interval[i], unit="", digits=4) if interval else NONE
        fitted = found["fit"]["a"] * np.exp(-found["fit"]["b"] * hop)
        rows.append([str(hop), f"{found['gain'][i]:.4f}", shown, f"{fitted:.4f}"])
    return rows


def _formula(fit: Mapping[str, float]) -> str:
    return f"{fit['a']:.3g}\N{NO-BREAK SPACE}·\N{NO-BREAK SPACE}e^({MINUS}{fit['b']:.3g} k)"


def _resamples(found: Mapping[str, Any]) -> str:
    if not found.get("gain_interval"):
        return ""
    return f" Bars: 95% of {found['resamples']:,} resamples of the graphs."


def _gain_traces(part: Mapping[str, Any], name: str, i: int, shift: float) -> list[Figure]:
    k, gain = np.asarray(part["k"], dtype=float), np.asarray(part["gain"], dtype=float)
    fine = np.linspace(k[0], k[-1], 60)
    curve = part["fit"]["a"] * np.exp(-part["fit"]["b"] * fine)
    dots: Figure = {
        "type": "scatter",
        "mode": "markers",
        "name": label(name),
        "x": (k + shift).tolist(),
        "y": rounded(gain),
        "marker": {"color": colour(i), "symbol": SYMBOLS[i % len(SYMBOLS)], "size": 9},
        "hovertemplate": "k = %{x:.0f}: %{y:.4f}<extra></extra>",
    }
    if part.get("gain_interval"):
        low, high = np.asarray(part["gain_interval"]).T
        dots["error_y"] = {
            "type": "data",
            "symmetric": False,
            "array": rounded(high - gain),
            "arrayminus": rounded(gain - low),
            "thickness": 2,
        }
    fit = {
        "type": "scatter",
        "mode": "lines",
        "name": "fit" if name == "measured" else label(f"{name}, fit"),
        "x": rounded(fine + shift),
        "y": rounded(curve),
        "line": {"color": colour(i), "dash": "dash", "width": 1.5},
        "hoverinfo": "skip",
    }
    return [dots, fit]


def lost(found: Mapping[str, Any], last: int = 5) -> Chart:
    """The share of the information beyond each k, by the fit."""
    suggested = found.get("suggested_k")
    most = max(
        found["k"][-1] and min(found["k"][-1], last), min((suggested or 0) + 1, found["k"][-1])
    )
    k = np.arange(1, most + 1)
    share = np.minimum(np.exp(-found["fit"]["b"] * k), 1.0)
    texts = [f"{100 * s:.1f}%" if s >= 0.0005 else "<0.1%" for s in share]
    bars = {
        "type": "bar",
        "x": k.tolist(),
        "y": rounded(100 * share),
        "marker": {"color": ["var(--green)" if one == suggested else "var(--pale)" for one in k]},
        "hovertemplate": "k = %{x}: %{y:.2f} % lost<extra></extra>",
    }
    # The shares stand under the axis, where the line of what may be lost does not cross them.
    ticks = [f"{one}<br>{escape(text)}" for one, text in zip(k, texts, strict=True)]
    ticks = [f"<b>{t}</b>" if one == suggested else t for one, t in zip(k, ticks, strict=True)]
    shown = {"tickvals": k.tolist(), "ticktext": ticks, "tickangle": 0, "showgrid": False}
    epsilon = found.get("epsilon")
    layout: Figure = {}
    if epsilon is not None:
        line = {"color": "var(--vermillion)", "dash": "dot", "width": 1.5}
        level = {"y0": 100 * epsilon, "y1": 100 * epsilon, "x0": 0, "x1": 1, "xref": "paper"}
        layout["shapes"] = [{"type": "line", "line": line, **level}]
        layout["annotations"] = [
            {
                "text": f"{percent(epsilon, 0)} may be lost",
                "x": 1,
                "xref": "paper",
                "xanchor": "right",
                "y": 100 * epsilon,
                "yshift": 12,
                "showarrow": False,
                "font": {"color": "var(--vermillion)"},
            }
        ]
    drawn = figure(
        [bars],
        axis("hops k, and what lies beyond", **shown),
        axis("% lost beyond k", rangemode="tozero"),
        **layout,
    )
    said = f"k = {suggested} is the smallest that loses no more" if suggested else "no k is enough"
    rows = [[str(one), text] for one, text in zip(k, texts, strict=True)]
    return Chart(
        drawn,
        f"Bar chart of the share of the information lost beyond k hops; {said}.",
        "What lies beyond k hops and is lost, in per cent of all, by the fitted curve"
        + (f". The suggested k = {suggested} is drawn in green and bold." if suggested else "."),
        TableBlock(("hops k", "lost"), rows),
    )
