"""Training, epoch by epoch, and tuning: what it gained, what was tried, what mattered."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import accumulate
from math import inf
from typing import Any

import numpy as np

from lookhops.core.charts import ZERO, axis, colour, figure, interval, marks, rows_axis, series
from lookhops.core.tables import Table
from lookhops.core.words import agreeing, between, counted, duration, p_said, signed
from lookhops.report.folders import History, ModelFolder
from lookhops.report.page import Block, Chart, Folded, Note, Section, Tile
from lookhops.runs.tune.tuning import SearchRecord, Tuning
from lookhops.tasks import TASKS

#: How many of the best configurations are listed.
LISTED = 10


def training_section(model: ModelFolder) -> Section | None:
    """Loss and accuracy over the epochs; none without a history."""
    first = [model.history[seed, 0] for seed in model.seeds if (seed, 0) in model.history]
    if not first:
        return None
    config, protocol = model.config, model.config["protocol"]
    lengths = [len(rows) for rows in first]
    epochs = " to ".join(map(str, sorted({min(lengths), max(lengths)})))
    full = sum(length >= protocol["max_epochs"] for length in lengths)
    seeds = counted(len(first), "seed")
    lead = (
        f"{seeds.capitalize()} trained for {epochs} {agreeing(max(lengths), 'epoch', 'epochs')}. "
        f"Training stops after "
        f"{counted(protocol['patience'], 'epoch')} without a lower validation loss, or at "
        f"{protocol['max_epochs']}"
        + (" (as here)" if full == len(lengths) else "")
        + (f" ({full} of {seeds} went that far)" if 0 < full < len(lengths) else "")
        + ". The weights of the lowest validation loss, marked by a diamond, are kept and tested."
    )
    if seconds := config.get("seconds_per_epoch"):
        lead += f" An epoch took {duration(seconds)} a seed on {config['machine']['device']}."
    if len(model.history) > len(first):
        lead += " The faint lines are the other members of each seed."
    blocks: list[Block] = [Note(config["stopped"])] if config.get("stopped") else []
    charts = training_charts(model.history, model.best_epoch)
    return Section("training", "Training", lead, [*blocks, *charts])


def training_charts(history: History, best: Mapping[int, int], title: str = "") -> list[Chart]:
    """The losses, and the main metric of the validation part, of every seed.

    Members but the first are drawn faintly behind; ``best`` is the epoch of each seed whose weights
    were kept; ``title`` begins the captions.
    """
    first = {seed: rows for (seed, member), rows in history.items() if member == 0}
    mains = (task.main for task in TASKS.values())
    # The main metric that was measured after each epoch; none where that is the loss.
    columns = next(iter(first.values())).columns
    metric = next((main for main in mains if f"val_{main.name}" in columns), None)
    rows = []
    for seed, epochs in first.items():
        kept = epochs.iloc[max(best[seed], 1) - 1]
        losses = [f"{kept[name]:.4f}" for name in ("train_loss", "val_loss")]
        scores = [metric.written(kept[f"val_{metric.name}"])] if metric else []
        rows.append([str(seed), str(len(epochs)), str(best[seed]), *losses, *scores])
    head = ["seed", "epochs", "kept epoch", "training loss", "validation loss"]
    head += [f"validation {metric.title}"] if metric else []
    table = Table(head, rows, "At the epoch that was kept")
    n = counted(len(first), "seed")
    over, each = f"over the epochs of {n}", f"{n.capitalize()}, a line each."
    names = {"train_loss": "training", "val_loss": "validation"}
    drawn = _curves(history, best, names, "loss")
    shown = f"{title}Loss a graph: training dotted, validation solid. {each}"
    charts = [Chart(drawn, f"Training and validation loss {over}.", shown, table)]
    if metric is not None:
        names = {f"val_{metric.name}": "validation"}
        drawn = _curves(history, best, names, metric.heading, metric.scale)
        per_cent = ", in per cent" if metric.share else ""
        name = metric.title[0].upper() + metric.title[1:]
        shown = f"{title}{name} on the validation graphs{per_cent}. {each}"
        charts.append(Chart(drawn, f"Validation {metric.title} {over}.", shown, table))
    return charts


def _curves(
    history: History, best: Mapping[int, int], columns: Mapping[str, str], y: str, scale: float = 1
) -> dict[str, Any]:
    """Curves over the epochs, one a seed; a diamond marks the epoch whose weights were kept.

    ``columns`` are those to draw, the main one last, and what to call them.
    """
    looks = (("var(--orange)", "dot"), ("var(--blue)", "solid"))[-len(columns) :]
    first = {seed: rows for (seed, member), rows in history.items() if member == 0}
    width, in_legend = 2 if len(first) == 1 else 1.4, (next(iter(first)), 0)
    members_first = sorted(history, key=lambda key: key[1] == 0)
    traces = []
    for (column, name), (stroke, dash) in zip(columns.items(), looks, strict=True):
        for key in members_first:
            seed, member = key
            who = f"seed {seed}, member {member + 1}" if member else f"seed {seed}"
            curve = series(
                "lines",
                map(int, history[key]["epoch"]),
                scale * np.asarray(history[key][column]),
                f"epoch %{{x}}: %{{y:.4g}}<extra>{who}</extra>",
                name=name,
                legendgroup=name,
                showlegend=key == in_legend,
                line={"color": stroke, "dash": dash, "width": 1 if member else width},
                opacity=0.3 if member else 0.85,
            )
            traces.append(curve)
    kept = {seed: best[seed] for seed in first if best[seed]}
    scores = [scale * first[seed][[*columns][-1]].iloc[epoch - 1] for seed, epoch in kept.items()]
    hover = "%{text} kept epoch %{x}"
    diamonds = marks(kept.values(), scores, hover, "kept epoch", "vermillion", size=10)
    diamonds["marker"]["line"] = {"color": "var(--page)", "width": 1.5}
    diamonds["text"] = [f"seed {seed}" for seed in kept]
    epochs = axis("epoch", rangemode="tozero", zeroline=False)
    return figure([*traces, diamonds], epochs, axis(y))


def tuning_section(found: Tuning) -> Section:
    """The gain over the recommended model, the history of the searches, the importance."""
    searches = counted(len(found.searches), "outer split")
    inner = counted(found.inner, "inner split")
    pruned = sum(one.value is None for search in found.searches for one in search.tried)
    lead = (
        f"{found.said()} {counted(found.trials, 'configuration')} tried in "
        f"{duration(found.seconds)} on {found.device} ({pruned} of them ended early), for "
        f"{searches}; each has a search of its own, judged by the validation parts of {inner}. The "
        "test parts were opened once, when all searches had ended, for the chosen configurations "
        "and for the recommended model."
    )
    charts = [*_gain_chart(found), history_chart(found), *_importance_chart(found)]
    blocks: list[Block] = [chosen_table(found), *charts, Folded(best_table(found))]
    mean, unit = sum(found.gains) / len(found.gains), " points" if found.main.share else ""
    note = "one split says nothing" if found.gain is None else found.test_said
    tile = Tile("gain by tuning", f"{signed(mean, found.gain_digits)}{unit}", note)
    return Section("tuning", "Tuning", lead, blocks, [tile])


def chosen_table(found: Tuning) -> Table:
    """What was chosen for each outer split, and how it did."""
    main, rows = found.main, []
    pairs = zip(found.searches, found.tuned, found.recommended, found.gains, strict=True)
    for search, tuned, recommended, gain in pairs:
        scores = map(main.written, (search.chosen.value, tuned, recommended))
        name = f"{search.seed}: {search.chosen.said}"
        rows.append((name, *scores, signed(gain, found.gain_digits)))
    head = ("split: chosen", "validation", f"test {main.title}", "recommended", "gain")
    note = (
        "Chosen is what differs from the recommended model. This folder's model is the first "
        "split's choice: its test part had no part in it."
    )
    return Table(head, rows, note)


def best_table(found: Tuning) -> Table:
    """The best configurations of each search, by validation."""
    main, rows = found.main, []
    for search in found.searches:
        complete = [(one.value, one) for one in search.tried if one.value is not None]
        complete.sort(key=lambda pair: pair[0], reverse=main.higher_is_better)
        for value, one in complete[:LISTED]:
            ends = main.written(min(one.scores), max(one.scores), joint=" to ")
            rows.append((str(search.seed), main.written(value), ends, f"{one.epochs:,}", one.name))
    head = ("split", f"validation {main.title}", "on inner splits", "epochs", "configuration")
    note = f"The {LISTED} best configurations of each search, as `lookhops compare` takes them"
    return Table(head, rows, note)


def _gain_chart(found: Tuning) -> Iterator[Chart]:
    """The gain on each outer split and its mean with the interval; none of a single split."""
    if found.gain is None:
        return
    gain, gains, digits = found.gain, found.gains, found.gain_digits
    unit = "points" if found.main.share else found.main.title
    names = [*(f"split {search.seed}" for search in found.searches), "mean"]
    hover = f"%{{x:+.{digits}f}} {unit}"
    places = range(len(gains))
    dots = marks(gains, places, hover, "outer split", "muted", "circle-open", 9)
    bars = interval([gain.low], [gain.mean], [gain.high]) if gain.interval else None
    name = "mean, 95% interval" if bars else "mean"
    mean = marks([gain.mean], [len(gains)], hover, name, "blue", error_x=bars)
    of = f"gain in test {found.main.title}"
    x = axis(f"{of}, {unit}" if found.main.share else of, **ZERO)
    each = [signed(one, digits) for one in gains]
    average = f"{signed(gain.mean, digits)} ({between(gain.interval, digits)})"
    rows = list(zip(names, [*each, average], strict=True))
    yield Chart(
        figure([dots, mean], x, rows_axis(names)),
        f"{found.said()} By split: {', '.join(each)}.",
        f"Chosen configuration against recommended model on the test part of each outer split; to "
        f"the right of zero tuning is better. {counted(len(gains), 'split')}, corrected resampled "
        f"t-test, {p_said(gain.p)}.",
        Table(("split", f"gain, {unit}"), rows),
        120 + 34 * len(gains),
    )


def history_chart(found: Tuning) -> Chart:
    """What was tried, in its order, and the best so far."""
    main, rows = found.main, []
    traces: list[dict[str, Any]] = []
    for number, search in enumerate(found.searches):
        traces += _history(search, found, number)
        first, chosen = search.tried[0], search.chosen
        values = (main.written(first.value), main.written(chosen.value))
        rows.append((str(search.seed), str(len(search.tried)), *values, str(search.best + 1)))
    head = ("split", "tried", "the first", "the best", "its number")
    said = "; ".join(f"split {row[0]}: {row[2]}, then {row[3]} (number {row[4]})" for row in rows)
    return Chart(
        figure(traces, axis("configuration", zeroline=False), axis(f"validation {main.heading}")),
        f"Validation {main.title} of what was tried. {said}.",
        f"Validation {main.title}, mean over {counted(found.inner, 'inner split')}; open circles "
        "were ended early and have the first inner split alone. The line is the best so far, a "
        "colour each outer split. The first configuration is the recommended model, or the nearest "
        "to it.",
        Table(head, rows),
        340,
    )


def _history(search: SearchRecord, found: Tuning, number: int) -> Iterator[dict[str, Any]]:
    """The marks and the line of one search, in the colour of its number."""
    group, higher_is_better = f"split {search.seed}", found.main.higher_is_better

    def drawn(kind: str, name: str, values: Mapping[int, float], **look: Any) -> dict[str, Any]:
        hover = f"number %{{x}}: %{{y:.4g}}<extra>{group}, {name}</extra>"
        scaled = [found.main.scale * value for value in values.values()]
        shown = {"name": name, "legendgroup": name, "showlegend": number == 0}
        return series(kind, values, scaled, hover, **shown, **look)

    tried = [(place, one) for place, one in enumerate(search.tried, 1) if one.scores]
    complete = {place: one.value for place, one in tried if one.value is not None}
    pruned = {place: one.scores[0] for place, one in tried if one.value is None}
    look = {"color": colour(number), "size": 7}
    yield drawn("markers", "tried", complete, marker={**look, "symbol": "circle"}, opacity=0.8)
    open_circle = {**look, "symbol": "circle-open"}
    yield drawn("markers", "ended early", pruned, marker=open_circle, opacity=0.4)
    worst = -inf if higher_is_better else inf
    values = (worst if one.value is None else one.value for one in search.tried)
    best = accumulate(values, max if higher_is_better else min)
    line = {"color": colour(number), "width": 2, "shape": "hv"}
    yield drawn("lines", "best so far", dict(enumerate(best, 1)), line=line)


def _importance_chart(found: Tuning) -> Iterator[Chart]:
    if not found.importance:
        return
    names, shares = list(found.importance), list(found.importance.values())
    x, marker = [100 * share for share in shares], {"color": "var(--blue)"}
    bars = series("bar", x, range(len(names)), "%{x:.1f} %", orientation="h", marker=marker)
    rows = [(name, f"{share:.1%}", found.space[name]) for name, share in found.importance.items()]
    title = axis("share of the differences, %", rangemode="tozero")
    yield Chart(
        figure([bars], title, rows_axis(names)),
        f"What mattered: {', '.join(f'{row[0]} {row[1]}' for row in rows)}.",
        f"Each option's share of the differences between {counted(found.trials, 'configuration')}, "
        "by functional ANOVA over their scores on the first inner split. It says what mattered "
        "within the values that were tried, and not which value is better.",
        Table(("option", "share", "tried"), rows),
        100 + 24 * len(names),
    )
