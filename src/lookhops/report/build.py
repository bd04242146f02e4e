"""A report from whatever there is: a model's folder, a folder of them, a store, results as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from lookhops.core.errors import LookHopsError
from lookhops.core.files import current
from lookhops.core.schema import read
from lookhops.core.words import counted, joined
from lookhops.graphs import Graphs
from lookhops.models.config import CONFIG, run_records
from lookhops.report.evaluation import performance_section
from lookhops.report.folders import ModelFolder, model_folders, read_folder, read_information
from lookhops.report.page import Lines, Report, Section, Tile, reproduce_section
from lookhops.report.runs import environment, grouped, read_store, runs_report
from lookhops.report.sections.comparison import comparison_section
from lookhops.report.sections.data import data_section, information_section, information_summary
from lookhops.report.sections.explanations import explanation_sections
from lookhops.report.sections.training import training_section, tuning_section
from lookhops.runs.plan import RunKey
from lookhops.runs.record import Machine
from lookhops.runs.results import CellResult, Results
from lookhops.tasks import Metric
from lookhops.training import Protocol

STORES = ("comparison.sqlite", "runs.sqlite")
SQLITE = b"SQLite format 3\x00"
SPACE = "\N{NO-BREAK SPACE}"
#: More classes than this are not named in the summary.
SHOWN_CLASSES = 5


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
        return runs_report(Results.from_json(path), again, paper=True)
    raise LookHopsError(
        f"{path}: neither a folder of a model nor a store of results nor results as JSON."
    )


def _report_on_folder(path: Path, graphs: Graphs | None, again: Lines) -> Report:
    if current(path / CONFIG).exists():
        return model_report(read_folder(path), graphs, again)
    if inner := model_folders(path):
        information = read_information(path)
        models = [replace(read_folder(one), information=information) for one in inner]
        return _folder_report(models, graphs, again)
    for name in STORES:
        if (path / name).is_file():
            return runs_report(read_store(path / name), again)
    raise LookHopsError(
        f"{path}: has no {CONFIG}, no folders of models and no store ({' or '.join(STORES)}); "
        "name what `lookhops train`, `compare` or `paper` wrote."
    )


def look_report(
    found: Mapping[str, Any], counts: Mapping[str, Any] | None, again: Lines = ()
) -> Report:
    """The report of ``lookhops look``."""
    sections = [data_section(found["name"], counts)] if counts else []
    sections.append(information_section(found))
    tiles = [*sections[-1].tiles, *(Tile(n, f"{found[n]:,}") for n in ("graphs", "nodes"))]
    if again:
        lead = "The same graphs give the same numbers, on every machine."
        sections.append(reproduce_section(lead, again))
    return Report(f"{found['name']}: which k?", information_summary(found), tiles, sections)


def model_report(model: ModelFolder, graphs: Graphs | None = None, again: Lines = ()) -> Report:
    """The report on one model's folder."""
    main, classes = model.task.main, model.task.class_names
    score = f", test {main.title} {model.score(main)}" if model.score(main) else ""
    names = f" ({joined(classes)})" if 0 < len(classes) <= SHOWN_CLASSES else ""
    summary = f"{counted(len(model.seeds), 'model')}{score}, on {model.graphs}{names}."
    sections = _model_sections(model, graphs, [*_commands_of([model]), *again])
    title = f"{model.config['data']['name']}: {model.learner.title}"
    return Report(title, summary, _model_tiles(model, sections), sections)


def _folder_report(models: Sequence[ModelFolder], graphs: Graphs | None, again: Lines) -> Report:
    """The report on several models' folders: how they compare, and the best of them in detail."""
    tested = [model for model in models if model.config["metrics"]["seeds"]]
    if len(tested) < 2:
        return model_report((tested or list(models))[0], graphs, again)
    groups = grouped(Results([_cell_of(model) for model in tested]))
    best = next(m for m in tested if m.path.name == groups[0].best.model)
    name, main = best.path.name, best.task.main
    lines = [*_commands_of(tested), *again]
    sections = _model_sections(best, graphs, lines, comparison_section(groups))
    names = joined([*dict.fromkeys([*groups[0].cells, *(m.path.name for m in tested)])])
    title = joined([*dict.fromkeys(model.config["data"]["name"] for model in tested)])
    summary = f"{counted(len(tested), 'model')} ({names})"
    if len(groups) > 1:  # on other graphs or splits: nothing to call the best
        summary += f"; {name}, on {best.config['data']['name']}, is shown in detail."
    else:
        score = f"has a test {main.title} of {best.score(main)}"
        summary += f" on {best.graphs}; the best, {name}, {score}."
    return Report(f"{title}: {names}", summary, _model_tiles(best, sections), sections)


def _cell_of(model: ModelFolder) -> CellResult:
    """A model's folder as a cell of results, called after its folder."""
    data, protocol = model.config["data"], read(Protocol, model.config["protocol"])
    key = RunKey(f"{data['fingerprint']} {data['splits']}", model.learner.model, protocol)
    return CellResult(data["name"], model.path.name, key, run_records(model.config))


def _model_sections(
    model: ModelFolder, graphs: Graphs | None, lines: Lines, compared: Section | None = None
) -> list[Section]:
    """All that there is to say of a model; where it is one of several, titles say of which."""
    counts = model.config.get("facts")
    of_model = [
        model.tuning and tuning_section(model.tuning),
        training_section(model),
        performance_section(model),
        *explanation_sections(model, graphs),
    ]
    if compared is not None:
        name = model.path.name
        of_model = [one and replace(one, title=f"{one.title}: {name}") for one in of_model]
    found = [
        counts and data_section(model.config["data"]["name"], counts),
        model.information and information_section(model.information),
        compared,
        *of_model,
        _reproduce_section(model, lines),
    ]
    return [section for section in found if section]


def _model_tiles(model: ModelFolder, sections: Sequence[Section]) -> list[Tile]:
    """The key figures of a model, and of its sections."""
    config, task, tiles = model.config, model.task, list[Tile]()
    summary = config["metrics"]["summary"]

    def interval_of(metric: Metric) -> str:
        ends = summary.get(metric.name, {}).get("interval")
        return f"95%: {metric.written(*ends, joint=' to ')}" if ends else ""

    if score := model.score(task.main):
        count = len(model.seeds)
        seeds = f"mean of {counted(count, 'seed')}" if count > 1 else "one seed"
        note = "; ".join(filter(None, (seeds, interval_of(task.main))))
        tiles.append(Tile(f"test {task.main.title}", score, note))
    tiles += (of_sections := [tile for section in sections for tile in section.tiles])
    for metric in task.metrics if len(of_sections) < 2 else ():
        found = summary.get(metric.name, {})
        if "interval" in found and metric != task.main:  # of the metrics that are resampled
            tiles.append(Tile(metric.title, metric.written(found["mean"]), interval_of(metric)))
    tiles.append(Tile("graphs", f"{config['data']['graphs']:,}", task.asked))
    title = model.learner.title.replace(" = ", f"{SPACE}={SPACE}")
    if config["parameters"] is None:
        return [*tiles, Tile("model", model.learner.name, title)]
    return [*tiles, Tile("parameters", f"{config['parameters']:,}", title)]


def _commands_of(models: Sequence[ModelFolder]) -> list[tuple[str, str]]:
    """The command lines that made the models, each once."""
    trained: dict[str, list[str]] = {}
    for model in models:
        if "command" in model.config:
            trained.setdefault(model.config["command"], []).append(model.path.name)
    several = len(trained) > 1
    return [(f"Run {joined(names)}" if several else "Run", line) for line, names in trained.items()]


def _reproduce_section(model: ModelFolder, lines: Lines) -> Section:
    """The command lines, and a model's versions, seeds and settings."""
    config, data = model.config, model.config["data"]
    rows = [
        ["seeds", ", ".join(map(str, model.seeds))],
        ["model", _settings(config["learner"]["options"]) or config["learner"]["name"]],
        ["training", _settings({k: v for k, v in config["protocol"].items() if k != "seeds"})],
        ["data", f"{data['name']}, fingerprint {data['fingerprint']}, splits {data['splits']}"],
        *environment([(config["versions"], Machine(**config["machine"]))]),
        ["weights", f"SHA-256 {config['weights_sha256'][:16]}…"],
    ]
    lead = (
        "The same command with the same versions gives the same models: each seed decides its "
        "split, its first weights and the order of its batches."
    )
    return reproduce_section(lead, lines, rows)


def _settings(values: Mapping[str, Any]) -> str:
    def said(value: Any) -> str:
        text = "/".join(map(str, value)) if isinstance(value, list) else str(value)
        return {"True": "yes", "False": "no"}.get(text, text)

    given = {key.replace("_", " "): value for key, value in values.items() if value is not None}
    return ", ".join(f"{key} {said(value)}" for key, value in given.items())
