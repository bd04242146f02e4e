"""Protocols of a comparison by name: the paper's, and the fair one of Errica et al."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

import numpy as np

from lookhops.core.errors import LookHopsError
from lookhops.core.options import Protocol, splits_in_words
from lookhops.core.words import counted, joined
from lookhops.graphs import Graphs
from lookhops.learners import Model, learner_of, recommend
from lookhops.learners.registry import UNDECIDED
from lookhops.runs.plan import Cell, Entry, parse_entry
from lookhops.runs.record import RunRecord
from lookhops.runs.results import CellResult
from lookhops.runs.store import Store
from lookhops.sources.splits import SplitPlan
from lookhops.tasks import task_of
from lookhops.training.runs import draw_splits

#: What the fair protocol has where nothing else is said, as Errica et al. have it.
FOLDS, MEMBERS = 10, 3
NAMES = ("paper", "fair")
#: Options of models, and the values among which a validation part chooses.
Grid = Mapping[str, Sequence[str]]


def named_protocol(
    name: str | None, given: Protocol, folds_given: bool = False, members: int | None = None
) -> Protocol:
    """The protocol of this name, with the other options as they were given.

    Args:
        name: ``paper``: seeds that split at random, 80 % to train on. ``fair``: k folds, each the
            test part once; a part of the rest to stop by and to choose by; several initialisations,
            whose scores are averaged. None: as given.
        given: The options.
        folds_given: Whether the folds are read from a file.
        members: Networks for each split; by default those of ``given``, or 3 of the fair protocol.
    """
    if members is not None:
        given = replace(given, members=members)
    if name is None:
        return given
    if name == "paper":
        if given.split not in ("auto", "random") or given.folds or given.members > 1 or folds_given:
            raise LookHopsError(
                "The paper's protocol splits at random and has one network for each split: leave "
                "out --split, --folds, --splits and --members, or --protocol paper."
            )
        return replace(given, split="random")
    if name == "fair":
        folds = None if folds_given else given.folds or FOLDS
        several = given.members > 1 or members is not None
        return replace(given, folds=folds, members=given.members if several else MEMBERS)
    raise LookHopsError(f"There is no protocol {name!r}; known are {' and '.join(NAMES)}.")


def parse_grid(text: str | None) -> dict[str, list[str]]:
    """A grid from text: ``hidden=64,128/k=1,2`` is four combinations."""
    grid: dict[str, list[str]] = {}
    for option in (text or "").split("/") if text else ():
        name, equals, values = option.strip().partition("=")
        found = [value.strip() for value in values.split(",") if value.strip()]
        if not equals or not found or name in grid:
            raise LookHopsError(
                f"A grid is options with their values, each option once, such as "
                f"hidden=64,128/k=1,2; not {text!r}."
            )
        grid[name] = list(dict.fromkeys(found))
    return grid


@dataclass(frozen=True)
class Contest:
    """Models on the same splits, each perhaps the best of several by validation."""

    graphs: Graphs
    plan: SplitPlan  #: the splits, and how models are trained
    #: For each row of the table, the models by name among which a split's validation part chooses.
    rows: Mapping[str, Mapping[str, Entry]]
    grid: Grid = field(default_factory=dict)  #: what they differ in
    name: str | None = None  #: of the protocol, if it has one
    recommended: str = ""  #: what ``recommended`` stands for, in words, where a row has that name

    @classmethod
    def of(
        cls,
        graphs: Graphs,
        models: Mapping[str, Entry | Model],
        plan: SplitPlan,
        grid: Grid | None = None,
        name: str | None = None,
    ) -> Contest:
        """The contest of these models, named as commands do it where a grid applies to them."""
        if grid and name != "fair":
            raise LookHopsError("A grid is searched in the fair protocol: --protocol fair.")
        rows = {row: {row: m if isinstance(m, Entry) else Entry(m)} for row, m in models.items()}
        if grid:
            rows = {row: _combinations(row, grid) for row in rows}
            for option, values in grid.items():
                if not any(option in _options(v) for names in rows.values() for v in names):
                    parse_entry(f"{next(iter(rows))}/{option}={values[0]}")  # says what is wrong
                    raise LookHopsError(f"No model takes the option {option} of the grid.")
        task, said = task_of(graphs), ""
        if any(entry.model == UNDECIDED for each in rows.values() for entry in each.values()):
            best = recommend(graphs, task, plan.training_graphs)
            said = best.said
            for each in rows.values():
                for variant, entry in each.items():
                    if entry.model == UNDECIDED:
                        each[variant] = replace(entry, model=best.learner.model)
        draw_splits(graphs, task, plan.protocol, plan)
        for each in rows.values():
            learner_of(next(iter(each.values())).model).check(graphs, task)
        return cls(graphs, plan, rows, grid or {}, name, said)

    def run(
        self,
        train: Callable[[Sequence[Cell]], None],
        store: Store,
        chosen: Mapping[str, Mapping[int, str]] | None = None,
    ) -> list[CellResult]:
        """Train what the store lacks; the finished runs of each row, perhaps with chosen models."""
        chosen, seeds = {**(chosen or {})}, self.plan.protocol.seeds
        tried = {
            row: [self._cell(name, entry, seeds, members=1) for name, entry in variants.items()]
            for row, variants in self.rows.items()
            if len(variants) > 1 and row not in chosen
        }
        if tried:
            train([cell for cells in tried.values() for cell in cells])
        chosen |= {row: _choose(store.collect(cells), len(cells)) for row, cells in tried.items()}
        cells = {row: self._chosen_cells(row, chosen.get(row)) for row in self.rows}
        train([cell for of_row in cells.values() for cell in of_row])
        found = [self._result(row, store.collect(of_row)) for row, of_row in cells.items()]
        return [result for result in found if result is not None]

    def _cell(self, name: str, entry: Entry, seeds: Sequence[int], **options: Any) -> Cell:
        protocol = replace(entry.protocol(self.plan.protocol), seeds=tuple(seeds), **options)
        return Cell(self.graphs, name, entry.model, protocol, self.plan)

    def _chosen_cells(self, row: str, chosen: Mapping[int, str] | None) -> list[Cell]:
        """The cells of a row: its model on all splits, or each chosen one on its own."""
        cells = []
        for name, entry in self.rows[row].items():
            every = self.plan.protocol.seeds
            seeds = [seed for seed in every if chosen is None or chosen.get(seed) == name]
            if seeds:
                cells.append(self._cell(name, entry, seeds))
        return cells

    def _result(self, row: str, cells: Sequence[CellResult]) -> CellResult | None:
        if not cells:
            return None
        runs = {}
        for cell in cells:
            picked = {f"chosen_{k}": v for k, v in _options(cell.model).items() if k in self.grid}
            for run in cell.runs:
                run = mean_of_members(run) if self.name == "fair" else run
                runs[run.seed] = run.with_metrics(**picked)
        order = [seed for seed in self.plan.protocol.seeds if seed in runs]
        return replace(cells[0], model=row, runs=tuple(runs[seed] for seed in order))

    def about(self) -> dict[str, Any]:
        """What was done: the protocol's name, in words, and the grid."""
        grid = {"grid": {option: list(values) for option, values in self.grid.items()}}
        return {"name": self.name, "said": self.said(), **(grid if self.grid else {})}

    def said(self) -> str:
        protocol = self.plan.protocol
        drawn = splits_in_words(protocol.split, protocol.folds)
        stop = (
            f"Training stops after {counted(protocol.patience, 'epoch')} without a lower "
            f"validation loss, at {protocol.max_epochs} at the latest."
        )
        if self.name != "fair":
            paper = "The paper's protocol: " if self.name == "paper" else ""
            return f"{paper}{counted(len(protocol.seeds), 'split')}, {drawn}. {stop}"
        sizes = [f"{counted(len(values), 'value')} of {name}" for name, values in self.grid.items()]
        among = f" and to choose among {joined(sizes)}" if sizes else ""
        members = counted(protocol.members, "initialisation")
        of_members = f"means over {members}" if protocol.members > 1 else f"of {members}"
        return (
            f"The fair protocol of Errica et al. (2020): {drawn}; a part of the rest is held out "
            f"to stop{among}. Scores are {of_members}. {stop}"
        )


def _combinations(row: str, grid: Grid) -> dict[str, Entry]:
    takes = {option: values for option, values in grid.items() if _takes(row, option, values)}
    names = (
        "/".join([row, *map("=".join, zip(takes, values, strict=True))])
        for values in product(*takes.values())
    )
    return {name: parse_entry(name) for name in names}


def _takes(row: str, option: str, values: Sequence[str]) -> bool:
    """Whether a model takes an option; where it takes some of the values, the others are wrong."""
    errors = []
    for value in values:
        try:
            parse_entry(f"{row}/{option}={value}")
        except LookHopsError as error:
            errors.append(error)
    if 0 < len(errors) < len(values):
        raise errors[0]
    return not errors


def _options(name: str) -> dict[str, str]:
    pairs = (option.partition("=") for option in name.split("/")[1:])
    return {option: value for option, equals, value in pairs if equals}


def _choose(cells: Sequence[CellResult], count: int) -> dict[int, str]:
    """For each split on which all models are finished, the one that validation says is best."""
    scores: dict[int, dict[str, float]] = {}
    for cell in cells:
        sign = 1 if cell.main.higher_is_better else -1
        for run in cell.runs:
            value = run.metrics[f"val_{cell.main.name}"]
            score = -np.inf if value is None else sign * value
            scores.setdefault(run.seed, {})[cell.model] = score
    complete = {seed: found for seed, found in scores.items() if len(found) == count}
    return {seed: max(found, key=found.__getitem__) for seed, found in complete.items()}


def mean_of_members(run: RunRecord) -> RunRecord:
    """The record with the means of its members' scores, in place of those of their average."""
    members = run.metrics.get("members")
    if not members:
        return run
    means = {}
    for name, first in members[0].items():
        if isinstance(first, float):
            values = [one[name] for one in members]
            means[name] = None if None in values else float(np.mean(values))
    return run.with_metrics(**means)
