"""Do 90 % sets and intervals hold the truth 90 % of the time? Many random splits of a made-up set.

    python benchmarks/coverage.py

Classes and numbers are drawn from a known model; the answers are too sure of themselves, as those
of networks are. Each split calibrates on one half and measures on the other.
"""

from __future__ import annotations

import argparse

import numpy as np

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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--graphs", type=int, default=600)
    parser.add_argument("--splits", type=int, default=200)
    parser.add_argument("--coverage", type=float, default=0.9)
    options = parser.parse_args()
    for name, shares in coverages(options.graphs, options.splits, options.coverage).items():
        mean, spread = 100 * shares.mean(), 100 * shares.std()
        asked = f"{100 * options.coverage:g} %"
        print(f"{asked} {name}: {mean:.1f} ± {spread:.1f} % over {len(shares)} random splits")


if __name__ == "__main__":
    main()
