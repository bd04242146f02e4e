"""Results: what tables, figures and claims are made from, out of a store or a JSON file."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from lookhops.errors import LookHopsError
from lookhops.experiments.checks import (
    COUNT,
    LIST,
    OBJECT,
    TEXT,
    WHOLE,
    Fits,
    check_entries,
    check_fact,
    check_options,
    check_run,
    naming,
    shown,
)
from lookhops.experiments.keys import (
    Key,
    architecture_from,
    canonical,
    key_text,
    layers_of,
    protocol_from,
)
from lookhops.experiments.plan import Cell
from lookhops.experiments.statistics import mean_std
from lookhops.experiments.store import Store
from lookhops.files import read_json
from lookhops.graphs import Graphs
from lookhops.nn import Architecture
from lookhops.training import Protocol

FORMAT = "lookhops-results-1"


@dataclass(frozen=True)
class CellResult:
    """The finished runs of a cell.

    Args:
        dataset, model, architecture, protocol: Which cell.
        fingerprint: Of the graphs.
        seeds: The seeds that are finished.
        metrics: Each metric's values, in the order of the seeds.
        environments: Versions and machine of each run, in the order of the seeds.
        layers: Digest of its layers, where they are not ours: it tells those of one name apart.
    """

    dataset: str
    model: str
    architecture: Architecture
    protocol: Protocol
    fingerprint: str
    seeds: tuple[int, ...]
    metrics: Mapping[str, Sequence[Any]]
    environments: Sequence[Mapping[str, Any]]
    layers: str | None = None

    @property
    def key(self) -> Key:
        """What its runs are stored under."""
        network = key_text(self.architecture, self.layers)
        return Key(self.fingerprint, network, canonical(self.protocol))

    def of_seeds(self, seeds: Sequence[int]) -> CellResult:
        """The same of these seeds only, in their order."""
        places = [self.seeds.index(seed) for seed in seeds]
        return replace(
            self,
            seeds=tuple(seeds),
            metrics={name: [values[i] for i in places] for name, values in self.metrics.items()},
            environments=[self.environments[i] for i in places],
        )

    def accuracy(self) -> dict[int, float]:
        """Test accuracy of each seed, in per cent."""
        return {s: 100 * a for s, a in zip(self.seeds, self.metrics["accuracy"], strict=True)}

    def mean_std(self) -> tuple[float, float]:
        """Mean and sample standard deviation of the test accuracy, in per cent."""
        return mean_std(list(self.accuracy().values()))

    @property
    def device(self) -> str:
        """Where its runs were trained, or most of them."""
        return Counter(device_of(e) for e in self.environments).most_common(1)[0][0]

    @property
    def test_to_train(self) -> float:
        """Test graphs over training graphs."""
        return self.metrics["test_graphs"][0] / self.metrics["train_graphs"][0]


def device_of(environment: Mapping[str, Any]) -> str:
    """In words, what a run was trained on."""
    machine = environment["machine"]
    return f"a CPU ({machine['cores']} cores)" if machine["device"] == "cpu" else machine["device"]


@dataclass(frozen=True)
class Results:
    """Finished cells, and what else is known of the data sets.

    Args:
        cells: The cells.
        facts: For each data set, its size (``data``) and information gain (``gain``), if measured.
        quick: Whether this is the short version, whose numbers say nothing about the models.
    """

    cells: Sequence[CellResult] = ()
    facts: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    quick: bool = False

    def find(self, dataset: str, architecture: Architecture) -> CellResult | None:
        """The cell of a model on a data set, if any of its runs is finished."""
        for cell in self.cells:
            if (cell.dataset, cell.architecture) == (dataset, architecture):
                return cell
        return None

    @property
    def device(self) -> str | None:
        """What most of the runs were trained on."""
        devices = Counter(device_of(e) for cell in self.cells for e in cell.environments)
        return devices.most_common(1)[0][0] if devices else None

    @property
    def datasets(self) -> list[str]:
        """The data sets, in the order in which they first appear."""
        return list(dict.fromkeys([*self.facts, *(cell.dataset for cell in self.cells)]))

    # ---------------------------------------------------------------- JSON

    def to_json(self) -> dict[str, Any]:
        """All of it, small: environments and protocols are written once."""
        environments: list[Any] = []
        protocols: list[Any] = []

        def number(value: Any, known: list[Any]) -> int:
            if value not in known:
                known.append(value)
            return known.index(value)

        cells = [
            {
                "dataset": cell.dataset,
                "fingerprint": cell.fingerprint,
                "model": cell.model,
                "architecture": asdict(cell.architecture),
                "protocol": number(_protocol(cell.protocol), protocols),
                "seeds": list(cell.seeds),
                "metrics": {key: list(values) for key, values in cell.metrics.items()},
                "environments": [number(dict(e), environments) for e in cell.environments],
                **({"layers": cell.layers} if cell.layers else {}),
            }
            for cell in self.cells
        ]
        return {
            "format": FORMAT,
            "quick": self.quick,
            "environments": environments,
            "protocols": protocols,
            "facts": {name: dict(facts) for name, facts in self.facts.items()},
            "cells": cells,
        }

    @classmethod
    def from_json(cls, path: Path) -> Results:
        """Read what :meth:`to_json` gave; what is damaged is one sentence that says where."""
        content = read_json(path)
        if content.get("format") != FORMAT:
            raise LookHopsError(f"{path}: not results of LookHops ({FORMAT}).")
        try:
            check_entries(content, PARTS, "the file")
            for name, facts in content["facts"].items():
                with naming(f"the facts of {name}"):
                    check_entries(facts, {}, "facts")
                    for kind, value in facts.items():
                        check_fact(kind, value)
            cells = []
            for number, cell in enumerate(content["cells"], start=1):
                with naming(f"cell {number}"):
                    check_entries(cell, CELL, "cell")
                with naming(f"{cell['model']} on {cell['dataset']} (cell {number})"):
                    cells.append(_read_cell(cell, content))
            return cls(cells, content["facts"], content["quick"])
        except LookHopsError as error:
            text = str(error).rstrip(".")
            raise LookHopsError(f"{path}: damaged, {text}; export it again.") from error


PARTS: Mapping[str, Fits] = {
    "quick": ("true or false", lambda value: isinstance(value, bool)),
    **dict.fromkeys(("environments", "protocols", "cells"), LIST),
    "facts": OBJECT,
}
CELL: Mapping[str, Fits] = {
    **dict.fromkeys(("dataset", "fingerprint", "model"), TEXT),
    **dict.fromkeys(("architecture", "metrics"), OBJECT),
    **dict.fromkeys(("seeds", "environments"), LIST),
    "protocol": COUNT,
}


def _read_cell(cell: Mapping[str, Any], content: Mapping[str, Any]) -> CellResult:
    """A cell of a file, its entries being of their kinds, checked run by run."""
    seeds, metrics = cell["seeds"], cell["metrics"]
    if not seeds or not all(map(WHOLE[1], seeds)) or len(set(seeds)) < len(seeds):
        raise LookHopsError("seeds are not whole numbers, at least one, each once")
    for name, column in {**metrics, "environments": cell["environments"]}.items():
        if not isinstance(column, list) or len(column) != len(seeds):
            raise LookHopsError(f"{name} has not one value for each of {len(seeds)} seeds")
    environments = [_numbered(content, "environments", i) for i in cell["environments"]]
    for i, (seed, environment) in enumerate(zip(seeds, environments, strict=True)):
        with naming(f"seed {seed}"):
            check_entries(environment, {"versions": OBJECT, "machine": OBJECT}, "environment")
            run = {name: column[i] for name, column in metrics.items()}
            check_run(run, environment["versions"], environment["machine"])
    protocol = _numbered(content, "protocols", cell["protocol"])
    check_entries({"layers": "", **cell}, {"layers": TEXT}, "cell")
    check_options(Architecture, cell["architecture"])
    check_options(Protocol, protocol)
    return CellResult(
        dataset=cell["dataset"],
        model=cell["model"],
        architecture=architecture_from(json.dumps(cell["architecture"])),
        protocol=protocol_from(json.dumps(protocol)),
        fingerprint=cell["fingerprint"],
        seeds=tuple(seeds),
        metrics=metrics,
        environments=environments,
        layers=cell.get("layers"),
    )


def _numbered(content: Mapping[str, Any], part: str, number: Any) -> Any:
    if not COUNT[1](number) or number >= len(content[part]):
        raise LookHopsError(f"the file has no number {shown(number)} among its {part}")
    return content[part][number]


def collect(
    cells: Sequence[Cell], source: Callable[[str], Graphs], store: Store
) -> list[CellResult]:
    """The finished runs of the cells, from a store."""
    rows: dict[Key, list[dict[str, Any]]] = {}
    for row in store.rows():
        key = Key(row["fingerprint"], row["architecture"], row["protocol"])
        rows.setdefault(key, []).append(row)
    found = []
    for cell in cells:
        key = cell.key(source(cell.dataset))
        mine = {row["seed"]: row for row in rows.get(key, [])}
        finished = [mine[seed] for seed in cell.protocol.seeds if seed in mine]
        if finished:
            found.append(cell_result(cell, key, finished))
    return found


def cell_result(cell: Cell, key: Key, rows: Sequence[Mapping[str, Any]]) -> CellResult:
    """The runs of a cell, from rows of a store."""
    return CellResult(
        dataset=cell.dataset,
        model=cell.model,
        architecture=cell.architecture,
        protocol=cell.protocol,
        fingerprint=key.fingerprint,
        seeds=tuple(row["seed"] for row in rows),
        metrics={
            name: [_short(row["metrics"].get(name)) for row in rows] for name in rows[0]["metrics"]
        },
        environments=[{"versions": row["versions"], "machine": row["machine"]} for row in rows],
        layers=layers_of(key.architecture),
    )


def _protocol(protocol: Protocol) -> dict[str, Any]:
    values = asdict(protocol)
    values.pop("seeds")
    return {**values, "fractions": list(protocol.fractions)}


def _short(value: Any) -> Any:
    """A number with six digits, in a store's results as in a file's: the pages are the same."""
    return float(f"{value:.6g}") if isinstance(value, float) else value
