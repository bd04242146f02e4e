"""Results: what tables, figures and claims are made from, out of a store or a JSON file."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from lookhops.errors import LookHopsError
from lookhops.experiments.plan import Cell, Key, architecture_from, protocol_from
from lookhops.experiments.statistics import mean_std
from lookhops.experiments.store import Store
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
    """

    dataset: str
    model: str
    architecture: Architecture
    protocol: Protocol
    fingerprint: str
    seeds: tuple[int, ...]
    metrics: Mapping[str, Sequence[Any]]
    environments: Sequence[Mapping[str, Any]]

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
        """Read what :meth:`to_json` gave."""
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            if content.get("format") != FORMAT:
                raise LookHopsError(f"{path}: not results of LookHops ({FORMAT}).")
            cells = [
                CellResult(
                    dataset=cell["dataset"],
                    model=cell["model"],
                    architecture=architecture_from(json.dumps(cell["architecture"])),
                    protocol=protocol_from(json.dumps(content["protocols"][cell["protocol"]])),
                    fingerprint=cell["fingerprint"],
                    seeds=tuple(cell["seeds"]),
                    metrics=cell["metrics"],
                    environments=[content["environments"][e] for e in cell["environments"]],
                )
                for cell in content["cells"]
            ]
            return cls(cells, content["facts"], bool(content["quick"]))
        except OSError as error:
            raise LookHopsError(f"{path}: cannot be read ({error.strerror}).") from error
        except (json.JSONDecodeError, UnicodeDecodeError) as error:
            raise LookHopsError(f"{path}: not JSON ({error}).") from error
        except (KeyError, TypeError, IndexError, AttributeError) as error:
            raise LookHopsError(f"{path}: damaged ({error!r}).") from error


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
            found.append(_cell_result(cell, key.fingerprint, finished))
    return found


def _cell_result(cell: Cell, fingerprint: str, rows: list[dict[str, Any]]) -> CellResult:
    names = rows[0]["metrics"]
    return CellResult(
        dataset=cell.dataset,
        model=cell.model,
        architecture=cell.architecture,
        protocol=cell.protocol,
        fingerprint=fingerprint,
        seeds=tuple(row["seed"] for row in rows),
        metrics={name: [_short(row["metrics"].get(name)) for row in rows] for name in names},
        environments=[{"versions": row["versions"], "machine": row["machine"]} for row in rows],
    )


def _protocol(protocol: Protocol) -> dict[str, Any]:
    values = asdict(protocol)
    values.pop("seeds")
    return {**values, "fractions": list(protocol.fractions)}


def _short(value: Any) -> Any:
    """A number with six digits, in a store's results as in a file's: the pages are the same."""
    return float(f"{value:.6g}") if isinstance(value, float) else value
