"""Charts of hop information, from what ``HopInformation.to_dict`` and ``LabelInformation`` give."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

import numpy as np

from lookhops.core.charts import SYMBOLS, Chart, axis, colour, figure, interval, label, series
from lookhops.core.tables import Table
from lookhops.core.words import MINUS, NONE, between, counted, percent

#: More classes than this would lie on top of one another.
MOST_CLASSES = 7
#: What may be lost beyond k is shown for so many k, or until the suggested one.
SHOWN_HOPS = 5
RED = "var(--vermillion)"


def gains(found: Mapping[str, Any], title: str = "") -> Chart:
    """The gain of each hop with its interval, and the fit; ``title`` begins the caption."""
    k, gain, fit = found["k"], found["gain"], found["fit"]
    graphs = f" n = {counted(found['graphs'], 'graph')}." if "graphs" in found else ""
    quality = f", R² = {fit['r2']:.4f}" if fit.get("r2") is not None else ""
    return Chart(
        _gains_figure({"measured": found}),
        f"Information gain falls from {gain[0]:.3g} at {k[0]} hops to {gain[-1]:.3g} at {k[-1]}; "
        f"the dashed curve is the fit.",
        f"{title}Information gain of each further hop, in nats, with the fit {_formula(fit)}"
        f"{quality}.{_resamples(found)}{graphs}",
        Table(("hops k", "gain", "95% interval", "fit"), _gain_rows(found)),
    )


def class_gains(found: Mapping[str, Any]) -> Chart:
    """The gains of the graphs of each class."""
    parts: Mapping[str, Any] = found["per_class"]
    fits = "; ".join(f"{name}: {_formula(part['fit'])}" for name, part in parts.items())
    suggested = ((name, part.get("suggested_k")) for name, part in parts.items())
    enough = ", ".join(f"k = {k} of {name}" for name, k in suggested if k)
    enough = f" Enough are {enough}." if enough else ""
    sizes = ", ".join(f"{part['graphs']:,} {name}" for name, part in parts.items())
    rows = [[name, *row] for name, part in parts.items() for row in _gain_rows(part)]
    return Chart(
        _gains_figure(parts),
        "Information gain of each hop by class, with the fitted curves.",
        f"The same for the graphs of each class, in nats, with the fits {fits}.{enough}"
        f"{_resamples(found)} n = {sizes}.",
        Table(("class", "hops k", "gain", "95% interval", "fit"), rows),
        wide=True,
    )


def _gains_figure(parts: Mapping[str, Any]) -> dict[str, Any]:
    """Marks for the gains of each part and a line for their fit; parts stand a little aside."""
    traces = []
    for i, (name, part) in enumerate(parts.items()):
        shift, k = 0.1 * (i - (len(parts) - 1) / 2), np.asarray(part["k"])
        marker = {"color": colour(i), "symbol": SYMBOLS[i % len(SYMBOLS)], "size": 9}
        y, hover = part["gain"], "k = %{x:.0f}: %{y:.4f}"
        dots = series("markers", (k + shift).tolist(), y, hover, name=label(name), marker=marker)
        if part.get("gain_interval"):
            low, high = np.asarray(part["gain_interval"]).T
            dots["error_y"] = interval(low, part["gain"], high)
        fine = np.linspace(k[0], k[-1], 60)
        style = {"color": colour(i), "dash": "dash", "width": 1.5}
        legend = {"name": "fit"} if len(parts) == 1 else {"showlegend": False}
        fitted = _fitted(part, fine)
        traces += [dots, series("lines", fine + shift, fitted, line=style, **legend)]
    gain = axis("information gain IG(k), nats", rangemode="tozero")
    return figure(traces, axis("hops k", dtick=1, zeroline=False), gain)


def _fitted(found: Mapping[str, Any], k: Any) -> Any:
    return found["fit"]["a"] * np.exp(-found["fit"]["b"] * k)


def _gain_rows(found: Mapping[str, Any]) -> list[list[str]]:
    ends = found.get("gain_interval")
    shown = [between(one, digits=4) for one in ends] if ends else [NONE] * len(found["k"])
    return [
        [str(k), f"{gain:.4f}", text, f"{_fitted(found, k):.4f}"]
        for k, gain, text in zip(found["k"], found["gain"], shown, strict=True)
    ]


def _formula(fit: Mapping[str, float]) -> str:
    return f"{fit['a']:.3g}\N{NO-BREAK SPACE}·\N{NO-BREAK SPACE}e^({MINUS}{fit['b']:.3g} k)"


def _resamples(found: Mapping[str, Any]) -> str:
    if not found.get("gain_interval"):
        return ""
    return f" Intervals: 95% of {found['resamples']:,} resamples of the graphs."


# -------------------------------------------------------------------- what lies beyond


def lost(found: Mapping[str, Any]) -> Chart:
    """The share of the information beyond each k, by the fit."""
    suggested, last = found.get("suggested_k"), found["k"][-1]
    k = np.arange(1, min(max(SHOWN_HOPS, (suggested or 0) + 1), last) + 1).tolist()
    share = np.minimum(np.exp(-found["fit"]["b"] * np.array(k)), 1.0)
    texts = [f"{100 * s:.1f}%" if s >= 0.0005 else "<0.1%" for s in share]
    rows = list(zip(map(str, k), texts, strict=True))
    colours = ["var(--green)" if one == suggested else "var(--pale)" for one in k]
    hover = "k = %{x}: %{y:.2f} % lost"
    drawn = series("bar", k, 100 * share, hover, marker={"color": colours})
    # The shares stand under the axis, where the line of what may be lost does not cross them.
    ticks = [f"{one}<br>{escape(text)}" for one, text in zip(k, texts, strict=True)]
    ticks = [f"<b>{t}</b>" if one == suggested else t for one, t in zip(k, ticks, strict=True)]
    shown = {"tickvals": k, "ticktext": ticks, "tickangle": 0, "showgrid": False}
    said = f"k = {suggested} is the smallest that loses no more" if suggested else "no k is enough"
    allowed: dict[str, Any] = {}
    if (epsilon := found.get("epsilon")) is not None:
        allowed["shapes"] = [_rule(100 * epsilon, "dot")]
        words = {"text": f"{percent(epsilon, 0)} may be lost", "font": {"color": RED}}
        position = {"x": 1, "xref": "paper", "xanchor": "right", "y": 100 * epsilon, "yshift": 12}
        allowed["annotations"] = [{**words, **position, "showarrow": False}]
    return Chart(
        figure(
            [drawn],
            axis("hops k, and what lies beyond", **shown),
            axis("% lost beyond k", rangemode="tozero"),
            **allowed,
        ),
        f"Bar chart of the share of the information lost beyond k hops; {said}.",
        "What lies beyond k hops and is lost, in per cent of all, by the fitted curve"
        + (f". The suggested k = {suggested} is drawn in green and bold." if suggested else "."),
        Table(("hops k", "lost"), rows, best=k.index(suggested) if suggested in k else None),
    )


def _rule(height: float, dash: str) -> dict[str, Any]:
    """A line across the chart."""
    line = {"color": RED, "dash": dash, "width": 1.5}
    ends = {"x0": 0, "x1": 1, "y0": height, "y1": height}
    return {"type": "line", "xref": "paper", **ends, "line": line}


def _bars(
    x: str, hops: Any, mean: Any, std: Any, hover: str, colours: Any, y: Any, **layout: Any
) -> dict[str, Any]:
    """A bar for each number of hops, with its standard deviation."""
    spread = {"type": "data", "array": std, "thickness": 2}
    drawn = series("bar", hops, mean, hover, error_y=spread, marker={"color": colours})
    return figure([drawn], axis(x, dtick=1, showgrid=False), y, **layout)


def label_accuracy(found: Mapping[str, Any]) -> Chart:
    """Accuracy or R² by what lies within 0, 1, ... hops, as ``LabelInformation.to_dict`` has it."""
    hops, enough, number = found["hops"], found["enough"], found.get("number")
    splits = counted(found["splits"], "split")
    scored = f"of their nodes, mean and standard deviation of {splits}. Dashed: the"
    if number:
        scale, digits, key, naive, unit = 1, 3, "r2", found["of_the_mean"], "R²"
        what = f"From {number}: R² of a linear model on held-out graphs, by what lies within h hops"
        what += f" {scored} mean."
    else:
        scale, digits, key, naive, unit = 100, 1, "accuracy", found["majority"], "% right"
        what = "From the classes: held-out graphs that a linear model puts in the right class by "
        what += f"what lies within h hops {scored} commonest class, {percent(naive)}."
    mean, std, lost = ([scale * v for v in found[name]] for name in (key, "std", "lost"))
    ends = [[scale * end for end in one] for one in found["lost_interval"]]
    hover = "within %{x} hops: " + (f"R² %{{y:.{digits}f}}" if number else "%{y:.1f} % right")
    colours = ["var(--green)" if h == enough else "var(--pale)" for h in hops]
    texts = [f"{m:.{digits}f} ± {s:.{digits}f}" for m, s in zip(mean, std, strict=True)]
    columns = (map(str, hops), texts, (f"{v:.{digits}f}" for v in lost))
    rows = list(zip(*columns, (between(one, digits) for one in ends), strict=True))
    y = axis(unit, range=[min(0, *mean), 1.05 * scale])
    below = "below the best" if number else "below the best, points"
    said = "no number of hops is enough" if enough is None else f"{enough} are enough"
    green = "" if enough is None else " Green: the fewest hops that lose nothing beyond noise."
    return Chart(
        _bars("hops h", hops, mean, std, hover, colours, y, shapes=[_rule(scale * naive, "dash")]),
        f"Bar chart of how well {number or 'the classes'} can be predicted from what lies within h "
        f"hops; {said}.",
        f"{what} n = {counted(found['graphs'], 'graph')}.{green}",
        Table(("hops h", unit, below, "95% interval"), rows, best=enough),
    )


def hop_weights(found: Mapping[str, Any]) -> Chart:
    """The weight of each hop in a Gaussian process, as ``HopWeights.to_dict`` has it."""
    hops, weight, spread = (found[name] for name in ("hops", "weight", "weight_std"))
    y, each = axis("weight", rangemode="tozero"), zip(hops, weight, spread, strict=True)
    rows = [(str(hop), f"{w:.2f} ± {s:.2f}") for hop, w, s in each]
    target = found.get("number") or "the classes"
    return Chart(
        _bars("hop h", hops, weight, spread, "hop %{x}: %{y:.2f}", "var(--blue)", y),
        f"Bar chart of the weight of each hop in a Gaussian process for {target}.",
        f"From {target}: the share of each hop in a Gaussian process that looks no farther than it "
        "needs, by the marginal likelihood; mean and standard deviation of "
        f"{counted(found['resamples'], 'resample')}. n = {counted(found['graphs'], 'graph')}.",
        Table(("hop h", "weight"), rows),
    )
