"""A fair comparison: any models on any graphs, over the same splits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from lookhops.errors import LookHopsError
from lookhops.experiments.plan import cross, parse_models
from lookhops.experiments.results import Results, collect
from lookhops.experiments.runners import Tell, run_local
from lookhops.experiments.statistics import (
    Pair,
    by_mean,
    cliques,
    compare_pairs,
    mean_ranks,
    mean_std,
)
from lookhops.experiments.store import Store
from lookhops.graphs import Graphs
from lookhops.nn import Architecture
from lookhops.tables import Table
from lookhops.training import Protocol
from lookhops.words import counted, plus_minus, signed

ALPHA = 0.05


@dataclass(frozen=True)
class Comparison:
    """Models compared on one data set.

    Args:
        dataset: Its name.
        results: All finished runs.
        scores: Test accuracy in per cent of each model on each shared split, best mean first.
        seeds: The seeds of the splits that all models have.
        pairs: All pairs of models: paired differences, intervals, tests.
        ranks: Mean rank of each model over the splits.
        groups: Models that do not differ significantly, as neighbours in the order of ranks.
    """

    dataset: str
    results: Results
    scores: Mapping[str, list[float]]
    seeds: tuple[int, ...]
    pairs: list[Pair]
    ranks: Mapping[str, float]
    groups: list[list[str]]

    def models_table(self) -> Table:
        """The models, best mean first; every number is over the splits that all of them share."""
        cells = {cell.model: cell for cell in self.results.cells}
        rows, records, count = [], [], len(self.seeds)
        for name in self.scores:
            metrics = cells[name].of_seeds(self.seeds).metrics
            parameters, seconds = metrics["parameters"][0], sum(metrics["seconds"]) / count
            mean, std = mean_std(self.scores[name])
            validation = 100 * sum(metrics["val_accuracy"]) / count
            accuracy = f"**{plus_minus((mean, std), count)}**"
            texts = (name, accuracy, f"{validation:.1f}", f"{self.ranks[name]:.1f}")
            rows.append([[text] for text in (*texts, f"{parameters:,}", f"{seconds:.1f} s")])
            others = {
                key: 100 * sum(metrics[key]) / count
                for key in ("balanced_accuracy", "macro_f1", "auroc")
                if None not in metrics[key]
            }
            records.append(
                {"model": name, "mean": mean, "std": std, "validation": validation, **others}
                | {"rank": self.ranks[name], "parameters": parameters}
                | {"seconds_a_seed": seconds, "seeds": count}
            )
        head = ["model", "accuracy, %", "validation, %", "mean rank", "parameters", "time a seed"]
        title = f"{self.dataset}: {counted(count, 'seed')}"
        return Table("models", title, head, rows, records, self._left_out())

    def _left_out(self) -> str:
        """In words, finished runs on splits that not all models have."""
        more = {cell.model: len(cell.seeds) for cell in self.results.cells}
        said = [f"{name} has {n}" for name, n in more.items() if n > len(self.seeds)]
        if not said:
            return ""
        return f"Only the splits that all models have finished are counted; {', '.join(said)}."

    def pairs_table(self) -> Table:
        """The paired differences."""
        rows, records = [], []
        for pair in self.pairs:
            e = pair.difference
            verdict = "differ" if pair.adjusted_p < ALPHA else "not decidable"
            rows.append(
                [
                    [f"{pair.first} against {pair.second}"],
                    [f"**{signed(e.mean)}**"],
                    [f"{signed(e.low)} to {signed(e.high)}"],
                    [f"{e.p:.2g}"],
                    [f"{pair.adjusted_p:.2g}"],
                    [verdict],
                ]
            )
            records.append(
                {"first": pair.first, "second": pair.second, "difference": e.mean}
                | {"low": e.low, "high": e.high, "p": e.p, "adjusted_p": pair.adjusted_p}
            )
        head = ["pair", "difference", "95% interval", "p", "Holm's p", "at 5%"]
        note = (
            "Percentage points, paired over the splits that the models share; corrected resampled "
            "t-test of Nadeau and Bengio; p adjusted for all pairs by Holm's method."
        )
        return Table("pairs", "Paired differences", head, rows, records, note)

    def to_json(self) -> dict[str, Any]:
        """All of it, as JSON can hold it."""
        models = {r["model"]: r for r in self.models_table().records}
        architectures = {cell.model: asdict(cell.architecture) for cell in self.results.cells}
        return {
            "dataset": self.dataset,
            "seeds": list(self.seeds),
            "models": [
                {**models[name], "values": values, "architecture": architectures[name]}
                for name, values in self.scores.items()
            ],
            "pairs": list(self.pairs_table().records),
            "not_different": self.groups,
        }


def compare(
    graphs: Graphs,
    models: Mapping[str, Architecture] | Sequence[str],
    protocol: Protocol | None = None,
    *,
    store: Store | Path | str,
    device: str = "auto",
    tell: Tell = lambda event: None,
) -> Comparison:
    """Compare models on graphs; what the store has is not trained again.

    Args:
        graphs: Graphs with classes.
        models: Names such as ``"licheb+lookhops"``, or architectures under any names. A layer of
            your own takes part once :func:`~lookhops.nn.registry.register_convolution` knows it.
        protocol: How to train; by default the paper's, with its ten seeds.
        store: Where finished runs are kept.
        device: ``cpu``, ``cuda`` or ``auto``.
        tell: Called with each thing worth telling.
    """
    if not isinstance(models, Mapping):
        models = parse_models(models if isinstance(models, str) else ",".join(models))
    cells = cross([graphs.name], models.items(), protocol or Protocol())
    if not isinstance(store, Store):
        with Store(store) as opened:
            return compare(graphs, models, protocol, store=opened, device=device, tell=tell)
    outcome = run_local(cells, lambda name: graphs, store, device=device, tell=tell)
    if outcome.failures:
        raise LookHopsError(outcome.failures[0])
    return comparison(graphs.name, Results(collect(cells, lambda name: graphs, store)))


def comparison(dataset: str, results: Results) -> Comparison:
    """Compare the models of finished cells over the splits that they share."""
    if not results.cells:
        raise LookHopsError("No run is finished yet: there is nothing to compare.")
    first = results.cells[0]
    seeds = tuple(s for s in first.seeds if all(s in cell.seeds for cell in results.cells))
    if not seeds:
        raise LookHopsError("The models have no finished split in common yet.")
    tables = {cell.model: cell.accuracy() for cell in results.cells}
    scores = {name: [table[seed] for seed in seeds] for name, table in tables.items()}
    scores = {name: scores[name] for name in by_mean(scores)}
    pairs = compare_pairs(scores, first.test_to_train) if len(seeds) > 1 else []
    ranks = mean_ranks(scores)
    order = sorted(ranks, key=lambda name: ranks[name])
    return Comparison(
        dataset, results, scores, seeds, pairs, ranks, cliques(order, pairs) if pairs else []
    )
