"""Explanations against the truth: tasks whose deciding nodes are known, every way to explain.

``python benchmarks/explanations/accuracy.py`` trains the recommended model on each task, seeds 1 to
10 on one split, explains the test graphs that it answers right, and prints how well the nodes that
are named are those that decide.
"""

from __future__ import annotations

import argparse
import copy
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from math import isnan
from pathlib import Path

import numpy as np
import torch

from explainers import EXPLAINERS, Explainer
from lookhops.core.errors import LookHopsError
from lookhops.core.options import RECOMMENDED, Architecture, Protocol
from lookhops.core.words import NONE
from lookhops.learners import Fitted, FittedNetwork
from lookhops.learners.gp import FittedProcess, GaussianProcess
from lookhops.models.predictor import Predictor
from lookhops.models.training import train_into
from lookhops.sources.splits import SplitPlan
from measures import (
    agreement,
    node_auc,
    precision_at_size,
    retrained_accuracy,
    robust_fidelity,
    top_nodes,
)
from truths import TRUTHS, TruthTask, truth_task

#: Rows of other models: what pooling keeps with a ratio of 0.5, and shares of a Gaussian process.
POOLING, STRICT = "kept by pooling", "kept by pooling, ratio 0.5"
OF_PROCESS = {"shares, gp": "shares", "sizes of shares, gp": "sizes of shares"}
ROWS = (*EXPLAINERS, STRICT, *OF_PROCESS)
#: A network that answers fewer of the test graphs right has not learnt the task: it has no truth to
#: point at, and is left out.
LEARNT = 0.95
#: The seed of the graphs; what explanations are like was chosen on others.
DRAW = 1


@dataclass(frozen=True)
class Row:
    """How true one way to explain is on one task.

    Args:
        task: The task.
        explainer: The way.
        seeds: How many have learnt the task: the others are left out.
        accuracy: Share of the test graphs that their models answer right, the mean over seeds.
        graphs: How many graphs were explained.
        auc: The chance that a deciding node is scored above another one of its graph, the mean
            over seeds.
        auc_spread: Its standard deviation over seeds.
        precision: Of as many nodes as decide, those with the highest scores, the share that does.
        agreement: Rank correlation of the scores of two seeds, the mean over pairs.
        randomised: Rank correlation with the scores that the same way gives for shuffled weights:
            near one means that it does not explain the model.
        needed: Fid+ of :func:`~measures.robust_fidelity`: what the answer loses with some edges
            of the named nodes.
        enough: Fid-: what it loses with as large a share of the others.
        retrained: Accuracy of a model that learns from the named half of each test graph alone
            (:func:`~measures.retrained_accuracy`).
    """

    task: str
    explainer: str
    seeds: int
    accuracy: float
    graphs: int
    auc: float
    auc_spread: float
    precision: float
    agreement: float
    randomised: float
    needed: float
    enough: float
    retrained: float


def prepare(
    task: TruthTask,
    folder: Path,
    model: Architecture | GaussianProcess,
    protocol: Protocol,
    device: str,
) -> tuple[Predictor, torch.Tensor]:
    """Models of several seeds on one split, trained if the folder is new, and its test graphs."""
    first = protocol.seeds[0]
    split = SplitPlan.of(task.graphs, replace(protocol, seeds=(first,))).splits[first]
    if not (folder / "config.json").exists():
        splits = [split] * len(protocol.seeds)
        train_into(folder, task.graphs, model, protocol, splits=splits, device=device, stacked=True)
    return Predictor(folder, device), split.test


def measure(
    name: str, explainer: str, predictor: Predictor, task: TruthTask, test: torch.Tensor, most: int
) -> Row:
    """One way to explain, on the graphs that the model answers right and whose nodes decide.

    Args:
        name: The task's.
        explainer: The way, one of :data:`~explainers.EXPLAINERS`.
        predictor: The models of all seeds.
        task: All graphs.
        test: Numbers of those that the models did not learn from.
        most: How many of them are explained at most.
    """
    way: Explainer = EXPLAINERS[explainer]
    unseen = task.graphs.select(test)
    assert unseen.y is not None
    answers = predictor.predict(unseen)
    has = torch.stack([part.any() for part in task.select(test).parts()]).numpy()
    chosen = np.flatnonzero((answers.numbers == unseen.y.numpy()) & has)[:most]
    known = task.select(test[torch.from_numpy(chosen)])
    graphs, truth, ptr = known.graphs, known.truth.numpy(), known.graphs.node_ptr.numpy()
    accuracy = _accuracies(predictor)
    seeds = [seed for seed in predictor.seeds if accuracy[seed] >= LEARNT]
    if not seeds:
        raise LookHopsError(f"{name}: no model reaches {LEARNT:.0%}; take more graphs or epochs.")
    scores = [way(predictor, graphs, seed) for seed in seeds]
    other = way(shuffled(predictor), graphs, seeds[0])
    size = np.add.reduceat(truth, ptr[:-1])
    named = top_nodes(scores[0], size, ptr)
    aucs = [np.nanmean(node_auc(score, truth, ptr)) for score in scores]
    fidelity = robust_fidelity(predictor, graphs, named, answers.numbers[chosen])
    return Row(
        name,
        explainer,
        len(seeds),
        float(np.mean([accuracy[seed] for seed in seeds])),
        len(graphs),
        float(np.mean(aucs)),
        float(np.std(aucs, ddof=1)) if len(aucs) > 1 else float("nan"),
        float(np.mean([np.nanmean(precision_at_size(score, truth, ptr)) for score in scores])),
        agreement(scores, ptr) if len(scores) > 1 else float("nan"),
        agreement([scores[0], other], ptr),
        *fidelity,
        retrained_accuracy(unseen, way(predictor, unseen, seeds[0])),
    )


def shuffled(predictor: Predictor) -> Predictor:
    """The same model with the weights of every tensor in random order: it knows nothing."""
    other = copy.copy(predictor)
    other.fitted = copy.deepcopy(predictor.fitted)
    for known in ("networks", "members", "models"):
        vars(other).pop(known, None)
    draws = torch.Generator().manual_seed(0)
    for members in other.fitted.values():
        for member in members:
            for weight in _weights(member):
                order = torch.randperm(weight.numel(), generator=draws).to(weight.device)
                weight.data = weight.data.flatten()[order].view_as(weight)
    other._together = {}
    return other


def _weights(fitted: Fitted) -> Iterable[torch.Tensor]:
    """What a model has learnt: weights of a network, coefficients of a process."""
    if isinstance(fitted, FittedProcess):
        vars(fitted).pop("usual", None)
        return [target.coefficients for target in fitted.targets]
    assert isinstance(fitted, FittedNetwork)
    return fitted.network.parameters()


def _accuracies(predictor: Predictor) -> dict[int, float]:
    """Share of the test graphs that the model of each seed answers right."""
    own = predictor.config["metrics"]["seeds"]
    return {int(seed): metrics["accuracy"] for seed, metrics in own.items()}


def run(
    tasks: Sequence[str],
    explainers: Sequence[str],
    folder: Path,
    *,
    architecture: Architecture = RECOMMENDED,
    protocol: Protocol,
    size: int = 1000,
    most: int = 100,
    device: str = "auto",
) -> list[Row]:
    """Every row, printed as it comes.

    Args:
        tasks: Names of tasks.
        explainers: Of :data:`ROWS`.
        folder: Where models are kept; those that are there are not trained again.
        architecture, protocol: What is trained, and how.
        size: Graphs of each task.
        most: How many of them are explained at most.
        device: Where.
    """
    rows = []
    print(_line(HEAD), flush=True)
    for name in tasks:
        task = truth_task(name, size, DRAW)
        for explainer in explainers:
            way, where = explainer, folder / name
            own: Architecture | GaussianProcess = architecture
            if explainer in OF_PROCESS:
                way, own, where = OF_PROCESS[explainer], GaussianProcess(), folder / f"{name}-gp"
            elif explainer == STRICT:
                way, own, where = (
                    POOLING,
                    replace(architecture, ratio=0.5),
                    folder / f"{name}-strict",
                )
            predictor, test = prepare(task, where, own, protocol, device)
            row = measure(name, way, predictor, task, test, most)
            rows.append(replace(row, explainer=explainer))
            print(_line(_cells(rows[-1])), flush=True)
    return rows


HEAD = (
    *("task", "explained by", "seeds", "accuracy", "graphs", "node AUC", "precision", "agreement"),
    *("shuffled", "Fid+", "Fid-", "retrained"),
)


def _cells(row: Row) -> tuple[str, ...]:
    numbers = (row.precision, row.agreement, row.randomised, row.needed, row.enough)
    return (
        row.task,
        row.explainer,
        str(row.seeds),
        f"{row.accuracy:.1%}",
        str(row.graphs),
        f"{row.auc:.3f}" + ("" if isnan(row.auc_spread) else f" ± {row.auc_spread:.3f}"),
        *(NONE if isnan(number) else f"{round(number, 3) + 0.0:.3f}" for number in numbers),
        f"{row.retrained:.1%}",
    )


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def main(arguments: Sequence[str] | None = None) -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tasks", nargs="*", default=list(TRUTHS), help="all by default")
    parser.add_argument("--explainers", default=";".join(ROWS), help="semicolons between")
    parser.add_argument("--seeds", type=int, default=10, help="from 1 on")
    parser.add_argument("--size", type=int, default=1000, help="graphs of each task")
    parser.add_argument("--graphs", type=int, default=100, help="at most so many are explained")
    parser.add_argument("--hidden", type=int, default=RECOMMENDED.hidden)
    parser.add_argument("--layers", type=int, default=RECOMMENDED.layers)
    parser.add_argument("--epochs", type=int, default=100)
    parser.add_argument("--batch-size", type=int, default=256)
    parser.add_argument("--learning-rate", type=float, default=0.001)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--folder", type=Path, default=Path("explanation-benchmark"))
    parser.add_argument("--json", type=Path, help="write the rows here too")
    given = parser.parse_args(arguments)
    explainers = given.explainers.split(";")
    for name in explainers:
        if name not in ROWS:
            raise LookHopsError(f"There is no {name!r}; known are {'; '.join(ROWS)}.")
    protocol = Protocol(
        seeds=tuple(range(1, given.seeds + 1)),
        split="stratified",
        fractions=(0.7, 0.1, 0.2),
        batch_size=given.batch_size,
        learning_rate=given.learning_rate,
        max_epochs=given.epochs,
        patience=20,
        class_weights=True,
    )
    rows = run(
        given.tasks,
        explainers,
        given.folder,
        architecture=replace(RECOMMENDED, hidden=given.hidden, layers=given.layers),
        protocol=protocol,
        size=given.size,
        most=given.graphs,
        device=given.device,
    )
    if given.json:
        given.json.write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n")


if __name__ == "__main__":
    main()
