"""The outer splits: their test parts are opened once, when every search has ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from lookhops.core.errors import LookHopsError
from lookhops.core.options import RECOMMENDED
from lookhops.graphs import Graphs
from lookhops.runs.plan import Cell
from lookhops.runs.results import CellResult, collect
from lookhops.runs.runners import Tell, run_local
from lookhops.runs.store import Store
from lookhops.runs.tune.space import Candidate
from lookhops.sources.splits import SplitPlan


@dataclass(frozen=True)
class OuterScores:
    """The main metric of the test part of each outer split.

    Args:
        tuned: Of the configuration that the split's own search chose.
        recommended: Of the recommended model.
        test_to_train: Test graphs over training graphs.
    """

    tuned: tuple[float, ...]
    recommended: tuple[float, ...]
    test_to_train: float


def test_outer(
    graphs: Graphs,
    plan: SplitPlan,
    chosen: Mapping[int, Candidate],
    store: Path,
    device: str,
    tell: Tell,
) -> OuterScores:
    """Train the chosen configurations and the recommended model on the outer splits; test them.

    Args:
        graphs: The graphs.
        plan: The outer splits.
        chosen: The configuration of each, by seed.
        store: The file of finished runs: what it has is not trained again.
        device: ``cpu``, ``cuda`` or ``auto``.
        tell: Called with each thing worth telling.
    """
    seeds_of: dict[str, list[int]] = {}
    for seed, candidate in chosen.items():
        seeds_of.setdefault(candidate.name, []).append(seed)
    cells = [Cell(graphs.name, "recommended", RECOMMENDED, plan.protocol, plan)]
    for name, seeds in seeds_of.items():
        entry = chosen[seeds[0]].entry
        protocol = replace(entry.protocol(plan.protocol), seeds=tuple(seeds))
        cells.append(Cell(graphs.name, name, entry.model, protocol, plan))
    with Store(store) as opened:
        done = run_local(cells, lambda name: graphs, opened, device=device, tell=tell)
        if done.failures:
            raise LookHopsError(f"{done.failures[0]}; the same command tries again.")
        recommended, *tuned = collect(cells, lambda name: graphs, opened)
    scores = {seed: score for cell in tuned for seed, score in _scores(cell).items()}
    before = _scores(recommended)
    order = plan.protocol.seeds
    return OuterScores(
        tuple(scores[seed] for seed in order),
        tuple(before[seed] for seed in order),
        recommended.test_to_train,
    )


def _scores(cell: CellResult) -> dict[int, float]:
    return {seed: score / cell.main.scale for seed, score in cell.scores().items()}
