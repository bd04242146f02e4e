"""``look``: how many hops of a set of graphs are worth looking at."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module

import numpy as np

from lookhops.core.errors import LookHopsError
from lookhops.graphs import Graphs
from lookhops.neighbourhoods.entropy import BLOCK_SIZE, Scope, with_something_to_see
from lookhops.neighbourhoods.gain import Progress, Resampling, fit_decay, fit_rates, measure
from lookhops.neighbourhoods.information import HopInformation

# A curve of two numbers needs two gains, IG(2) and IG(3).
LEAST_K = 3
# With fewer resamples than this their outer 5% are not one resample.
LEAST_RESAMPLES = 20


def look(
    graphs: Graphs,
    max_k: int = 9,
    neighbourhood: str = "walk",
    epsilon: float = 0.05,
    bootstrap: int = 200,
    seed: int = 0,
    per_class: bool = False,
    block_size: int = BLOCK_SIZE,
    progress: Progress | None = None,
) -> HopInformation:
    r"""Measure before any training how much each further hop adds, and which k that suggests.

    For every node and feature, kInfo is the entropy of what the node sees at exactly k hops; the
    information gain :math:`IG(k)` is how far its density over all nodes moves from k - 1 hops to k.
    Gains die away like :math:`a e^{-bk}`, so that :math:`e^{-bk}` of the information lies beyond k
    hops, and the suggested k is the smallest that loses no more than ``epsilon``.

    Classes are not looked at, save to choose graphs when ``per_class`` is asked for. Edge weights
    are not either: an edge is there or not. Where edges have a direction, a node sees those whose
    information reaches it, against the arrows. The result does not depend on ``block_size``.
    Blanks count as the mean of their column; where no feature varies, degrees are looked at, with a
    warning.

    Args:
        graphs: The graphs.
        max_k: The most hops to look at, K, 3 or more.
        neighbourhood: What a node sees at k hops: ``"walk"``, the nodes that a walk of exactly k
            steps leads to; or ``"ball"``, all nodes within k steps and itself.
        epsilon: The share of the information that may be lost, between 0 and 1.
        bootstrap: How often to resample the graphs, with replacement, for the intervals; 0 for
            none. More than 128 graphs are drawn in 128 random bundles.
        seed: Of these draws.
        per_class: Whether to measure the graphs of each class on their own as well. The global
            densities stay those of all graphs, so that classes differ by their neighbourhoods only.
        block_size: The most nodes to work on together, if no graph has more.
        progress: Called with what is being done, and how much of it from 0 to 1.
    """
    _check(max_k, epsilon, bootstrap, seed)
    report = progress or (lambda _what, _share: None)
    y = None if graphs.y is None else graphs.y.cpu().numpy()
    if per_class and y is None:
        raise LookHopsError(f"{graphs.name}: the graphs have no classes to measure one by one.")
    graphs = with_something_to_see(graphs)
    scope = Scope.of(graphs, max_k, neighbourhood, block_size)
    # Matrix products in one thread: they are small, and threads would only wait for each other.
    # The module comes with scikit-learn.
    with import_module("threadpoolctl").threadpool_limits(1, user_api="blas"):
        found = _look(graphs.name, scope, epsilon, bootstrap, seed, report)
        classes = {}
        for number, name in enumerate(graphs.class_names if per_class else ()):
            members = np.flatnonzero(y == number)
            if members.size:
                title = f"{graphs.name}, class {name}"
                part = replace(scope, members=members)
                classes[name] = _look(title, part, epsilon, bootstrap, seed, report)
    return replace(found, per_class=classes)


def _look(
    name: str, scope: Scope, epsilon: float, bootstrap: int, seed: int, progress: Progress
) -> HopInformation:
    # Resamples of a single graph are all the same.
    draws = bootstrap if scope.members.size > 1 else 0
    gains = measure(scope, Resampling.draw(scope, draws, seed), progress)
    k = np.arange(2, scope.max_k + 1)
    _check_uniform(name, k, gains.mean)
    usable = np.isfinite(gains.resampled).all(axis=1)
    return HopInformation(
        name=name,
        graphs=scope.members.size,
        nodes=scope.num_nodes,
        neighbourhood=scope.neighbourhood,
        epsilon=epsilon,
        k=k,
        gain=gains.mean,
        by_channel=gains.by_channel,
        channels=np.sort(scope.channels.columns),
        constant_channels=scope.channels.constant,
        decay=fit_decay(k, gains.mean),
        resampled_gain=gains.resampled[usable],
        resampled_b=fit_rates(k, gains.resampled[usable])[1],
    )


def _check(max_k: int, epsilon: float, bootstrap: int, seed: int) -> None:
    if max_k < LEAST_K:
        raise LookHopsError(
            f"A curve needs gains at 2 and 3 hops at least, so max_k must be {LEAST_K} or more, "
            f"not {max_k}."
        )
    if not 0 < epsilon < 1:
        raise LookHopsError(
            f"epsilon is the share of the information that may be lost: between 0 and 1 "
            f"(0.05 is 5%), not {epsilon}."
        )
    if bootstrap != 0 and bootstrap < LEAST_RESAMPLES:
        raise LookHopsError(
            f"An interval needs {LEAST_RESAMPLES} resamples or more (0 for none), not {bootstrap}."
        )
    if seed < 0:
        raise LookHopsError(f"The seed must be 0 or more, not {seed}.")


def _check_uniform(name: str, k: np.ndarray, gain: np.ndarray) -> None:
    """Raise a sentence where no channel has a density."""
    without = np.flatnonzero(np.isnan(gain))
    if not without.size:
        return
    first = int(k[without[0]])
    remedy = (
        f"Ask for max_k = {first - 1} (--max-k {first - 1})."
        if first > LEAST_K
        else "Use more, or more varied, graphs or features."
    )
    raise LookHopsError(
        f"{name}: at k = {first} or the hop before, all nodes see equally much in every feature, "
        f"so that there is no density to compare. {remedy}"
    )
