"""Tuning: what it gained, what was tried, what mattered."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lookhops.core.charts import (
    Figure,
    axis,
    colour,
    figure,
    interval,
    named_axis,
    rounded,
    series,
)
from lookhops.core.tables import Table
from lookhops.core.words import between, counted, duration, p_said, signed
from lookhops.report.content import Block, Chart, Folded, Section, Tile
from lookhops.runs.tune.record import SearchRecord, Tuning

#: How many of the best configurations are listed.
LISTED = 10


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
    return Section("tuning", "Tuning", lead, blocks)


def tuning_tile(found: Tuning) -> Tile:
    """What tuning gained, as a key figure."""
    unit = " points" if found.main.share else ""
    mean = sum(found.gains) / len(found.gains)
    note = "one split says nothing"
    if found.gain is not None:
        note = found.test_said
    return Tile("gain by tuning", f"{signed(mean, found.gain_digits)}{unit}", note)


def chosen_table(found: Tuning) -> Table:
    """What was chosen for each outer split, and how it did."""
    main = found.main
    pairs = zip(found.searches, found.tuned, found.recommended, found.gains, strict=True)
    rows = [
        (
            f"{search.seed}: {search.chosen.said}",
            main.written(search.chosen.value),
            main.written(tuned),
            main.written(recommended),
            signed(gain, found.gain_digits),
        )
        for search, tuned, recommended, gain in pairs
    ]
    head = ("split: chosen", "validation", f"test {main.title}", "recommended", "gain")
    note = (
        "Chosen is what differs from the recommended model. This folder's model is the first "
        "split's choice: its test part had no part in it."
    )
    return Table(head, rows, note)


def best_table(found: Tuning) -> Table:
    """The best configurations of each search, by validation."""
    main = found.main
    rows = [
        (
            str(search.seed),
            main.written(one.value),
            main.written(min(one.scores), max(one.scores), joint=" to "),
            f"{one.epochs:,}",
            one.name,
        )
        for search in found.searches
        for one in sorted(
            (one for one in search.tried if one.value is not None),
            key=lambda one: one.value or 0.0,
            reverse=main.higher_is_better,
        )[:LISTED]
    ]
    head = ("split", f"validation {main.title}", "on inner splits", "epochs", "configuration")
    note = f"The {LISTED} best configurations of each search, as `lookhops compare` takes them"
    return Table(head, rows, note)


def _gain_chart(found: Tuning) -> Iterator[Chart]:
    """The gain on each outer split and its mean with the interval; none of a single split."""
    if found.gain is None:
        return
    gain, gains, digits = found.gain, found.gains, found.gain_digits
    unit = "points" if found.main.share else found.main.title
    seeds = [f"split {search.seed}" for search in found.searches]
    dots = series(
        "markers",
        rounded(gains),
        list(range(len(gains))),
        f"%{{x:+.{digits}f}} {unit}",
        name="an outer split",
        marker={"color": "var(--muted)", "symbol": "circle", "size": 9},
    )
    bars = {"error_x": interval([gain.low], [gain.mean], [gain.high])} if gain.interval else {}
    mean = series(
        "markers",
        rounded([gain.mean]),
        [len(gains)],
        f"%{{x:+.{digits}f}} {unit}",
        name="mean, 95% interval" if bars else "mean",
        marker={"color": "var(--blue)", "symbol": "diamond", "size": 12},
        **bars,
    )
    zero = {"zeroline": True, "zerolinecolor": "var(--ink)", "zerolinewidth": 1}
    of = f"gain in test {found.main.title}"
    x = axis(f"{of}, {unit}" if found.main.share else of, **zero)
    rows = named_axis("", [*seeds, "mean"], range=[len(gains) + 0.6, -0.6])
    table = Table(
        ("split", f"gain, {unit}"),
        [
            *zip(seeds, (signed(one, digits) for one in gains), strict=True),
            ("mean", f"{signed(gain.mean, digits)} ({between(gain.interval, digits)})"),
        ],
    )
    yield Chart(
        figure([dots, mean], x, rows),
        f"{found.said()} By split: {', '.join(signed(one, digits) for one in gains)}.",
        f"Chosen configuration against recommended model on the test part of each outer split; to "
        f"the right of zero tuning is better. {counted(len(gains), 'split')}, corrected resampled "
        f"t-test, {p_said(gain.p)}.",
        table,
        120 + 34 * len(gains),
    )


def history_chart(found: Tuning) -> Chart:
    """What was tried, in its order, and the best so far."""
    main, rows = found.main, []
    traces: list[Figure] = []
    for number, search in enumerate(found.searches):
        traces += _history(search, found, colour(number), first=number == 0)
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


def _history(search: SearchRecord, found: Tuning, shade: str, first: bool) -> Iterator[Figure]:
    """The marks and the line of one search."""
    scale, group = found.main.scale, f"split {search.seed}"
    kinds = (("tried", False, "circle"), ("ended early", True, "circle-open"))
    for name, pruned, symbol in kinds:
        places = [
            i for i, one in enumerate(search.tried) if one.scores and (one.value is None) == pruned
        ]
        tried = [search.tried[i] for i in places]
        values = [one.value if one.value is not None else one.scores[0] for one in tried]
        yield series(
            "markers",
            [place + 1 for place in places],
            rounded([scale * value for value in values]),
            f"number %{{x}}: %{{y:.4g}}<extra>{group}, {name}</extra>",
            name=name,
            legendgroup=name,
            showlegend=first,
            opacity=0.4 if pruned else 0.8,
            marker={"color": shade, "symbol": symbol, "size": 7},
        )
    yield series(
        "lines",
        list(range(1, len(search.tried) + 1)),
        rounded([scale * value for value in _best_so_far(search, found.main.higher_is_better)]),
        f"best of %{{x}}: %{{y:.4g}}<extra>{group}</extra>",
        name="best so far",
        legendgroup="best so far",
        showlegend=first,
        line={"color": shade, "width": 2, "shape": "hv"},
    )


def _best_so_far(search: SearchRecord, higher_is_better: bool) -> Sequence[float]:
    better, best = (max, min)[not higher_is_better], float("nan")
    found = []
    for one in search.tried:
        if one.value is not None:
            best = one.value if best != best else better(best, one.value)
        found.append(best)
    return found


def _importance_chart(found: Tuning) -> Iterator[Chart]:
    """Each option's share of the differences; none where they are not known."""
    if not found.importance:
        return
    names, shares = list(found.importance), list(found.importance.values())
    bars = series(
        "bar",
        rounded([100 * share for share in shares]),
        list(range(len(names))),
        "%{x:.1f} %",
        orientation="h",
        marker={"color": "var(--blue)"},
    )
    rows = [(name, f"{share:.1%}", found.space[name]) for name, share in found.importance.items()]
    yield Chart(
        figure(
            [bars],
            axis("share of the differences, %", rangemode="tozero"),
            named_axis("", names, range=[len(names) - 0.4, -0.6]),
        ),
        f"What mattered: {', '.join(f'{row[0]} {row[1]}' for row in rows)}.",
        f"Each option's share of the differences between {counted(found.trials, 'configuration')}, "
        "by functional ANOVA over their scores on the first inner split. It says what mattered "
        "within the values that were tried, and not which value is better.",
        Table(("option", "share", "tried"), rows),
        100 + 24 * len(names),
    )
