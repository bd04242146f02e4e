"""A fair comparison: any models on any graphs, over the same splits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from lookhops.core.errors import LookHopsError
from lookhops.core.options import parse_seeds, splits_in_words
from lookhops.core.paired import ALPHA
from lookhops.core.tables import Table
from lookhops.core.words import NONE, counted, joined, memory, number, signed
from lookhops.graphs import Graphs
from lookhops.learners import Model, learner_of
from lookhops.runs.executor import train_here
from lookhops.runs.fair import Contest, Grid, named_protocol
from lookhops.runs.plan import Entry, parse_models
from lookhops.runs.results import CellResult, shared_seeds
from lookhops.runs.statistics import Pair, by_mean, cliques, compare_pairs, mean_ranks, mean_std
from lookhops.runs.store import Store
from lookhops.sources.splits import Split, SplitPlan
from lookhops.tasks import Metric, task_of
from lookhops.training import Protocol
from lookhops.training.runs import OnEvent, draw_splits

#: What tables in files have besides the main metric, where a task has it: shares in per cent.
SHARES, ERRORS = ("balanced_accuracy", "macro_f1", "auroc"), ("rmse", "r2", "spearman")


@dataclass(frozen=True)
class Comparison:
    """Models that were tested on the same splits of the same graphs."""

    dataset: str  #: what the graphs are called
    finished: Sequence[CellResult]  #: all finished runs, each model under its own name
    #: The compared models, best mean first, with the splits that all share (``seeds``).
    cells: Mapping[str, CellResult]
    scores: Mapping[str, list[float]]  #: their main metric on each of these, shares in per cent
    seeds: tuple[int, ...]
    pairs: list[Pair]  #: all pairs of models: paired differences, intervals, tests
    ranks: Mapping[str, float]  #: mean rank of each model over the splits
    #: Models that do not differ significantly, as neighbours in the order of ranks.
    groups: list[list[str]]
    #: What was done: the protocol's name (``name``), in words (``said``), the ``grid``.
    about: Mapping[str, Any] = field(default_factory=dict)
    #: Whether these are runs of the quick version, which say nothing about the models.
    quick: bool = False

    @property
    def best(self) -> CellResult:
        return next(iter(self.cells.values()))

    @property
    def main(self) -> Metric:
        return self.best.main

    @property
    def written(self) -> dict[str, str]:
        """The main metric of each model, best first, as text: mean and spread."""
        unit = " %" if self.main.share else ""
        return {name: f"{cell.written()}{unit}" for name, cell in self.cells.items()}

    def mean(self, model: str) -> float:
        return mean_std(self.scores[model])[0]

    @property
    def digits(self) -> int:
        """Digits after the point of scores and their differences."""
        return self.main.digits(self.mean(self.best.model))

    @property
    def unit(self) -> str:
        return "points" if self.main.share else self.main.title

    @property
    def left_out(self) -> dict[str, str]:
        """Models of which runs are in no mean here, and how many runs."""
        found = {}
        for cell in self.finished:
            out = len(cell.seeds) - (len(self.seeds) if cell.model in self.scores else 0)
            every = counted(len(cell.seeds), "finished run")
            if out:
                found[cell.model] = every if out == len(cell.seeds) else f"{out} of {every}"
        return found

    def models_table(self, wide: bool = False) -> Table:
        """The models, best mean first; every number is over the splits that all of them share.

        A wide one has what ranks models besides and the options of networks, too.
        """
        main, count, rows, records = self.main, len(self.seeds), [], []
        unit, second = ", %" if main.share else "", self.best.runs[0].task.ranked_by
        for name, values in self.scores.items():
            cell, (mean, std) = self.cells[name], mean_std(values)
            metrics, learner = cell.metrics, learner_of(cell.architecture)
            validated = [value for value in metrics[f"val_{main.name}"] if value is not None]
            validation = main.scale * sum(validated) / len(validated) if validated else None
            val = main.written(validation and validation / main.scale).removesuffix(" %")
            record = {"model": name, "mean": mean, "std": std, "validation": validation}
            for key in (*SHARES, *ERRORS):
                if None not in metrics.get(key, [None]):
                    record[key] = (100 if key in SHARES else 1) * sum(metrics[key]) / count
            record |= {"rank": self.ranks[name], "parameters": metrics["parameters"][0]}
            seconds = sum(metrics["seconds"]) / count
            record |= {"seconds_a_seed": seconds, "peak_memory": cell.peak_memory, "seeds": count}
            records.append(record)
            known = metrics.get(second.name) or [None]
            more = {
                second.title: NONE if None in known else second.written(sum(known) / count),
                "network": learner.title if learner.has_epochs else NONE,
            }
            texts = {
                "model": name,
                main.heading: f"**{cell.written()}**",
                f"val.{unit}": val,
                "rank": f"{self.ranks[name]:.1f}",
                "parameters": number(metrics["parameters"][0]),
                "time": f"{seconds:.1f} s",
                "memory": memory(cell.peak_memory),
                **(more if wide else {}),
            }
            rows.append([*texts.values()])
        protocol = self.best.protocol
        drawn = splits_in_words(protocol.split, protocol.folds)
        if count != protocol.folds:
            drawn = f"{counted(count, 'split')}, {drawn}"
        parts = (self.about.get("said"), self._left_out(), self._costs_in_words())
        note = " ".join(filter(None, parts))
        title = f"{self.dataset}: {drawn}"
        return Table([*texts], rows, note, "models", title, records, best=0)

    def _costs_in_words(self) -> str:
        on_gpu = [run.machine.device != "cpu" for cell in self.finished for run in cell.runs]
        held = "what the process held at its peak"
        if all(on_gpu):
            held = "what PyTorch held on the GPU at its peak"
        elif any(on_gpu):
            held += ", or PyTorch on the GPU"
        share = ", a share where several were trained at once" if any(on_gpu) else ""
        return (
            "Ranks are means over the splits; time and memory are those of one split"
            f"{share}, and memory is {held}."
        )

    def _left_out(self) -> str:
        out = [f"{model} ({runs})" for model, runs in self.left_out.items()]
        seeds = counted(len(self.seeds), "shared seed")
        return f"Left out, for all means here are over {seeds}: {joined(out)}." if out else ""

    def pairs_table(self, pairs: Sequence[Pair] | None = None) -> Table:
        """Paired differences with their intervals and tests, of these pairs or of all."""
        rows, records, digits = [], [], self.digits
        for pair in self.pairs if pairs is None else pairs:
            difference, p = pair.difference, pair.adjusted_p
            low, high = difference.interval or (None, None)
            records.append(
                {"first": pair.first, "second": pair.second, "difference": difference.mean}
                | {"low": low, "high": high, "p": difference.p, "adjusted_p": p}
            )
            texts = (
                f"{pair.first} against {pair.second}",
                signed(difference.mean, digits),
                " to ".join(signed(end, digits) for end in difference.interval or ()) or NONE,
                f"{difference.p:.2g}",
                f"{p:.2g}",
                "differ" if p < ALPHA else "not decidable",
            )
            rows.append(texts)
        head = ["pair", "difference", "95% interval", "p", "Holm's p", "at 5%"]
        what = "Percentage points" if self.main.share else f"Differences of {self.main.title}"
        if not self.main.higher_is_better:
            what += " (lower is better)"
        note = (
            f"{what}, paired over the splits that the models share; corrected resampled "
            "t-test of Nadeau and Bengio; p adjusted for all pairs by Holm's method."
        )
        return Table(head, rows, note, "pairs", "Paired differences", records)

    def to_json(self) -> dict[str, Any]:
        """All of it, as JSON can hold it."""
        models = {r["model"]: r for r in self.models_table().records}
        return {
            "dataset": self.dataset,
            **({"protocol": dict(self.about)} if self.about else {}),
            "seeds": list(self.seeds),
            "metric": self.main.name,
            "models": [
                {**models[name], "values": values}
                | {"architecture": asdict(self.cells[name].architecture)}
                for name, values in self.scores.items()
            ],
            "pairs": list(self.pairs_table().records),
            "not_different": self.groups,
        }


def compare(
    graphs: Graphs,
    models: Mapping[str, Entry | Model] | Sequence[str],
    protocol: Protocol | str | None = None,
    *,
    store: Store | Path | str,
    splits: SplitPlan | Sequence[Split] | None = None,
    grid: Grid | None = None,
    device: str = "auto",
    on_event: OnEvent = lambda event: None,
) -> Comparison:
    """Compare models on graphs; what the store has is not trained again.

    Args:
        graphs: Graphs with targets.
        models: Names such as ``"licheb+lookhops"`` or ``"wl-oa"``, or models under any names. A
            layer of your own takes part once
            :func:`~lookhops.nn.registry.register_convolution` knows it.
        protocol: How to train, or ``paper`` or ``fair``
            (:func:`~lookhops.runs.fair.named_protocol`); by default the paper's ten seeds.
        store: Where finished runs are kept.
        splits: One for each seed, or a plan that has them; by default the protocol's are drawn.
        grid: Options of models and their values, among which each split's validation part chooses.
        device: ``cpu``, ``cuda`` or ``auto``.
        on_event: Called with each event.
    """
    if not isinstance(models, Mapping):
        models = parse_models(models if isinstance(models, str) else ",".join(models))
    name, how = (protocol, Protocol()) if isinstance(protocol, str) else (None, protocol)
    how = named_protocol(name, how or Protocol(), splits is not None)
    if name == "fair":
        given = splits.protocol.seeds if isinstance(splits, SplitPlan) else splits or ()
        how = replace(how, seeds=parse_seeds(how.folds or len(given), how.folds), split="auto")
    if isinstance(splits, SplitPlan):
        how = replace(how, seeds=splits.protocol.seeds)
    plan = draw_splits(graphs, task_of(graphs), how, splits)
    contest = Contest.of(graphs, models, plan, grid, name)
    with nullcontext(store) if isinstance(store, Store) else Store(store) as kept:
        train = partial(train_here, store=kept, device=device, on_event=on_event)
        return comparison(graphs.name, contest.run(train, kept), contest.about())


def comparison(
    dataset: str,
    cells: Sequence[CellResult],
    about: Mapping[str, Any] | None = None,
    *,
    finished: Sequence[CellResult] | None = None,
    quick: bool = False,
) -> Comparison:
    """Compare the models of these cells over the splits that they share.

    ``finished`` is all that is finished, if more than the cells; the rest is as for the class.
    """
    if not cells:
        raise LookHopsError("No run is finished yet: there is nothing to compare.")
    seeds = shared_seeds(cells)
    if not seeds:
        raise LookHopsError("The models have no finished split in common yet.")
    shared = {cell.model: cell.of_seeds(seeds) for cell in cells}
    scores = {name: list(cell.scores().values()) for name, cell in shared.items()}
    higher, test_to_train = cells[0].main.higher_is_better, shared[cells[0].model].test_to_train
    scores = {name: scores[name] for name in by_mean(scores, higher)}
    pairs = compare_pairs(scores, test_to_train, higher) if len(seeds) > 1 else []
    ranks = mean_ranks(scores, higher)
    groups = cliques(sorted(ranks, key=ranks.__getitem__), pairs) if pairs else []
    ordered = {name: shared[name] for name in scores}
    every = cells if finished is None else finished
    return Comparison(
        dataset, every, ordered, scores, seeds, pairs, ranks, groups, about or {}, quick
    )
