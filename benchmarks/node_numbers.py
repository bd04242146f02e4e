"""What to make of numbers at the nodes: their scale, and bins of them in exact neighbourhoods.

Rings of nodes with two numbers each. In one class high values of the first number stand beside
each other, in the other they are scattered; the second number tells nothing. The sets differ in how
the two numbers are distributed. ``--set PROTEINS`` (in the folder LOOKHOPS_DATA) has one number
besides its labels.

All is chosen by the mean validation accuracy and loss over scouting seeds, 1001 and on, never the
ten that are reported. Two columns stand for ``scale="none"`` on numbers that scikit-learn prepared,
fitted on the training part: StandardScaler, which is ``standard`` without its eye on heavy tails,
and the inverse hyperbolic sine of RobustScaler's, logarithmic in the tails.

    python benchmarks/node_numbers.py scales
    python benchmarks/node_numbers.py bins --set PROTEINS
"""

import argparse
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.table import Table
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, RobustScaler, StandardScaler

from lookhops import Graphs
from lookhops.core.options import RECOMMENDED, SCALES, Architecture, Protocol
from lookhops.graphs.features import Features
from lookhops.sources.loading import load
from lookhops.sources.splits import Split, split
from lookhops.training import Run, train

PREPARED = {
    "StandardScaler": StandardScaler(),
    "asinh": make_pipeline(RobustScaler(unit_variance=True), FunctionTransformer(np.arcsinh)),
}
Draw = Callable[[np.random.Generator, np.ndarray], np.ndarray]


def plain(rng: np.random.Generator, z: np.ndarray) -> np.ndarray:
    """A number as it is drawn."""
    return z


#: What the telling number is of a standard normal one, and what the other is.
SETS: dict[str, tuple[Draw, Draw]] = {
    "both normal": (plain, plain),
    "small beside large": (lambda rng, z: 0.01 * z, lambda rng, z: 1000 + 1000 * z),
    "telling is log-normal": (lambda rng, z: np.exp(3 * z), plain),
    "telling has two tails": (lambda rng, z: np.sinh(4 * z), plain),
    "other has two tails": (plain, lambda rng, z: np.sinh(4 * z)),
    "telling has outliers": (
        lambda rng, z: z * np.where(rng.random(z.shape) < 0.01, 1000, 1),
        plain,
    ),
}


def rings(size: int, telling: Draw, other: Draw, noise: float = 0.6, seed: int = 0) -> Graphs:
    """Rings of 12 to 24 nodes, of two classes."""
    rng = np.random.default_rng(seed)
    nodes: list[int] = []
    source, target, columns = [], [], []
    for number in range(size):
        count = int(rng.integers(12, 25))
        high = np.where(np.arange(count) < count // 2, 1.0, -1.0)
        high = rng.permutation(high) if number % 2 else np.roll(high, rng.integers(count))
        place = sum(nodes) + rng.permutation(count)
        source += [place, np.roll(place, -1)]
        target += [np.roll(place, -1), place]
        values = np.empty((count, 2))
        values[place - place.min()] = np.stack(
            (high + noise * rng.normal(size=count), rng.normal(size=count)), 1
        )
        columns.append(values)
        nodes.append(count)
    drawn = np.concatenate(columns)
    attributes = np.stack((telling(rng, drawn[:, 0]), other(rng, drawn[:, 1])), 1)
    return Graphs.from_edges(
        torch.from_numpy(np.concatenate(source)),
        torch.from_numpy(np.concatenate(target)),
        torch.tensor(nodes),
        nodes=Features(
            numbers=torch.from_numpy(attributes).float(),
            number_names=(
                "telling",
                "other",
            ),
        ),
        y=torch.arange(size) % 2,
        class_names=["beside each other", "scattered"],
        name="rings",
    )


def prepared(graphs: Graphs, part: Split, maker: Any) -> Graphs:
    """Numbers as a transformer, fitted on a training part, makes them."""
    assert graphs.nodes.numbers is not None
    inside = torch.zeros(len(graphs), dtype=torch.bool)
    inside[part.train] = True
    values = graphs.nodes.numbers.numpy()
    maker.fit(values[inside[graphs.batch.long()].numpy()])
    return replace(
        graphs,
        nodes=replace(graphs.nodes, numbers=torch.from_numpy(maker.transform(values)).float()),
    )


def validated(
    graphs: Graphs, architecture: Architecture, maker: Any, options: argparse.Namespace
) -> str:
    """Mean validation accuracy and lowest validation loss of the scouting seeds."""
    runs: list[Run] = []
    for seed in range(1001, 1001 + options.seeds):
        part = split(graphs, seed)
        given = graphs if maker is None else prepared(graphs, part, maker)
        rest = {"max_epochs": options.epochs, "batch_size": options.batch_size}
        protocol = Protocol((seed,), **rest, learning_rate=options.lr)
        runs += train(given, architecture, protocol, splits=[part], device=options.device)
    target = graphs.y
    assert target is not None
    hits = [(run.predictions["val"].argmax(1) == target[run.split.val]).numpy() for run in runs]
    return f"{100 * np.mean(hits):.1f} ({np.mean([run.best_loss for run in runs]):.3f})"


def main() -> None:
    """Print validation accuracy and loss of each choice on each set."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("scales", "bins"))
    parser.add_argument("--set", action="append", help="one of the made sets, or a TU name")
    parser.add_argument("--size", type=int, default=300, help="graphs of a made set")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--lr", type=float, default=3e-3)
    parser.add_argument("--hidden", type=int, default=32)
    parser.add_argument("--layers", type=int, default=3)
    parser.add_argument("--device", default="auto")
    options = parser.parse_args()
    network = replace(RECOMMENDED, hidden=options.hidden, layers=options.layers)
    if options.what == "scales":  # the network alone: it is what the scale is for
        network = replace(network, fingerprint=None, totals=False)
        rows = {kind: replace(network, scale=kind) for kind in SCALES}
        rows |= dict.fromkeys(PREPARED, rows["none"])
    else:
        rows = {f"{count} bins": replace(network, bins=count) for count in (0, 4, 8)}
    table = Table("set", *rows, title="validation accuracy, % (loss)")
    for name in options.set or SETS:
        graphs = rings(options.size, *SETS[name]) if name in SETS else load(name)
        makers = {row: PREPARED.get(row) for row in rows}
        cells = (validated(graphs, own, makers[row], options) for row, own in rows.items())
        table.add_row(name, *cells)
    Console(width=100).print(table)


if __name__ == "__main__":
    main()
