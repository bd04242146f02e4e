"""Do 90 % sets and intervals hold the truth 90 % of the time? Many random splits of a made-up set.

    python benchmarks/coverage.py
    python benchmarks/coverage.py --train solubility --target value --splits 31

Classes and numbers are drawn from a known model; the answers are too sure of themselves, as those
of networks are. Each split calibrates on one half and measures on the other. With ``--train`` a
small network is trained on each split of a source, seeds 2001 and on, which nothing else uses:
regions are learnt from validation graphs that had no say in the epoch that is kept, as models do,
and from the same graphs as they are answered at that epoch.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace

import numpy as np

import lookhops
from lookhops.core.options import RECOMMENDED, Protocol
from lookhops.tasks import task_of
from lookhops.tasks.conformal import (
    class_nonconformity,
    class_sets,
    number_intervals,
    number_nonconformity,
)


def coverages(graphs: int, splits: int, coverage: float) -> dict[str, np.ndarray]:
    """Of each split, the share of the truths that were held, shape (splits)."""
    generator = np.random.default_rng(0)
    p = generator.dirichlet((2, 1, 0.5), size=graphs)
    y = (p.cumsum(1) > generator.random((graphs, 1))).argmax(1)
    sharp = p**2 / (p**2).sum(1, keepdims=True)
    answers = generator.normal(size=graphs)
    measured = answers + generator.standard_t(3, graphs) + 0.3
    found: dict[str, list[float]] = {"sets of classes": [], "intervals of numbers": []}
    for _ in range(splits):
        val, test = np.array_split(generator.permutation(graphs), 2)
        known = [class_nonconformity(sharp[val], y[val])]
        sets = class_sets(sharp[None, test], known, coverage)
        found["sets of classes"].append(sets[np.arange(len(test)), y[test]].mean())
        known = [number_nonconformity(answers[val], measured[val])]
        low, high = number_intervals(answers[None, test], known, coverage).T
        held = (low <= measured[test]) & (measured[test] <= high)
        found["intervals of numbers"].append(held.mean())
    return {name: np.array(shares) for name, shares in found.items()}


def trained(source: str, target: str | None, splits: int, seconds: float) -> dict[str, np.ndarray]:
    """Of trainings on random splits, the share of the test graphs that 90 % regions held."""
    begun = time.monotonic()
    graphs = lookhops.load(source, target=target)
    network = replace(RECOMMENDED, hidden=48, layers=3, edges="ignore")
    protocol = Protocol(max_epochs=60, batch_size=64, split="auto")
    task = task_of(graphs)
    y = task.targets(graphs).cpu()
    found: dict[str, list[float]] = {"unseen": [], "val": []}
    for seed in range(2001, 2001 + splits):
        [run] = lookhops.train(graphs, network, replace(protocol, seeds=(seed,)), task=task)
        outputs, parts = run.predictions, run.split
        for part, shares in found.items():
            learnt = task.calibrate(outputs["val"], y[parts.val], outputs[part])
            shares.append(task.evaluate(outputs["test"], y[parts.test], learnt)["coverage"])
        if time.monotonic() - begun > seconds:
            break
    names = {"unseen": "regions, as models have them", "val": "regions of the epoch's own choosers"}
    return {names[part]: np.array(shares) for part, shares in found.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--graphs", type=int, default=600)
    parser.add_argument("--splits", type=int, default=200)
    parser.add_argument("--coverage", type=float, default=0.9)
    parser.add_argument("--train", metavar="SOURCE", help="Train on splits of these graphs.")
    parser.add_argument("--target", help="Of these graphs.")
    parser.add_argument(
        "--time-limit", type=float, default=float("inf"), help="Train no more after these seconds."
    )
    options = parser.parse_args()
    if options.train:
        found = trained(options.train, options.target, options.splits, options.time_limit)
    else:
        found = coverages(options.graphs, options.splits, options.coverage)
    for name, shares in found.items():
        mean, spread = 100 * shares.mean(), 100 * shares.std()
        asked = f"{100 * (0.9 if options.train else options.coverage):g} %"
        print(f"{asked} {name}: {mean:.1f} ± {spread:.1f} % over {len(shares)} random splits")


if __name__ == "__main__":
    main()
