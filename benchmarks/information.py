"""Hop information against the direct SciPy computation, in one run.

LOOKHOPS_DATA names the folder of PROTEINS, DD, NCI1 and BURSI. The direct computation follows the
paper with what SciPy has: powers of one sparse matrix, their pattern kept; ``gaussian_kde`` of the
distinct values with their counts as weights, at 1,000 points, for each channel and each pair of
hops. (Handing ``gaussian_kde`` every node instead takes many times as long.)

On BURSI's graphs the features are 780 random numbers a node, made here: nothing is claimed of any
data set with such features. There the direct computation is timed on one channel and scaled.

Arguments choose parts: PROTEINS DD BURSI memory growth; without any, all run. Direct DD alone takes
two minutes or more.
"""

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from rich.console import Console
from rich.table import Table
from scipy import sparse
from scipy.stats import gaussian_kde

import lookhops
from lookhops import Graphs
from lookhops.graphs.features import Features
from shared import Seconds, best_of

MAX_K = 9
CHANNELS = 780
PARTS = ("PROTEINS", "DD", "BURSI", "memory", "growth")


def timed(task: Callable[[], np.ndarray], rounds: int = 1) -> tuple[Seconds, np.ndarray]:
    """The fewest seconds of some rounds, and what the task gives."""
    found: list[np.ndarray] = []
    return best_of(rounds, lambda: found.append(task()))[0], found[-1]


# -------------------------------------------------------------------- the direct computation


def density(values: np.ndarray) -> gaussian_kde:
    distinct, counts = np.unique(values, return_counts=True)
    return gaussian_kde(distinct, (0.75 * values.size) ** -0.2, weights=counts)


def density_at_nodes(x: np.ndarray) -> np.ndarray:
    distinct, inverse = np.unique(x, return_inverse=True)
    return density(x)(distinct)[inverse]


def direct(graphs: Graphs, x: np.ndarray) -> np.ndarray:
    """IG(2) to IG(9) of the columns of x."""
    x = x[:, x.min(axis=0) < x.max(axis=0)].astype(np.float64)
    nodes = graphs.num_nodes
    arrays = np.ones(graphs.num_edges), graphs.source.numpy(), graphs.row_ptr.numpy()
    adjacency = sparse.csr_array(arrays, (nodes, nodes))
    g = np.stack([density_at_nodes(column) for column in x.T], axis=1)
    reach = sparse.eye_array(nodes, format="csr")
    gains = []
    before = None
    for _ in range(MAX_K):
        reach = reach @ adjacency
        reach.data[:] = 1
        s, u = reach @ g, reach @ (g * np.log(g))
        s[s == 0] = 1
        entropy = np.log(s) - u / s
        if before is not None:
            pairs = zip(entropy.T, before.T, strict=True)
            gains.append(np.mean([divergence(new, old) for new, old in pairs]))
        before = entropy
    return np.array(gains)


def divergence(new: np.ndarray, old: np.ndarray) -> float:
    points = np.linspace(min(new.min(), old.min()), max(new.max(), old.max()), 1000)
    p, q = density(new)(points), density(old)(points)
    step = (points[-1] - points[0]) / 1000
    return float((p * np.log((p + 1e-15) / (q + 1e-15))).sum() * step)


# -------------------------------------------------------------------- the parts


def ours(graphs: Graphs, bootstrap: int = 0) -> np.ndarray:
    return lookhops.look(graphs, MAX_K, bootstrap=bootstrap).gain


def against_direct(table: Table, name: str) -> None:
    graphs = lookhops.load(name)
    fast = timed(lambda: ours(graphs), rounds=3)
    slow = timed(lambda: direct(graphs, graphs.x.numpy()))
    add_row(table, f"{name}, {graphs.num_features} features", slow, fast)
    again, _ = timed(lambda: ours(graphs, bootstrap=200))
    table.add_row("  with 200 resamples", "", f"{again.wall:.2f}", f"{again.cpu:.2f}", "", "")


def against_scaled(table: Table) -> None:
    graphs = lookhops.load("BURSI")
    x = torch.randn(graphs.num_nodes, CHANNELS, generator=torch.Generator().manual_seed(0))
    random = replace(graphs, nodes=Features(numbers=x))
    fast, _ = timed(lambda: ours(random))
    one, by_hand = timed(lambda: direct(graphs, x[:, :1].numpy()))
    slow = Seconds(one.wall * CHANNELS, one.cpu * CHANNELS)
    same_channel = ours(replace(random, nodes=replace(random.nodes, numbers=x[:, :1])))
    add_row(
        table,
        f"BURSI, {CHANNELS} random numbers (direct: 1, scaled)",
        (slow, by_hand),
        (fast, same_channel),
    )


def add_row(
    table: Table, name: str, peer: tuple[Seconds, np.ndarray], own: tuple[Seconds, np.ndarray]
) -> None:
    (slow, wanted), (fast, found) = peer, own
    off = np.max(np.abs(found - wanted) / np.abs(wanted))
    table.add_row(
        name,
        f"{slow.wall:.1f} / {slow.cpu:.1f}",
        f"{fast.wall:.2f}",
        f"{fast.cpu:.2f}",
        f"{slow.wall / fast.wall:.0f} / {slow.cpu / fast.cpu:.0f}",
        f"{off:.2%}",
    )


def memory(console: Console) -> None:
    """Peak memory of a process that loads DD and looks at it, Python and PyTorch included."""
    for bootstrap in (0, 200):
        program = (
            "import lookhops, resource\n"
            f"lookhops.look(lookhops.load('DD'), {MAX_K}, bootstrap={bootstrap})\n"
            "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
        )
        command = [sys.executable, "-c", program]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        gibibytes = int(done.stdout) / 2**20
        console.print(f"DD, max_k = {MAX_K}, {bootstrap} resamples: peak {gibibytes:.2f} GiB")


def growth(console: Console) -> None:
    graphs = lookhops.load("NCI1")
    table = Table(title="time by number of graphs (NCI1, repeated)", title_justify="left")
    for heading in ("graphs", "CPU s", "ms a graph"):
        table.add_column(heading, justify="right")
    for times in (1, 3, 9):
        more = graphs.select(np.tile(np.arange(len(graphs)), times))
        spent, _ = timed(lambda more=more: ours(more), rounds=2)  # type: ignore[misc]
        table.add_row(f"{len(more):,}", f"{spent.cpu:.2f}", f"{1000 * spent.cpu / len(more):.3f}")
    console.print(table)


def main() -> None:
    wanted = sys.argv[1:] or PARTS
    if unknown := set(wanted) - set(PARTS):
        sys.exit(f"information.py: parts are {' '.join(PARTS)}, not {' '.join(unknown)}")
    if not (Path(os.environ.get("LOOKHOPS_DATA", "")) / "NCI1.zip").is_file():
        sys.exit("information.py: set LOOKHOPS_DATA to the folder of PROTEINS, DD, NCI1 and BURSI")
    console = Console(width=110)
    ours(lookhops.load("NCI1").select(range(10)))  # what is imported on first use
    if {"PROTEINS", "DD", "BURSI"} & set(wanted):
        table = Table(title=f"IG(2) to IG({MAX_K}), seconds", title_justify="left")
        table.add_column("graphs")
        for heading in (
            "direct wall / CPU",
            "wall",
            "CPU",
            "ratio wall / CPU",
            "largest difference",
        ):
            table.add_column(heading, justify="right")
        for name in ("PROTEINS", "DD"):
            if name in wanted:
                against_direct(table, name)
        if "BURSI" in wanted:
            against_scaled(table)
        console.print(table)
    if "memory" in wanted:
        memory(console)
    if "growth" in wanted:
        growth(console)


if __name__ == "__main__":
    main()
