"""MoleculeACE, each set in its own split: RMSE of all test molecules and of activity cliffs.

    python benchmarks/moleculeace.py FOLDER
    python benchmarks/moleculeace.py FOLDER --published published.json   # a table beside others
    python benchmarks/moleculeace.py FOLDER --validate 3                 # splits of training parts
    python benchmarks/moleculeace.py FOLDER --model gp/hops=3            # another model

FOLDER holds the sets' CSV files as the benchmark publishes them (columns ``smiles``, ``y``,
``split`` and ``cliff_mol``). ``published.json`` holds for each method and set ``rmse`` and
``rmse_cliff``. The model is the recommended one where none is named; one with epochs keeps a tenth
of the training part for validation. To choose options, ``--validate N`` splits the training part of
each set N times, five sixths to one sixth, and reads no test molecule.
"""

from __future__ import annotations

import argparse
import csv
import json
import time
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch

from lookhops.graphs import Graphs
from lookhops.learners import Learner, learner_of, parse_model, recommend
from lookhops.sources.molecules import from_smiles
from lookhops.sources.splits import Split
from lookhops.tasks import task_of

MEASURES = ("rmse", "rmse_cliff")


@dataclass(frozen=True, eq=False)
class Benchmark:
    """One set: its molecules, which of them are tested, and which have an activity cliff."""

    name: str
    graphs: Graphs
    test: np.ndarray
    cliff: np.ndarray

    @classmethod
    def read(cls, path: Path) -> Benchmark:
        with path.open(newline="") as file:
            rows = list(csv.DictReader(file))
        graphs = from_smiles([row["smiles"] for row in rows], [float(row["y"]) for row in rows])
        test = np.array([row["split"] == "test" for row in rows])
        cliff = np.array([row["cliff_mol"] == "1" for row in rows])
        return cls(path.stem, replace(graphs, name=path.stem), test, cliff)

    def splits(self, validate: int) -> list[tuple[np.ndarray, np.ndarray]]:
        """Numbers of training and of test molecules: the benchmark's, or of its training part."""
        train = np.flatnonzero(~self.test)
        if not validate:
            return [(train, np.flatnonzero(self.test))]
        orders = [np.random.default_rng(seed).permutation(train) for seed in range(validate)]
        sixth = len(train) // 6
        return [(order[sixth:], order[:sixth]) for order in orders]

    def learner(self, model: str) -> Learner:
        """The model of this name."""
        if model != "recommended":
            return learner_of(parse_model(model))
        return recommend(self.graphs, task_of(self.graphs), int((~self.test).sum())).learner

    def errors(self, learner: Learner, validate: int) -> dict[str, float]:
        """RMSE of all and of cliff molecules, coverage of 90% intervals, seconds."""
        found: dict[str, list[float]] = {}
        for seed, (train, test) in enumerate(self.splits(validate)):
            is_val = np.arange(len(train)) % 10 == 0 if learner.has_epochs else train < 0
            parts = Split(*map(torch.from_numpy, (train[~is_val], train[is_val], test)))
            start = time.perf_counter()
            process = learner.fit(self.graphs, task_of(self.graphs), parts, seed)
            fitted = time.perf_counter() - start
            asked = self.graphs.select(parts.test)
            apart = (process.outputs(asked)[:, 0] - asked.y).numpy()
            variance = process.variance(asked)
            half = 0 if variance is None else 1.645 * variance[:, 0].sqrt().numpy()
            cliff = self.cliff[test]
            for name, value in {
                "rmse": np.sqrt((apart**2).mean()),
                "rmse_cliff": np.sqrt((apart[cliff] ** 2).mean()),
                "coverage": (np.abs(apart) <= half).mean(),
                "seconds": fitted,
            }.items():
                found.setdefault(name, []).append(float(value))
        return {name: float(np.mean(values)) for name, values in found.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--published", type=Path, help="JSON: method, set, rmse and rmse_cliff")
    parser.add_argument("--validate", type=int, default=0, help="splits of the training parts")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--model", default="recommended")
    given = vars(parser.parse_args())
    torch.set_num_threads(given["threads"])
    paths = sorted(given["folder"].glob("*.csv"))
    if not paths:
        parser.error(f"{given['folder']}: no CSV files")
    print("set                train  test    RMSE   on cliffs  in 90%   fit, s")
    found = {}
    for path in paths:
        one = Benchmark.read(path)
        own = found[one.name] = one.errors(one.learner(given["model"]), given["validate"])
        print(
            f"{one.name:<16} {(~one.test).sum():>7} {one.test.sum():>5}  {own['rmse']:.3f}"
            f"  {own['rmse_cliff']:>10.3f}  {100 * own['coverage']:>6.1f}  {own['seconds']:>7.1f}",
            flush=True,
        )
    rows = {given["model"]: found}
    if given["published"]:
        rows |= json.loads(given["published"].read_text())
    print(f"\nmean of {len(found)} sets      RMSE   on cliffs")
    for method, by_set in rows.items():
        if found.keys() <= by_set.keys():
            means = [np.mean([by_set[name][key] for name in found]) for key in MEASURES]
            print(f"{method:<20} {means[0]:>7.3f}  {means[1]:>10.3f}")


if __name__ == "__main__":
    main()
