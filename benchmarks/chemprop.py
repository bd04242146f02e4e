"""Models of LookHops beside Chemprop on the same splits: RMSE and paired tests.

    python benchmarks/chemprop.py Lipophilicity.csv --target exp --chemprop VENV/bin/chemprop \\
        --seeds 11,22,33 -o DIR

Chemprop is the command of an environment of its own (``pip install chemprop`` there). It is trained
with its defaults on the very training, validation and test molecules of each split. What is
finished is kept in DIR, and a second call goes on from there.
"""

from __future__ import annotations

import argparse
import csv
import subprocess
import time
from pathlib import Path

import numpy as np
import torch

import lookhops
from lookhops.core.options import parse_seeds
from lookhops.graphs import Graphs
from lookhops.runs.compare import compare
from lookhops.runs.statistics import by_mean, compare_pairs, mean_std
from lookhops.sources.splits import Split, SplitPlan
from lookhops.training import Protocol


def chemprop_rmse(command: str, graphs: Graphs, parts: Split, folder: Path) -> float:
    """RMSE of the test molecules, by Chemprop with its defaults."""
    found = folder / "model_0" / "test_predictions.csv"
    if not found.exists():
        folder.mkdir(parents=True, exist_ok=True)
        kind = np.full(len(graphs), "", dtype="<U5")
        for name in ("train", "val", "test"):
            kind[getattr(parts, name).numpy()] = name
        with (folder / "molecules.csv").open("w", newline="") as file:
            rows = zip(graphs.columns["smiles"], graphs.y.tolist(), kind, strict=True)
            csv.writer(file).writerows([("smiles", "y", "split"), *rows])
        arguments = ["train", "--data-path", "molecules.csv", "--task-type", "regression"]
        arguments += ["--smiles-columns", "smiles", "--target-columns", "y"]
        arguments += ["--splits-column", "split", "--output-dir", "."]
        with (folder / "log.txt").open("w") as log:
            subprocess.run([command, *arguments], cwd=folder, stdout=log, stderr=log, check=True)
    with found.open(newline="") as file:
        rows = list(csv.DictReader(file))
    test = parts.test.sort().values
    if [row["smiles"] for row in rows] != [graphs.columns["smiles"][i] for i in test.tolist()]:
        raise SystemExit(f"{found}: these are not the test molecules of the split")
    answers = np.array([float(row["y"]) for row in rows])
    return float(np.sqrt(((answers - graphs.y[test].numpy()) ** 2).mean()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("table", type=Path)
    parser.add_argument("--target", required=True)
    parser.add_argument("--chemprop", required=True, help="the command of its environment")
    parser.add_argument("--models", default="recommended,descriptors-boosting")
    parser.add_argument("--split", default="scaffold")
    parser.add_argument("--seeds", default="10")
    parser.add_argument("-o", "--output", type=Path, required=True)
    given = parser.parse_args()
    torch.set_num_threads(1)
    graphs = lookhops.load(given.table, target=given.target)
    protocol = Protocol(parse_seeds(given.seeds), split=given.split)
    plan = SplitPlan.of(graphs, protocol)
    given.output.mkdir(parents=True, exist_ok=True)
    errors, seconds = [], []
    for seed, parts in plan.splits.items():
        start = time.perf_counter()
        folder = given.output.resolve() / f"chemprop-{given.split}-{seed}"
        errors.append(chemprop_rmse(given.chemprop, graphs, parts, folder))
        seconds.append(time.perf_counter() - start)
        print(f"chemprop, seed {seed}: RMSE {errors[-1]:.3f}, {seconds[-1]:.1f} s", flush=True)
    found = compare(
        graphs,
        given.models.split(","),
        splits=plan,
        store=given.output / "runs.sqlite",
    )
    scores = {cell.model: list(cell.metrics["rmse"]) for cell in found.cells.values()}
    scores["chemprop"] = errors
    scores = {name: scores[name] for name in by_mean(scores, False)}
    print(f"\n{graphs.name}, {len(errors)} splits, {given.split}: RMSE")
    for name, values in scores.items():
        mean, std = mean_std(values)
        print(f"{name:<24} {mean:.3f} ± {std:.3f}")
    for pair in compare_pairs(scores, found.best.test_to_train, False):
        e = pair.difference
        ends = "" if e.interval is None else f", {e.low:+.3f} to {e.high:+.3f}"
        print(
            f"{pair.first} against {pair.second}: {e.mean:+.3f}{ends}, p {e.p:.2g}, Holm's p "
            f"{pair.adjusted_p:.2g}"
        )


if __name__ == "__main__":
    main()
