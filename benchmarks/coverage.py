"""Do 90 % sets and intervals hold the truth 90 % of the time? Many random splits of a made-up set.

    python benchmarks/coverage.py
    python benchmarks/coverage.py --train solubility --target value --splits 31
    python benchmarks/coverage.py --thirds gp --train solubility --target value --splits 5
    python benchmarks/coverage.py --thirds network --members 3 --train solubility --target value

Classes and numbers are drawn from a known model; the answers are too sure of themselves, as those
of networks are. Each split calibrates on one half and measures on the other. With ``--train`` a
small network is trained on each split of a source, seeds 2001 and on, which nothing else uses:
regions are learnt from validation graphs that had no say in the epoch that is kept, as models do,
and from the same graphs as they are answered at that epoch. With ``--thirds`` a model is trained
on random and on scaffold splits, seeds 11, 22, ..., and its intervals are sorted by their width:
each third is to hold the number as often as all together.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

import lookhops
from lookhops.core.options import RECOMMENDED, Protocol
from lookhops.learners import Network, learner_of
from lookhops.tasks import task_of
from lookhops.tasks.conformal import class_scores, class_sets, number_intervals, number_scores

#: The network that is trained, and how.
NETWORK = replace(RECOMMENDED, hidden=48, layers=3, edges="ignore")
PROTOCOL = Protocol(max_epochs=60, batch_size=64, split="auto")


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
        known = [class_scores(sharp[val], y[val])]
        sets = class_sets(sharp[None, test], known, coverage)
        found["sets of classes"].append(sets[np.arange(len(test)), y[test]].mean())
        known = [number_scores(answers[val], measured[val])]
        low, high = number_intervals(answers[None, test], known, coverage).T
        held = (low <= measured[test]) & (measured[test] <= high)
        found["intervals of numbers"].append(held.mean())
    return {name: np.array(shares) for name, shares in found.items()}


def trained(source: str, target: str | None, splits: int, seconds: float) -> dict[str, np.ndarray]:
    """Of trainings on random splits, the share of the test graphs that 90 % regions held."""
    begun = time.monotonic()
    graphs = lookhops.load(source, target=target)
    network, protocol = NETWORK, PROTOCOL
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


def by_thirds(
    model: str, source: str, target: str | None, options: argparse.Namespace
) -> Iterator[str]:
    """How often intervals of numbers hold the number, and how wide they are, by their width."""
    graphs = lookhops.load(source, target=target)
    learner = learner_of(model) if model != "network" else Network(NETWORK)
    task = task_of(graphs)
    y = task.targets(graphs).cpu()
    for split in ("random", "scaffold"):
        seeds = tuple(11 * (number + 1) for number in range(options.splits))
        protocol = replace(PROTOCOL, seeds=seeds, members=options.members, split=split)
        held, widths, one_width = [], [], []
        for run in learner.train(graphs, protocol, task=task):
            outputs, parts = run.predictions, run.split
            expected = run.deviation(task, "unseen"), run.deviation(task, "test")
            val, test = (one if one is None else one.numpy().T for one in expected)
            answers = task.answers(outputs.get("unseen", outputs["val"]), {})
            known = task.distances(answers, y[parts.val], expected[0])
            given = task.answers(outputs["test"], {}).numpy()[None]
            truth = y[parts.test].numpy()
            low, high = task.regions(given, [known], options.coverage, test).T
            third = np.argsort(np.argsort(high - low, kind="stable")) * 3 // len(low)
            inside = (low <= truth) & (truth <= high)
            held.append([inside.mean(), *(inside[third == n].mean() for n in range(3))])
            widths.append([(high - low)[third == n].mean() for n in range(3)])
            plain = known if val is None else known[:, 0]
            low, high = task.regions(given, [plain], options.coverage).T
            inside = (low <= truth) & (truth <= high)
            one_width.append([*(inside[third == n].mean() for n in range(3)), (high - low)[0]])
        share, width, plain = (np.mean(one, 0) for one in (held, widths, one_width))
        yield (
            f"{model}, {split}, {options.splits} seeds: {share[0]:.1%}; narrowest, middle and "
            f"widest third {', '.join(f'{one:.1%}' for one in share[1:])}, of widths "
            f"{', '.join(f'{one:.2f}' for one in width)} (all of width {plain[3]:.2f}: "
            f"{', '.join(f'{one:.1%}' for one in plain[:3])})"
        )


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
    parser.add_argument("--thirds", metavar="MODEL", help="gp, network, or the name of a model.")
    parser.add_argument("--members", type=int, default=1, help="Networks on each split.")
    options = parser.parse_args()
    if options.thirds:
        for line in by_thirds(options.thirds, options.train, options.target, options):
            print(line, flush=True)
        return
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
