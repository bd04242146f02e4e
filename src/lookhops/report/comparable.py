"""Which finished runs can be compared with which: those on the same splits of the same graphs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from lookhops.core.schema import read
from lookhops.core.words import QUICK_MARK, counted
from lookhops.models.folder import learner_in, run_records
from lookhops.report.folders import ModelFolder
from lookhops.runs.compare import Comparison, comparison
from lookhops.runs.plan import RunKey
from lookhops.runs.results import CellResult, Results
from lookhops.training import Protocol


@dataclass(frozen=True)
class Group:
    """Models that were tested on the same splits of the same graphs.

    Args:
        dataset: What the graphs are called.
        finished: All finished runs, each model under a name of its own.
        found: The comparison, over the splits that its models share; of models that share too few
            splits it has the others only.
        quick: Whether these are runs of the quick version, which say nothing about the models.
    """

    dataset: str
    finished: Sequence[CellResult]
    found: Comparison
    quick: bool = False

    @cached_property
    def cells(self) -> dict[str, CellResult]:
        """The models that are compared, best mean first, with the splits that they share."""
        found = {cell.model: cell for cell in self.found.results.cells}
        return {name: found[name].of_seeds(self.found.seeds) for name in self.found.scores}

    @property
    def best(self) -> CellResult:
        """The model with the best mean."""
        return next(iter(self.cells.values()))

    @cached_property
    def scores(self) -> dict[str, str]:
        """The main metric of each model, best first, as it is written: mean and spread."""
        unit = " %" if self.found.main.share else ""
        return {name: f"{cell.written()}{unit}" for name, cell in self.cells.items()}

    def mean(self, model: str) -> float:
        """The mean of the main metric of a model, as it is written."""
        return float(np.mean(self.found.scores[model]))

    @property
    def digits(self) -> int:
        """Digits after the point of scores and their differences."""
        return self.found.main.digits(self.mean(next(iter(self.found.scores))))

    @property
    def unit(self) -> str:
        """What differences are counted in."""
        return "points" if self.found.main.share else self.found.main.title

    @property
    def left_out(self) -> dict[str, str]:
        """Models of which runs are in no mean here, and how many runs."""
        found = {}
        for cell in self.finished:
            shown = len(self.found.seeds) if cell.model in self.found.scores else 0
            out = len(cell.seeds) - shown
            every = counted(len(cell.seeds), "finished run")
            if out:
                found[cell.model] = every if out == len(cell.seeds) else f"{out} of {every}"
        return found


def grouped(results: Results) -> list[Group]:
    """The finished runs, by what can be compared with what."""
    by_split: dict[Any, list[CellResult]] = {}
    for cell in results.cells:
        protocol = cell.protocol
        drawn = (protocol.fractions, protocol.split, protocol.folds, cell.key.splits)
        by_split.setdefault((cell.dataset, cell.key.fingerprint, drawn), []).append(cell)
    groups = []
    for (dataset, _, _), cells in by_split.items():
        named = _named_apart(cells)
        found = comparison(dataset, Results(_sharing(named)))
        quick = results.quick or dataset.endswith(QUICK_MARK)
        groups.append(Group(dataset, named, found, quick))
    return groups


def _named_apart(cells: Sequence[CellResult]) -> list[CellResult]:
    """The cells, those of one name told apart by the options in which they differ."""
    found = []
    for cell in cells:
        alike = [other for other in cells if other.model == cell.model]
        name = cell.model
        for part in ("architecture", "protocol"):
            options = [asdict(getattr(other, part)) for other in alike]
            for key, value in asdict(getattr(cell, part)).items():
                if key != "seeds" and any(other.get(key) != value for other in options):
                    name += f", {key.replace('_', ' ')} {value}"
        if any(other.key.layers != cell.key.layers for other in alike):
            name += f", layers {(cell.key.layers or 'unknown')[:8]}"
        found.append(replace(cell, model=name))
    return found


def _sharing(cells: Sequence[CellResult]) -> list[CellResult]:
    """The cells that share splits: one that has too few does not take them from the rest."""
    order = sorted(cells, key=lambda cell: -len(cell.seeds))
    chosen, shared = set(), set(order[0].seeds)
    for cell in order:
        common = shared & set(cell.seeds)
        if len(common) >= min(2, len(shared)):
            chosen.add(cell.model)
            shared = common
    return [cell for cell in cells if cell.model in chosen]


def cell_of(model: ModelFolder) -> CellResult:
    """A model's folder as a cell of results, called after its folder."""
    config = model.config
    key = RunKey(
        f"{config['data']['fingerprint']} {config['data']['splits']}",
        learner_in(config).model,
        read(Protocol, config["protocol"]),
    )
    return CellResult(config["data"]["name"], model.path.name, key, run_records(config))
