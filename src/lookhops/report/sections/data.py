"""Before any training: counts, class balance and sizes of the graphs; how many hops matter."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from math import exp
from typing import Any

import numpy as np

from lookhops.core.charts import (
    MOST_SERIES,
    PATTERN,
    PATTERNS,
    axis,
    colour,
    figure,
    label,
    named_axis,
    series,
)
from lookhops.core.errors import LookHopsError
from lookhops.core.schema import AtLeast, Count, read
from lookhops.core.tables import Table
from lookhops.core.words import MINUS, counted, percent, span
from lookhops.neighbourhoods.charts import (
    MOST_CLASSES,
    class_gains,
    gains,
    hop_weights,
    label_accuracy,
    lost,
)
from lookhops.report.page import Block, Chart, Section, Tile
from lookhops.sources.counts import in_words


def data_section(name: str, about: Mapping[str, Any]) -> Section:
    """Counts, class balance and sizes, from what ``graph_counts`` gave."""
    classes, counts = about["class_names"], about["class_counts"]
    lead = (
        f"{name} has {counted(about['graphs'], 'graph')} with {counted(about['nodes'], 'node')}, "
        f"{counted(about['edges'], 'edge')} and {counted(about['features'], 'feature')} a node"
    )
    blocks: list[Block] = []
    if classes and sum(counts):
        most, least = int(np.argmax(counts)), int(np.argmin(counts))
        largest, smallest = (percent(counts[i] / sum(counts), 0) for i in (most, least))
        lead += f", in {counted(len(classes), 'class', 'classes')}"
        lead += (
            " of the same size"
            if counts[most] == counts[least]
            else f": the largest, {classes[most]}, has {largest} of them, the smallest, "
            f"{classes[least]}, {smallest}"
        )
        blocks.append(class_balance(about))
    found = in_words(about["molecules"]) if "molecules" in about else ""
    lead += f". Among the molecules: {found}." if found else "."
    return Section("data", "The data", lead, [*blocks, _sizes(about)])


def class_balance(about: Mapping[str, Any]) -> Chart:
    """How many graphs each class has."""
    names, counts = list(about["class_names"]), list(about["class_counts"])
    total = max(sum(counts), 1)
    rows = [(name, f"{n:,}", percent(n / total)) for name, n in zip(names, counts, strict=True)]
    several = [colour(i) for i in range(len(names))]
    look = {"color": several if len(names) <= MOST_SERIES else "var(--blue)"}
    texts = [f"{count} ({share})" for _, count, share in rows]
    words = {"text": texts, "textposition": "auto", "insidetextanchor": "end"}
    places = range(len(names))
    drawn = series("bar", counts, places, "%{text}", orientation="h", marker=look, **words)
    x, y = axis("graphs", rangemode="tozero"), named_axis("", names, 16, autorange="reversed")
    said = ", ".join(f"{name} {text}" for name, text in zip(names, texts, strict=True))
    return Chart(
        figure([drawn], x, y, bargap=0.45, uniformtext={"minsize": 10, "mode": "hide"}),
        f"Bar chart of graphs in each class: {said}.",
        f"Class balance. n = {counted(total, 'graph')}.",
        Table(("class", "graphs", "share"), rows),
        height=max(300, min(90 + 30 * len(names), 640)),
    )


def _sizes(about: Mapping[str, Any]) -> Chart:
    edges, counts = about["sizes"]["edges"], about["sizes"]["counts"]
    names = list(about["class_names"]) or ["graphs"]
    if len(counts) > MOST_SERIES:
        counts, names = [np.sum(counts, axis=0).tolist()], ["graphs"]
    ranges = [span(*np.ceil((low, high - 1)).astype(int)) for low, high in pairwise(edges)]
    drawn = [
        series(
            "bar",
            [(low + high) / 2 for low, high in pairwise(edges)],
            row,
            "%{customdata} nodes: %{y:,} graphs<extra>" + label(name) + "</extra>",
            marker={"color": colour(i), "pattern": {**PATTERN, "shape": PATTERNS[i]}},
            name=label(name, 16),
            customdata=ranges,
        )
        for i, (name, row) in enumerate(zip(names, counts, strict=True))
    ]
    low, high = about["nodes_range"]
    mean = about["nodes"] / max(about["graphs"], 1)
    rows = [
        [text, *(f"{n:,}" for n in column)]
        for text, *column in zip(ranges, *counts, strict=True)
        if any(column)
    ]
    return Chart(
        figure(drawn, axis("nodes in a graph"), axis("graphs"), barmode="stack", bargap=0.06),
        f"Histogram of nodes in a graph, from {low:,} to {high:,}, on average {mean:.1f}.",
        f"Sizes of the graphs: from {low:,} to {counted(high, 'node')}, {mean:.1f} on average. "
        f"n = {counted(about['graphs'], 'graph')}.",
        Table(("nodes", *names), rows),
    )


#: What is read of the gains of all graphs, and of those of a class.
GAINS = {
    "k": Sequence[Count],
    "gain": Sequence[float],
    "gain_interval?": Sequence[tuple[float, float]] | None,
    "fit": AtLeast(dict.fromkeys(("a", "b"), float)),
}
#: What is read of a target.
LABELS = {
    **dict.fromkeys(("sentence", "number?"), str),
    "hops": Sequence[Count],
    "enough": Count | None,
    **dict.fromkeys(("accuracy?", "r2?", "std", "lost"), Sequence[float]),
    "lost_interval": Sequence[tuple[float, float]],
    **dict.fromkeys(("majority?", "of_the_mean?"), float),
    "splits": Count,
}
#: What is read of the weights of hops for a target.
WEIGHTS = {
    **dict.fromkeys(("sentence", "number?"), str),
    **dict.fromkeys(("graphs", "resamples"), Count),
    "hops": Sequence[Count],
    **dict.fromkeys(("weight", "weight_std"), Sequence[float]),
}
INFORMATION = AtLeast(
    {
        **GAINS,
        "sentence": str,
        **dict.fromkeys(("name?", "neighbourhood?"), str),
        **dict.fromkeys(("graphs?", "nodes?", "resamples?"), Count),
        "suggested_k?": Count | None,
        "epsilon?": float | None,
        "per_class?": Mapping[str, AtLeast(GAINS)],  # type: ignore[misc]
    }
)


def check_information(found: Any) -> dict[str, Any]:
    """Check what ``HopInformation.to_dict`` wrote as JSON, with or without targets."""
    read(INFORMATION, found)
    for one in (found, *(found.get("per_class") or {}).values()):
        _check_lengths(one, GAINS, "gain", "k")
    for name, columns in (("hop_weights", WEIGHTS), ("labels", LABELS)):
        for one in read(Sequence[Any], _each(found, name), name):
            read(AtLeast(columns), one, name)
            _check_lengths(one, columns, name, "count of hops")
    for one in _each(found, "labels"):
        needed = {"r2", "of_the_mean"} if "number" in one else {"accuracy", "majority"}
        if not one["sentence"] or needed - {*one} or [*one["hops"]] != [*range(len(one["hops"]))]:
            raise LookHopsError("labels is not complete")
    return dict(found)


def _check_lengths(one: Mapping[str, Any], columns: Iterable[str], name: str, of: str) -> None:
    values = [one.get(column.removesuffix("?")) for column in columns]
    lengths = {len(value) for value in values if isinstance(value, list | tuple)}
    if len(lengths) > 1 or 0 in lengths:
        raise LookHopsError(f"{name} has not one number for each {of}")


def _each(found: Mapping[str, Any], name: str) -> Any:
    """What was measured of each target: none, one, or a list of them in the file."""
    entries = found.get(name) or []
    return [entries] if isinstance(entries, Mapping) else entries


def information_section(found: Mapping[str, Any]) -> Section:
    """Which k: the gains, what is lost beyond each k, and the suggestion in words."""
    seen = {
        "walk": "those that a walk of exactly k steps leads to",
        "ball": "those within k steps",
    }.get(found.get("neighbourhood", ""), "its neighbours")
    lead = (
        f"{found['sentence']} Measured before any training, from the graphs and not their classes: "
        "the gain of a hop is how much the view of the nodes changes when each looks at k hops "
        f"({seen}) instead of k {MINUS} 1."
    )
    blocks: list[Block] = [gains(found), lost(found)]
    for target in _each(found, "labels"):
        if "number" in target:
            lead += f" {target['sentence']}"
        else:
            lead += f" From the classes: {target['sentence'][0].lower()}{target['sentence'][1:]}"
        blocks.append(label_accuracy(target))
    for target in _each(found, "hop_weights"):
        lead += f" {target['sentence']}"
        blocks.append(hop_weights(target))
    if (count := len(found.get("per_class") or {})) > 1:
        by_class = class_gains(found)
        blocks.append(by_class if count <= MOST_CLASSES else by_class.numbers)
    k, kept = _suggested(found)
    tile = Tile("suggested hops", "none", "the information does not die away")
    if k is not None:
        tile = Tile("suggested hops", f"k = {k}", f"keeps {kept} of the information")
    return Section("hops", "How many hops matter", lead, blocks, [tile])


def information_summary(found: Mapping[str, Any]) -> str:
    """The answer in one plain sentence."""
    what = f"{counted(found['graphs'], 'graph')} of {found['name']}"
    k, kept = _suggested(found)
    if k is None:
        return f"In {what}, information does not die away with distance: no k can be suggested."
    return f"In {what}, k = {k} keeps {kept} of the information."


def _suggested(found: Mapping[str, Any]) -> tuple[int | None, str]:
    """The suggested k, if any, and what it keeps."""
    k = found.get("suggested_k")
    return k, percent(1 - min(1.0, exp(-found["fit"]["b"] * (k or 0))))
