"""A report from whatever there is: a model's folder, a folder of them, a store, results as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lookhops.errors import LookHopsError
from lookhops.experiments.results import Results
from lookhops.graphs import Graphs
from lookhops.models.folder import CONFIG
from lookhops.report.content import Commands, Report, Section, Tile
from lookhops.report.folders import (
    ModelFolder,
    model_folders,
    read_folder,
    read_information,
)
from lookhops.report.from_information import (
    information_section,
    information_summary,
    information_tile,
)
from lookhops.report.from_model import (
    commands_of,
    data_section,
    model_summary,
    model_tiles,
    reproduce_section,
)
from lookhops.report.from_results import comparison_section
from lookhops.report.gallery import gallery_section
from lookhops.report.groups import cell_of, grouped
from lookhops.report.results import results_section
from lookhops.report.runs import Lines, lead_tile, runs_report
from lookhops.report.snapshot import Snapshot, read_store
from lookhops.report.training import training_section
from lookhops.words import counted, joined, mean_std, network_name

STORES = ("comparison.sqlite", "runs.sqlite")
SQLITE = b"SQLite format 3\x00"


def report_on(path: Path, graphs: Graphs | None = None, again: Lines = ()) -> Report:
    """The report on a folder or a file.

    Args:
        path: A model's folder, a folder of such folders or with a store in it, a store, or results
            that ``lookhops paper --export`` wrote as JSON.
        graphs: What the models were trained on, for the gallery.
        again: Command lines to show beside those that are stored, each with what it does.
    """
    if path.is_dir():
        return _report_on_folder(path, graphs, again)
    if not path.exists():
        raise LookHopsError(
            f"{path}: no such folder or file; a report is made of what `lookhops train`, `compare` "
            "or `paper` wrote."
        )
    if graphs is not None:
        raise LookHopsError(
            f"{path}: --data is for the gallery of a model's folder; a store has no models in it."
        )
    try:
        with path.open("rb") as file:
            begins = file.read(len(SQLITE))
    except OSError as error:
        raise LookHopsError(f"{path}: cannot be read ({error.strerror}).") from error
    if begins == SQLITE:
        return runs_report(read_store(path), again)
    if path.suffix == ".json":
        return runs_report(Snapshot(Results.from_json(path)), again, paper=True)
    raise LookHopsError(
        f"{path}: neither a folder of a model nor a store of results nor results as JSON."
    )


def _report_on_folder(path: Path, graphs: Graphs | None, again: Lines) -> Report:
    if (path / CONFIG).exists():
        return model_report(read_folder(path), graphs, read_information(path), again)
    if inner := model_folders(path):
        models = [read_folder(one) for one in inner]
        return folder_report(models, graphs, read_information(path), again)
    for name in STORES:
        if (path / name).is_file():
            return runs_report(read_store(path / name), again)
    raise LookHopsError(
        f"{path}: has no {CONFIG}, no folders of models and no store ({' or '.join(STORES)}); "
        "name what `lookhops train`, `compare` or `paper` wrote."
    )


# -------------------------------------------------------------------- what was measured


def look_report(
    found: Mapping[str, Any], facts: Mapping[str, Any] | None, again: Lines = ()
) -> Report:
    """The report of ``lookhops look``."""
    tiles = [information_tile(found), Tile("graphs", f"{found['graphs']:,}")]
    tiles.append(Tile("nodes", f"{found['nodes']:,}"))
    sections = [data_section(found["name"], facts)] if facts else []
    sections.append(information_section(found))
    if again:
        lead = "The same graphs give the same numbers, on every machine."
        sections.append(Section("reproduce", "How to reproduce", lead, [Commands(again)]))
    return Report(f"{found['name']}: which k?", information_summary(found), tiles, sections)


# -------------------------------------------------------------------- what was trained


def model_report(
    model: ModelFolder,
    graphs: Graphs | None = None,
    information: Mapping[str, Any] | None = None,
    again: Lines = (),
) -> Report:
    """The report on one model's folder."""
    tiles = model_tiles(model, *([information_tile(information)] if information else []))
    title = f"{model.config['data']['name']}: {network_name(model.config['architecture'])}"
    return Report(
        title,
        model_summary(model),
        tiles,
        _model_sections(model, graphs, information, [], [*commands_of([model]), *again]),
    )


def _model_sections(
    model: ModelFolder,
    graphs: Graphs | None,
    information: Mapping[str, Any] | None,
    compared: Sequence[Section],
    lines: Lines,
) -> list[Section]:
    facts = model.config.get("facts")
    found = [
        data_section(model.config["data"]["name"], facts) if facts else None,
        information_section(information) if information else None,
        *compared,
        training_section(model),
        results_section(model),
        gallery_section(model, graphs),
        reproduce_section(model, lines),
    ]
    return [section for section in found if section is not None]


def folder_report(
    models: Sequence[ModelFolder],
    graphs: Graphs | None = None,
    information: Mapping[str, Any] | None = None,
    again: Lines = (),
) -> Report:
    """The report on several models' folders: how they compare, and the best of them in detail."""
    tested = [model for model in models if model.config["metrics"]["seeds"]]
    if len(tested) < 2:
        return model_report((tested or list(models))[0], graphs, information, again)
    groups = grouped(Results([cell_of(model) for model in tested]))
    best = next(m for m in tested if m.path.name == groups[0].best.model)
    compared = comparison_section(groups)
    measured = [information_tile(information)] if information else []
    tiles = model_tiles(best, *lead_tile(groups[0]), *measured)
    names = [*dict.fromkeys([*groups[0].found.scores, *(model.path.name for model in tested)])]
    data = joined(list(dict.fromkeys(model.config["data"]["name"] for model in tested)))
    sections = []
    lines = [*commands_of(tested), *again]
    for section in _model_sections(best, graphs, information, [compared], lines):
        own = section.name in ("training", "results", "looked")
        title = f"{section.title}: {best.path.name}" if own else section.title
        sections.append(Section(section.name, title, section.lead, section.blocks))
    what = f"{counted(len(tested), 'network')} ({joined(names)})"
    if len(groups) > 1:  # on other graphs or splits: nothing to call the best
        shown = f"{best.path.name}, on {best.config['data']['name']}, is shown in detail"
        return Report(f"{data}: {joined(names)}", f"{what}; {shown}.", tiles, sections)
    a = best.config["metrics"]["summary"]["accuracy"]
    summary = (
        f"{what} on {counted(best.config['data']['graphs'], 'graph')} of "
        f"{counted(len(best.class_names), 'class', 'classes')}; the best, {best.path.name}, has a "
        f"test accuracy of {mean_std(a['mean'], a['std'], len(best.seeds) > 1)}."
    )
    return Report(f"{data}: {joined(names)}", summary, tiles, sections)
