"""The report on finished runs, from a store or from results that were exported."""

from __future__ import annotations

from collections.abc import Sequence

from lookhops.errors import LookHopsError
from lookhops.experiments.results import Results
from lookhops.paper.claims import CLAIMS, NOT_REPRODUCED, REPRODUCED, Verdict, judge
from lookhops.report.content import Block, Report, Section, Subheading, TableBlock, Tile
from lookhops.report.folders import COLUMNS
from lookhops.report.from_model import data_section
from lookhops.report.from_results import comparison_section
from lookhops.report.groups import Group, best_epochs, grouped
from lookhops.report.hop_charts import gains
from lookhops.report.rerun import runs_reproduce_section
from lookhops.report.snapshot import Snapshot
from lookhops.report.training import training_charts
from lookhops.words import QUICK_MARK, counted, joined, mean_std, p_said, signed

Lines = Sequence[tuple[str, str]]
#: More data sets than this are counted in the title, not named.
MOST_NAMES = 3


def runs_report(snapshot: Snapshot, again: Lines = (), paper: bool = False) -> Report:
    """The report on finished runs.

    Args:
        snapshot: The runs.
        again: Command lines to show.
        paper: Whether to judge the paper's claims by them.
    """
    results = snapshot.results
    if not results.cells:
        raise LookHopsError("No run is finished yet: there is nothing to report.")
    groups = grouped(results)
    verdicts = [judge(claim, results) for claim in CLAIMS] if paper else []
    found = [
        *_fact_sections(results),
        _claims_section(verdicts),
        comparison_section(groups),
        _training_section(groups, snapshot),
        runs_reproduce_section(groups, snapshot.commands, again),
    ]
    sections = [section for section in found if section is not None]
    datasets = list(dict.fromkeys(group.dataset for group in groups))
    what = joined(datasets) if len(datasets) <= MOST_NAMES else counted(len(datasets), "data set")
    names = list(dict.fromkeys(name for group in groups for name in group.found.scores))
    title = f"{what}: {names[0] if len(names) == 1 else f'{len(names)} models compared'}"
    title += QUICK_MARK if results.quick else ""
    return Report(title, _summary(groups), _tiles(groups, verdicts), sections)


def _models(groups: Sequence[Group]) -> list[str]:
    return list(dict.fromkeys(cell.model for group in groups for cell in group.finished))


def _runs(groups: Sequence[Group]) -> int:
    return sum(len(cell.seeds) for group in groups for cell in group.finished)


def _summary(groups: Sequence[Group]) -> str:
    """The runs in one plain sentence."""
    datasets = {group.dataset for group in groups}
    text = (
        f"{counted(len(_models(groups)), 'model')} on {counted(len(datasets), 'data set')}, "
        f"{counted(_runs(groups), 'finished run')}"
    )
    if len(groups) == 1:
        best = groups[0].best
        mean, std = best.mean_std()
        accuracy = mean_std(mean / 100, std / 100, len(best.seeds) > 1)
        first = "comes first, with" if len(groups[0].cells) > 1 else "has"
        seeds = counted(len(best.seeds), "seed")
        text += f"; {best.model} {first} a test accuracy of {accuracy} over {seeds}"
    if all(group.quick for group in groups):
        return f"{text}. This is the quick version, which says nothing about the models."
    few = any(group.quick for group in groups)
    return f"{text}.{' The quick version says nothing about the models.' if few else ''}"


def _tiles(groups: Sequence[Group], verdicts: Sequence[Verdict]) -> list[Tile]:
    if len(groups) == 1:
        tiles = [_best_tile(groups[0]), *lead_tile(groups[0])]
    else:
        tiles = [Tile("data sets", str(len({group.dataset for group in groups})))]
    tiles.append(Tile("models", str(len(_models(groups)))))
    tiles.append(Tile("finished runs", f"{_runs(groups):,}"))
    if any(map(_was_run, verdicts)):
        reproduced = sum(one.word == REPRODUCED for one in verdicts)
        denied = sum(one.word == NOT_REPRODUCED for one in verdicts)
        rest = f"{denied} not reproduced, {len(verdicts) - reproduced - denied} open"
        tiles.append(Tile("claims reproduced", f"{reproduced} of {len(verdicts)}", rest))
    return tiles


def _best_tile(group: Group) -> Tile:
    mean, std = group.best.mean_std()
    several = len(group.best.seeds) > 1
    return Tile("best test accuracy", mean_std(mean / 100, std / 100, several), group.best.model)


def _fact_sections(results: Results) -> list[Section]:
    """The data, and the hop information, of every data set that has finished runs."""
    sections: list[Section] = []
    finished = {cell.dataset for cell in results.cells}
    found = {name: facts for name, facts in results.facts.items() if name in finished}
    graphs = {name: facts["graphs"] for name, facts in found.items() if "graphs" in facts}
    counts = {name: facts["data"] for name, facts in found.items() if "data" in facts}
    known = {**graphs, **counts}
    if len(known) == 1 and graphs:
        sections.append(data_section(*next(iter(graphs.items()))))
    elif known:
        columns = ("graphs", "nodes", "edges", "features")
        rows = [[n, *(f"{facts[c]:,}" for c in columns)] for n, facts in known.items()]
        table = TableBlock(("data set", *columns), rows, "Edges count each pair of nodes once.")
        lead = f"{counted(len(rows), 'data set')}: {joined(list(known))}."
        sections.append(Section("data", "The data", lead, [table]))
    gained = {name: facts["gain"] for name, facts in found.items() if "gain" in facts}
    if gained:
        lead = (
            "Measured before any training: the gain of a hop is how much the view of the nodes "
            "changes when each looks one hop further."
        )
        charts: list[Block] = [gains(gain, title=f"{name}. ") for name, gain in gained.items()]
        sections.append(Section("hops", "How many hops matter", lead, charts))
    return sections


def _was_run(verdict: Verdict) -> bool:
    return any(answer.by_dataset for answer in verdict.answers)


def _claims_section(verdicts: Sequence[Verdict]) -> Section | None:
    if not any(map(_was_run, verdicts)):
        return None
    rows = [[one.claim.title, one.said] for one in verdicts]
    lead = "What the paper says of its models, answered from these runs."
    table = TableBlock(("claim", "with these runs"), rows)
    return Section("claims", "The paper's claims", lead, [table])


def _training_section(groups: Sequence[Group], snapshot: Snapshot) -> Section | None:
    """How the best model of each data set trained, where the histories are there."""
    blocks: list[Block] = []
    for group in groups:
        history = {
            seed: columns
            for seed, columns in snapshot.history(group.best).items()
            if set(COLUMNS) <= columns.keys()
        }
        if not history:
            continue
        if len(groups) > 1:
            blocks.append(Subheading(f"{group.dataset}: {group.best.model}"))
        blocks += training_charts(history, best_epochs(group.best), f"{group.best.model}. ")
    if not blocks:
        return None
    lead = (
        "How the best model trained. Training stops when the validation loss has not fallen for "
        f"{groups[0].best.protocol.patience} epochs; the weights of its lowest value, marked by a "
        "diamond, are kept and tested."
    )
    return Section("training", "Training", lead, blocks)


def lead_tile(group: Group) -> list[Tile]:
    """How far the best model is ahead of the next, and how sure that is, where there are two."""
    names = list(group.found.scores)
    if len(names) < 2:
        return []
    ahead = sum(group.found.scores[names[0]]) - sum(group.found.scores[names[1]])
    points = ahead / len(group.found.seeds)
    pairs = [p for p in group.found.pairs if {p.first, p.second} == set(names[:2])]
    sure = f" ({p_said(pairs[0].adjusted_p)})" if pairs else ""
    return [Tile("ahead", f"{signed(points)} points", f"{names[0]} over {names[1]}{sure}")]
