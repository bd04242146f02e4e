"""The Gaussian process by the number of training graphs: seconds, memory, and scikit-learn's.

    python benchmarks/gp.py                          # 1,000, 5,000 and 20,000 graphs
    python benchmarks/gp.py --sizes 1000 --threads 1

Graphs are random trees of 15 to 35 nodes with two rings and four labels, their target a count of
neighbourhoods and noise. Prints for each size the seconds that fitting takes, those of 1,000
answers and their variances, and the peak of memory, each size in a process of its own. Up to
``--compared`` graphs scikit-learn's GaussianProcessRegressor is given the same kernel matrices:
the seconds that it takes for the weights by the evidence of the same graphs, for the solve and for
the answers, and how far its answers are from ours with the same weights.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import time
import warnings

import numpy as np
import torch
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import Hyperparameter, Kernel

from lookhops.graphs import Graphs
from lookhops.graphs.features import Features, default_values
from lookhops.graphs.targets import Target
from lookhops.learners.gp import FittedProcess, GaussianProcess
from lookhops.sources.splits import Split
from lookhops.tasks import task_of

ASKED = 1000
OPTIONS = GaussianProcess(hops=4)


def random_graphs(count: int, seed: int = 0) -> Graphs:
    """Labelled trees with two more edges, and a number that neighbourhoods within a hop decide."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(15, 36, count)
    first = np.repeat(np.cumsum(sizes) - sizes, sizes)
    place = np.arange(sizes.sum()) - first
    back = rng.integers(1, 4, len(place))
    child = np.flatnonzero(place > 0)
    parent = np.maximum(place - back, 0)[child] + first[child]
    start = np.cumsum(sizes) - sizes
    ends = [start + rng.integers(0, sizes) for _ in range(4)]
    source = np.concatenate((child, ends[0], ends[2]))
    target = np.concatenate((parent, ends[1], ends[3]))
    label = rng.choice(4, len(place), p=[0.7, 0.12, 0.12, 0.06])
    graph = np.repeat(np.arange(count), sizes)
    rare = label[child] * 4 + label[parent]
    found = np.bincount(graph[child], np.isin(rare, (1, 6, 8)), count)
    y = found - found.mean() + rng.normal(0, 0.3, count)
    return Graphs.from_edges(
        torch.from_numpy(source),
        torch.from_numpy(target),
        torch.from_numpy(sizes),
        nodes=Features(labels=torch.from_numpy(label)[:, None], label_values=default_values((4,))),
        y=torch.from_numpy(y),
        targets=[Target("value")],
        name="random graphs",
    ).undirected()


class Weighted(Kernel):
    """The same kernels for scikit-learn, computed before, and the noise; X holds numbers."""

    def __init__(self, stack: np.ndarray, log_weights: np.ndarray):
        self.stack, self.log_weights = stack, log_weights

    @property
    def hyperparameter_log_weights(self) -> Hyperparameter:
        bounds = np.tile([np.exp(-12.0), np.exp(4.0)], (len(self.log_weights), 1))
        return Hyperparameter("log_weights", "numeric", bounds, len(self.log_weights))

    @property
    def theta(self) -> np.ndarray:
        return self.log_weights

    @theta.setter
    def theta(self, value: np.ndarray) -> None:
        self.log_weights = value

    @property
    def bounds(self) -> np.ndarray:
        return np.tile([-12.0, 4.0], (len(self.log_weights), 1))

    def __call__(self, X, Y=None, eval_gradient=False):
        weights = np.exp(self.log_weights)
        columns = X if Y is None else Y
        index = np.ix_(X[:, 0].astype(int), columns[:, 0].astype(int))
        parts = [w * kernel[index] for w, kernel in zip(weights, self.stack, strict=False)]
        if Y is None:
            parts.append(weights[-1] * np.eye(len(X)))
        return (sum(parts), np.stack(parts, -1)) if eval_gradient else sum(parts)

    def diag(self, X):
        return np.diag(self(X))

    def is_stationary(self):
        return False


def scikit_learn(process: FittedProcess, graphs: Graphs, some: np.ndarray, train: int) -> str:
    """Seconds of scikit-learn's regressor with the same kernels, and how far its answers are."""
    rows = process.rows(graphs)
    stack = np.concatenate(
        [
            process.kernels.full(rows.select(part)).numpy()
            for part in torch.arange(len(rows)).split(1000)
        ],
        axis=1,
    )
    one = process.targets[0]
    y = ((graphs.y - one.mean) / one.spread).numpy()
    numbers = np.arange(len(rows), dtype=float)[:, None]
    warnings.simplefilter("ignore", ConvergenceWarning)  # of weights at their lower bound
    start = time.perf_counter()
    kernel = Weighted(stack, np.full(len(stack) + 1, -2.0))
    GaussianProcessRegressor(kernel, alpha=1e-4).fit(numbers[some], y[some])
    weights = time.perf_counter()
    ours = np.append(one.weights.numpy(), float(one.noise))
    model = GaussianProcessRegressor(Weighted(stack, np.log(ours)), alpha=1e-12, optimizer=None)
    model.fit(numbers[:train], y[:train])
    solved = time.perf_counter()
    # New graphs are known by their kernels with the training graphs.
    answers = sum(w * kernel[train:] for w, kernel in zip(ours, stack, strict=False)) @ model.alpha_
    answered = time.perf_counter()
    found = process.outputs(graphs[train:])[:, 0].numpy()
    apart = np.abs(answers * float(one.spread) + float(one.mean) - found).max()
    return (
        f"  scikit-learn, given the kernels: weights {weights - start:.1f} s, solve "
        f"{solved - weights:.1f} s, {ASKED:,} answers {answered - solved:.2f} s; largest difference"
        f" {apart:.1e}"
    )


def measure(count: int, threads: int, compared: int) -> None:
    """Print one size."""
    torch.set_num_threads(threads)
    graphs = random_graphs(count + ASKED)
    train, asked = torch.arange(count), torch.arange(count, count + ASKED)
    before = peak()
    start = time.perf_counter()
    process = OPTIONS.fit(graphs, task_of(graphs), Split(train, asked, asked), 0)
    fitted = time.perf_counter()
    answers = process.outputs(graphs[count:])[:, 0]
    answered = time.perf_counter()
    process.variance(graphs[count:])
    sure = time.perf_counter()
    used = peak() - before
    r2 = 1 - float((answers - graphs.y[count:]).var() / graphs.y[count:].var())
    size = sum(value.nbytes for value in process.tensors().values()) / 2**20
    print(
        f"{count:,} graphs: fit {fitted - start:.1f} s, {ASKED:,} answers "
        f"{answered - fitted:.2f} s, their variances {sure - answered:.2f} s; {used:.2f} GiB at "
        f"the peak, {size:.0f} MiB saved; R² {r2:.3f}",
        flush=True,
    )
    if count <= compared:
        order = torch.randperm(count, generator=torch.Generator().manual_seed(0))
        some = order[: OPTIONS.evidence_graphs].sort().values.numpy()
        print(scikit_learn(process, graphs, some, count), flush=True)


def peak() -> float:
    """The largest memory of this process so far, GiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", default="1000,5000,20000", help="numbers of training graphs")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--compared", type=int, default=5000, help="largest for scikit-learn")
    options = parser.parse_args()
    context = multiprocessing.get_context("spawn")
    for size in map(int, options.sizes.split(",")):
        process = context.Process(target=measure, args=(size, options.threads, options.compared))
        process.start()
        process.join()


if __name__ == "__main__":
    main()
