"""Explanations against the truth: tasks whose deciding nodes are known, every way to explain.

``python -m lookhops.explanations.benchmark`` trains the recommended model on each task, ten seeds
on one split, explains the test graphs that it answers right, and prints how well the nodes that are
named are those that decide.
"""

from __future__ import annotations

import argparse
import copy
import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from math import isnan
from pathlib import Path

import numpy as np
import torch

from lookhops.datasets.splits import SplitPlan
from lookhops.errors import LookHopsError
from lookhops.explanations.explainers import EXPLAINERS, Explainer
from lookhops.explanations.fidelity import robust_fidelity, top_nodes
from lookhops.explanations.measures import agreement, node_auc, precision_at_size
from lookhops.explanations.truths import TRUTHS, TruthTask, truth_task
from lookhops.models.predictor import Predictor
from lookhops.models.resumable_training import train_into
from lookhops.options import RECOMMENDED, Architecture, Protocol
from lookhops.words import NONE

#: A row of its own: what pooling keeps in a model that is trained with a ratio of 0.5.
POOLING, STRICT = "kept by pooling", "kept by pooling, ratio 0.5"
ROWS = (*EXPLAINERS, STRICT)


@dataclass(frozen=True)
class Row:
    """How true one way to explain is on one task.

    Args:
        task: The task.
        explainer: The way.
        accuracy: Share of the test graphs that the models answer right, the mean over seeds.
        graphs: How many graphs were explained.
        auc: The chance that a deciding node is scored above another one of its graph.
        precision: Of as many nodes as decide, those with the highest scores, the share that does.
        agreement: Rank correlation of the scores of two seeds, the mean over pairs.
        randomised: Rank correlation with the scores that the same way gives for shuffled weights:
            near one means that it does not explain the model.
        needed: Fid+ of :func:`~.fidelity.robust_fidelity`: what the answer loses with some edges
            of the named nodes.
        enough: Fid-: what it loses with as large a share of the others.
        seconds: For one seed.
    """

    task: str
    explainer: str
    accuracy: float
    graphs: int
    auc: float
    precision: float
    agreement: float
    randomised: float
    needed: float
    enough: float
    seconds: float


def prepare(
    task: TruthTask,
    folder: Path,
    seeds: int,
    device: str,
    architecture: Architecture = RECOMMENDED,
    epochs: int = 100,
) -> tuple[Predictor, torch.Tensor]:
    """Models of several seeds on one split, trained if the folder is new, and its test graphs."""
    protocol = Protocol(
        seeds=tuple(1001 + number for number in range(seeds)),
        split="stratified",
        fractions=(0.7, 0.1, 0.2),
        max_epochs=epochs,
        patience=20,
        class_weights=True,
    )
    split = SplitPlan.of(task.graphs, replace(protocol, seeds=(1001,))).splits[1001]
    if not (folder / "config.json").exists():
        splits = [split] * seeds
        train_into(folder, task.graphs, architecture, protocol, splits=splits, device=device)
    return Predictor(folder, device), split.test


def measure(
    name: str,
    explainer: str,
    predictor: Predictor,
    task: TruthTask,
    test: torch.Tensor,
    most: int = 100,
) -> Row:
    """One way to explain, on the graphs that the model answers right and whose nodes decide."""
    way: Explainer = EXPLAINERS[explainer]
    answers = predictor.predict(task.graphs.select(test))
    truly = task.graphs.y[test].numpy() if task.graphs.y is not None else None
    has = torch.stack([part.any() for part in task.select(test).parts()]).numpy()
    chosen = np.flatnonzero((answers.numbers == truly) & has)[:most]
    known = task.select(test[torch.from_numpy(chosen)])
    graphs, truth, ptr = known.graphs, known.truth.numpy(), known.graphs.node_ptr.numpy()
    seeds = predictor.checkpoint.seeds
    began = time.perf_counter()
    scores = [way(predictor, graphs, seed) for seed in seeds]
    seconds = (time.perf_counter() - began) / len(seeds)
    other = way(shuffled(predictor), graphs, seeds[0])
    size = np.add.reduceat(truth, ptr[:-1])
    named = top_nodes(scores[0], size, ptr)
    fidelity = robust_fidelity(predictor, graphs, named, answers.numbers[chosen])
    return Row(
        name,
        explainer,
        _accuracy(predictor),
        len(graphs),
        float(np.mean([np.nanmean(node_auc(score, truth, ptr)) for score in scores])),
        float(np.mean([np.nanmean(precision_at_size(score, truth, ptr)) for score in scores])),
        agreement(scores, ptr) if len(scores) > 1 else float("nan"),
        agreement([scores[0], other], ptr),
        *fidelity,
        seconds,
    )


def shuffled(predictor: Predictor) -> Predictor:
    """The same model with the weights of every tensor in random order: it knows nothing."""
    other = copy.copy(predictor)
    other.members = {seed: [copy.deepcopy(m) for m in own] for seed, own in other.members.items()}
    other.models = {seed: members[0] for seed, members in other.members.items()}
    draws = torch.Generator().manual_seed(0)
    for members in other.members.values():
        for network in members:
            for weight in network.parameters():
                order = torch.randperm(weight.numel(), generator=draws).to(weight.device)
                weight.data = weight.data.flatten()[order].view_as(weight)
    other._ensembles = {}
    return other


def _accuracy(predictor: Predictor) -> float:
    own = predictor.checkpoint.config["metrics"]["seeds"].values()
    return float(np.mean([metrics["accuracy"] for metrics in own]))


def run(
    tasks: Sequence[str],
    explainers: Sequence[str],
    folder: Path,
    seeds: int = 10,
    device: str = "auto",
    most: int = 100,
    epochs: int = 100,
) -> list[Row]:
    """Every row, printed as it comes."""
    rows = []
    strict = replace(RECOMMENDED, ratio=0.5)
    print(_line(HEAD))
    for name in tasks:
        task = truth_task(name)
        predictor, test = prepare(task, folder / name, seeds, device, epochs=epochs)
        for explainer in explainers:
            way, model = explainer, predictor
            if explainer == STRICT:
                own = folder / f"{name}-strict"
                way, model = POOLING, prepare(task, own, seeds, device, strict, epochs)[0]
            row = measure(name, way, model, task, test, most)
            rows.append(replace(row, explainer=explainer))
            print(_line(_cells(rows[-1])), flush=True)
    return rows


HEAD = (
    *("task", "explained by", "accuracy", "graphs", "node AUC", "precision", "agreement"),
    *("shuffled", "Fid+", "Fid-", "seconds"),
)


def _cells(row: Row) -> tuple[str, ...]:
    numbers = (row.auc, row.precision, row.agreement, row.randomised, row.needed, row.enough)
    return (
        row.task,
        row.explainer,
        f"{row.accuracy:.1%}",
        str(row.graphs),
        *(NONE if isnan(number) else f"{round(number, 3) + 0.0:.3f}" for number in numbers),
        f"{row.seconds:.1f}",
    )


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def main(arguments: Sequence[str] | None = None) -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tasks", nargs="*", default=list(TRUTHS), help="all by default")
    parser.add_argument("--explainers", default=";".join(ROWS), help="semicolons between")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--graphs", type=int, default=100, help="at most so many of each task")
    parser.add_argument("--epochs", type=int, default=100)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--folder", type=Path, default=Path("explanation-benchmark"))
    parser.add_argument("--json", type=Path, help="write the rows here too")
    given = parser.parse_args(arguments)
    explainers = given.explainers.split(";")
    for name in explainers:
        if name not in ROWS:
            raise LookHopsError(f"There is no {name!r}; known are {'; '.join(ROWS)}.")
    options = {"seeds": given.seeds, "most": given.graphs, "epochs": given.epochs}
    rows = run(given.tasks, explainers, given.folder, device=given.device, **options)
    if given.json:
        given.json.write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n")


if __name__ == "__main__":
    main()
