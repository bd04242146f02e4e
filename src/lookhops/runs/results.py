"""Results: finished cells, which tables, figures and claims are made from; and their files."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from lookhops.core.errors import LookHopsError
from lookhops.core.files import read_json, write_text
from lookhops.core.schema import AtLeast, Count, located, read
from lookhops.core.tables import Table, to_csv
from lookhops.core.words import NONE
from lookhops.learners import Model
from lookhops.runs.plan import RunKey, canonical, read_model
from lookhops.runs.record import Machine, RunRecord
from lookhops.runs.statistics import mean_std
from lookhops.sources.counts import SIZE, check_graph_counts
from lookhops.tasks import Metric
from lookhops.training import Protocol

FORMAT = "lookhops-results-1"
SUFFIXES = (".csv", ".json", ".md", ".tex")
#: What kinds of notes hold; ``command ...`` is the command line that asked for runs.
FIT = AtLeast({**dict.fromkeys(("a", "b", "mse"), float), "r2": float | None})
CURVE = dict.fromkeys(("k", "gain"), Sequence[float])
NOTES = {
    "data": AtLeast({**SIZE, "classes": Count}),
    "gain": AtLeast({**CURVE, "suggested_k": int | None, "fit": FIT}),
}


@dataclass(frozen=True)
class CellResult:
    """The finished runs of a cell, one for each seed.

    ``names`` are all that its runs were called where they come from, ``model`` among them.
    """

    dataset: str
    model: str
    key: RunKey
    runs: tuple[RunRecord, ...]
    names: frozenset[str] = frozenset()

    @property
    def architecture(self) -> Model:
        return self.key.architecture

    def of_seeds(self, seeds: Sequence[int]) -> CellResult:
        """The same of these seeds only, in their order."""
        found = {run.seed: run for run in self.runs}
        return replace(self, runs=tuple(found[seed] for seed in seeds))

    @property
    def protocol(self) -> Protocol:
        return self.key.protocol

    @property
    def seeds(self) -> tuple[int, ...]:
        return tuple(run.seed for run in self.runs)

    @cached_property
    def metrics(self) -> Mapping[str, Sequence[Any]]:
        names = self.runs[0].metrics
        return {name: [run.metrics.get(name) for run in self.runs] for name in names}

    @property
    def main(self) -> Metric:
        return self.runs[0].task.main

    def scores(self) -> dict[int, float]:
        """The main metric of each seed, of the test part; shares in per cent."""
        for run in self.runs:
            if run.score is None:
                raise LookHopsError(
                    f"{self.model} on {self.dataset}, seed {run.seed}: {self.main.title} is not "
                    "defined on the test part; larger test parts may help."
                )
        return {run.seed: self.main.scale * (run.score or 0.0) for run in self.runs}

    def mean_std(self) -> tuple[float, float]:
        return mean_std(list(self.scores().values()))

    def written(self) -> str:
        """The same as tables have it: ``80.6 ± 1.8``, ``0.532 ± 0.021``; one run has no spread."""
        values = (value / self.main.scale for value in self.mean_std()[: len(self.runs)])
        return self.main.written(*values).removesuffix(" %")

    @property
    def device(self) -> str:
        """Where its runs were trained, or most of them."""
        return _commonest_device(self.runs)

    @property
    def parameters(self) -> int:
        """Of a network; a classical model has none that are counted."""
        return self.runs[0].metrics["parameters"]

    @property
    def peak_memory(self) -> int | None:
        """The most bytes that a run of it held; none where that was not measured."""
        sizes = [size for run in self.runs if (size := run.metrics.get("peak_memory")) is not None]
        return max(sizes) if len(sizes) == len(self.runs) else None

    @property
    def test_to_train(self) -> float:
        """Test graphs over training graphs, over all runs: folds are not all of one size."""
        test, train = (sum(self.metrics[f"{part}_graphs"]) for part in ("test", "train"))
        return test / train


def _commonest_device(runs: Iterable[RunRecord]) -> str:
    return Counter(str(run.machine) for run in runs).most_common(1)[0][0]


def shared_seeds(cells: Sequence[CellResult]) -> tuple[int, ...]:
    """The seeds that all of these have finished, in the order of the first."""
    return tuple(s for s in cells[0].seeds if all(s in c.seeds for c in cells)) if cells else ()


@dataclass(frozen=True)
class Results:
    """Finished cells, and notes on the data sets."""

    cells: Sequence[CellResult] = ()
    #: For each data set, its size (``data``) and information gain (``gain``), if measured.
    notes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    #: Whether this is the short version, whose numbers say nothing about the models.
    quick: bool = False
    commands: Sequence[str] = ()  #: the command lines that asked for the runs, if they were kept

    def find(self, dataset: str, architecture: Model, members: int = 1) -> CellResult | None:
        wanted = (dataset, architecture, members)
        found = (c for c in self.cells if (c.dataset, c.architecture, c.protocol.members) == wanted)
        return next(found, None)

    @property
    def device(self) -> str | None:
        runs = [run for cell in self.cells for run in cell.runs]
        return _commonest_device(runs) if runs else None

    @property
    def datasets(self) -> list[str]:
        """The data sets, in the order in which they first appear."""
        return list(dict.fromkeys([*self.notes, *(cell.dataset for cell in self.cells)]))

    def to_json(self) -> dict[str, Any]:
        """All of it, small: what runs share is written once, metrics are columns."""
        environments: list[Any] = []
        protocols: list[Any] = []

        def number(value: Any, known: list[Any]) -> int:
            if value not in known:
                known.append(value)
            return known.index(value)

        cells = []
        for cell in self.cells:
            protocol = asdict(cell.protocol) | {"fractions": list(cell.protocol.fractions)}
            del protocol["seeds"]
            ran_on = [asdict(Environment(run.versions, run.machine)) for run in cell.runs]
            entry = {
                "dataset": cell.dataset,
                "fingerprint": cell.key.fingerprint,
                "model": cell.model,
                "architecture": asdict(cell.architecture),
                "protocol": number(protocol, protocols),
                "seeds": list(cell.seeds),
                "metrics": {key: list(values) for key, values in cell.metrics.items()},
                "environments": [number(one, environments) for one in ran_on],
            }
            beside = {"layers": cell.key.layers, "splits": cell.key.splits}
            cells.append(entry | {name: value for name, value in beside.items() if value})
        return {
            "format": FORMAT,
            "quick": self.quick,
            "environments": environments,
            "protocols": protocols,
            "facts": {name: dict(notes) for name, notes in self.notes.items()},
            "cells": cells,
        }

    @classmethod
    def from_json(cls, path: Path) -> Results:
        """Read what :meth:`to_json` gave; what is damaged is one sentence that says where."""
        content = read_json(path)
        if content.get("format") != FORMAT:
            raise LookHopsError(f"{path}: not results of LookHops ({FORMAT}).")
        try:
            file = read(ResultsFile, content)
            for name, notes in file.facts.items():
                with located(f"facts.{name}"):
                    for kind, value in notes.items():
                        check_note(kind, value)
            cells = []
            for i, cell in enumerate(file.cells):
                with located(f"cells[{i}] ({cell.model} on {cell.dataset})"):
                    cells.append(cell.result(file))
            return cls(cells, file.facts, file.quick)
        except LookHopsError as error:
            text = str(error).rstrip(".")
            raise LookHopsError(f"{path}: damaged, {text}; export it again.") from error


@dataclass(frozen=True)
class Environment:
    """What many runs of a file share."""

    versions: Mapping[str, str]
    machine: Machine


@dataclass(frozen=True)
class CellEntry:
    """A cell of a file: ``protocol`` and ``environments`` are positions in the file's lists."""

    dataset: str
    fingerprint: str
    model: str
    architecture: Mapping[str, Any]
    protocol: Count
    seeds: Sequence[int]
    metrics: Mapping[str, Sequence[Any]]
    environments: Sequence[Count]
    layers: str | None = None
    splits: str | None = None

    def result(self, file: ResultsFile) -> CellResult:
        """The cell, its records checked one by one."""
        count = len(self.seeds)
        if not count or len(set(self.seeds)) < count:
            raise LookHopsError("seeds must be at least one, each once")
        for name, column in {**self.metrics, "environments": self.environments}.items():
            if len(column) != count:
                raise LookHopsError(f"{name} has not one value for each of {count} seeds")
        runs = []
        for i, seed in enumerate(self.seeds):
            shared = asdict(_numbered(file.environments, self.environments[i], "environments"))
            metrics = {name: column[i] for name, column in self.metrics.items()}
            with located(f"seed {seed}"):
                runs.append(RunRecord.from_dict({"seed": seed, "metrics": metrics, **shared}))
        protocol = _numbered(file.protocols, self.protocol, "protocols")
        model = read_model(self.architecture)
        key = RunKey(self.fingerprint, model, protocol, self.layers, self.splits)
        return CellResult(self.dataset, self.model, key, tuple(runs))


@dataclass(frozen=True)
class ResultsFile:
    """The JSON file of results."""

    format: str
    quick: bool
    environments: Sequence[Environment]
    protocols: Sequence[Protocol]
    facts: Mapping[str, Mapping[str, Any]]
    cells: Sequence[CellEntry]


def _numbered(entries: Sequence[Any], number: int, name: str) -> Any:
    if number >= len(entries):
        raise LookHopsError(f"the file has no {name}[{number}]")
    return entries[number]


def check_note(kind: str, value: Any) -> Any:
    """The value of a note, or a sentence that says what is wrong with it."""
    if kind == "graphs":
        check_graph_counts(value, kind)
    elif kind in NOTES:
        read(NOTES[kind], value, kind)
    elif kind.startswith("command"):
        read(str, value, kind)
    if kind == "gain" and not 0 < len(value["k"]) == len(value["gain"]):
        raise LookHopsError("gain has not one number for each k")
    return value


def export(results: Results, path: Path) -> None:
    """Write results as the file's name says: all runs as CSV or JSON, a summary otherwise."""
    check_suffix(path)
    if path.suffix == ".json":
        write_text(path, compact_json(results.to_json()))
    elif path.suffix == ".csv":
        write_text(path, to_csv(run_rows(results)))
    else:
        table = summary_table(results)
        write_text(path, table.markdown() if path.suffix == ".md" else table.latex())


def check_suffix(path: Path) -> None:
    """Say early that a kind of file is not known."""
    if path.suffix not in SUFFIXES:
        raise LookHopsError(f"{path}: results are exported as {', '.join(SUFFIXES)}.")


def compact_json(value: Mapping[str, Any]) -> str:
    """JSON with a line for each entry of its lists: small, and a change shows where it is."""

    def entry(name: str, content: Any) -> str:
        if isinstance(content, list) and content:
            lines = ",\n".join("  " + json.dumps(each, ensure_ascii=False) for each in content)
            return f" {json.dumps(name)}: [\n{lines}\n ]"
        return f" {json.dumps(name)}: {json.dumps(content, ensure_ascii=False)}"

    return "{\n" + ",\n".join(entry(name, content) for name, content in value.items()) + "\n}\n"


def run_rows(results: Results) -> list[dict[str, Any]]:
    """One row a run: which it is, its metrics, where it ran; of members only how many there are."""
    return [
        {
            "dataset": cell.dataset,
            "model": cell.model,
            "seed": run.seed,
            **run.metrics,
            "members": cell.protocol.members,
            "architecture": canonical(cell.architecture),
            "protocol": canonical(cell.protocol),
            "device": run.machine.device,
            "quick": results.quick,
        }
        for cell in results.cells
        for run in cell.runs
    ]


def summary_table(results: Results) -> Table:
    """Models by data sets: mean and standard deviation of the main metric of the test part."""
    datasets = list(dict.fromkeys(cell.dataset for cell in results.cells))
    models = list(dict.fromkeys(cell.model for cell in results.cells))
    found = {(cell.model, cell.dataset): cell for cell in results.cells}
    rows = []
    for model in models:
        cells = [found.get((model, dataset)) for dataset in datasets]
        rows.append([[model], *([c.written()] if c else [NONE] for c in cells)])
    titles = " or ".join(dict.fromkeys(cell.main.title for cell in results.cells)) or "accuracy"
    mark = " (quick version)" if results.quick else ""
    return Table([f"model{mark}", *datasets], rows, name="summary", title=f"Test {titles}{mark}")
