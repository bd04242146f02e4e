"""``look``: the gain of each hop, how it dies away, the k that follows, and all this in words."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field, replace
from importlib import import_module
from itertools import permutations
from typing import TYPE_CHECKING, Any

import numpy as np

from lookhops.core.errors import LookHopsError
from lookhops.core.words import compact_percent
from lookhops.graphs import Graphs
from lookhops.neighbourhoods.entropy import BLOCK_SIZE, Scope, with_something_to_see
from lookhops.neighbourhoods.gain import (
    Decay,
    Progress,
    Resampling,
    fit_decay,
    fit_rates,
    measure,
    smallest_k,
)

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


# A curve of two numbers needs two gains, IG(2) and IG(3).
LEAST_K = 3
# With fewer resamples than this their outer 5% are not one resample.
LEAST_RESAMPLES = 20
# A curve that explains less of the gains than this is no ground for a suggestion.
GOOD_FIT = 0.9


@dataclass(frozen=True, eq=False)
class HopInformation:
    r"""How much each further hop adds, and how many hops are worth looking at.

    Args:
        name: The data set.
        graphs: How many graphs were looked at.
        nodes: How many nodes they have.
        neighbourhood: ``"walk"`` or ``"ball"``.
        epsilon: The share of the information that may be lost.
        k: 2 to K, shape (K - 1). IG(1) would need a density with 0 hops, where all entropies are 0.
        gain: :math:`IG(k)`, shape (K - 1).
        by_channel: The divergence of each channel in use, shape (K - 1, d); NaN, and left out of
            the mean, where kInfo is the same for all nodes at k or k - 1: it has no density there.
        channels: The columns of ``graphs.x`` in use, shape (d).
        constant_channels: How many columns have one value only, and are left out.
        decay: The fitted curve :math:`a e^{-bk}`.
        resampled_gain: :math:`IG(k)` of resampled graphs, shape (r, K - 1).
        resampled_b: The rate of decay of each, shape (r).
        per_class: The same for the graphs of each class, if asked for.
    """

    name: str
    graphs: int
    nodes: int
    neighbourhood: str
    epsilon: float
    k: np.ndarray
    gain: np.ndarray
    by_channel: np.ndarray
    channels: np.ndarray
    constant_channels: int
    decay: Decay
    resampled_gain: np.ndarray
    resampled_b: np.ndarray
    per_class: dict[str, HopInformation] = field(default_factory=dict)

    @property
    def max_k(self) -> int:
        """The most hops that were looked at."""
        return int(self.k[-1])

    @property
    def suggested_k(self) -> int | None:
        r"""The smallest k with :math:`e^{-bk} \le` epsilon, or none where gains do not decay."""
        return _finite(float(smallest_k(self.decay.b, self.epsilon)))

    def lost(self, k: np.ndarray | float) -> np.ndarray:
        r"""The share of the information that lies beyond k hops, by the fit: :math:`e^{-bk}`."""
        return np.minimum(np.exp(-self.decay.b * np.asarray(k)), 1.0)

    def lost_measured(self, k: np.ndarray | int) -> np.ndarray:
        r"""The same by the gains themselves, as far as they were measured.

        :math:`\sum_{j=k+1}^K IG(j) \,/\, (a e^{-b} + \sum_{j=2}^K IG(j))`: the gain of the first
        hop, which cannot be measured, is the curve's. The curve follows the first, largest gains;
        where the later ones die away more slowly, this share is larger.
        """
        beyond = self.k[:, None] > np.atleast_1d(k)
        total = float(self.decay(1)) + self.gain.sum()
        lost = np.maximum(self.gain @ beyond, 0) / total if total > 0 else 0.0 * beyond[0]
        return lost.reshape(np.shape(k))

    # ---------------------------------------------------------------- intervals

    @property
    def gain_interval(self) -> np.ndarray | None:
        """95% of the resamples: low and high of IG(k), shape (K - 1, 2), or none without any."""
        drawn = self.resampled_gain
        return np.percentile(drawn, (2.5, 97.5), axis=0).T if drawn.size else None

    @property
    def b_interval(self) -> tuple[float, float] | None:
        """95% of the resamples: low and high of the rate of decay."""
        if not self.resampled_b.size:
            return None
        low, high = np.percentile(self.resampled_b, (2.5, 97.5))
        return float(low), float(high)

    @property
    def suggested_k_interval(self) -> tuple[int | None, int | None] | None:
        """95% of the resamples: low and high of the suggested k, none for "no decay"."""
        if not self.resampled_b.size:
            return None
        hops = smallest_k(self.resampled_b, self.epsilon)
        low, high = np.percentile(hops, (2.5, 97.5), method="inverted_cdf")
        return _finite(low), _finite(high)

    # ---------------------------------------------------------------- as text, numbers, pictures

    def sentence(self) -> str:
        """What k to take, what it keeps, what more hops would add, and how sure that is."""
        k, max_k = self.suggested_k, self.max_k
        if k is None:
            return (
                f"Up to k = {max_k}, each hop adds as much as the one before: the information "
                "does not die away, and no k can be suggested."
            )
        next_two = (compact_percent(self.lost(k + i) - self.lost(k + i + 1)) for i in (0, 1))
        parts = [
            f"k = {k} keeps {compact_percent(1 - self.lost(k))} of the information; each further "
            f"hop adds less: one more {', another '.join(next_two)}."
        ]
        if k > max_k:
            parts.append(
                f"That k lies beyond the {max_k} hops that were measured: measure further before "
                "you trust it."
            )
        elif k > 1:
            parts.append(
                f"k = {k - 1} would lose {compact_percent(self.lost(k - 1))}, more than the "
                f"{compact_percent(self.epsilon)} allowed."
            )
        if k < max_k and self.lost_measured(k) > self.epsilon:
            enough = self.k[self.lost_measured(self.k) <= self.epsilon]
            parts.append(
                f"But the gains fall more slowly than the curve: those measured beyond k = {k} are "
                f"{compact_percent(self.lost_measured(k))} of all. Take k = {enough[0]} to be safe."
            )
        if self.decay.r2 < GOOD_FIT:
            parts.append(
                f"The curve explains the gains poorly (R² = {self.decay.r2:.2f}): trust the gains "
                "themselves more than this k."
            )
        if self.suggested_k_interval is not None:
            low, high = self.suggested_k_interval
            said = f"k = {low} to {'no decay' if high is None else high} (95% of the resamples)"
            if low is None:
                said = "no decay"
            elif low == high:
                said = "the same k" if low == k else f"k = {low}"
            parts.append(f"Resampling the graphs {len(self.resampled_b)} times gave {said}.")
        return " ".join(parts)

    def to_frame(self) -> pd.DataFrame:
        """One row a k: gain, its interval (NaN without a bootstrap), fitted gain, shares lost."""
        import pandas as pd

        interval = self.gain_interval
        low, high = interval.T if interval is not None else (np.nan, np.nan)
        shares = {"lost": self.lost(self.k), "lost_measured": self.lost_measured(self.k)}
        gains = {"gain": self.gain, "low": low, "high": high, "fitted": self.decay(self.k)}
        return pd.DataFrame({"k": self.k, **gains, **shares})

    def to_dict(self) -> dict[str, Any]:
        """Everything a report needs, as plain numbers and text that JSON can hold."""
        interval = self.gain_interval
        r2 = self.decay.r2 if math.isfinite(self.decay.r2) else None
        plain = ("name", "graphs", "nodes", "neighbourhood", "epsilon")
        return {
            **{name: getattr(self, name) for name in plain},
            "channels": self.channels.size,
            "constant_channels": self.constant_channels,
            "k": self.k.tolist(),
            "gain": self.gain.tolist(),
            "gain_interval": None if interval is None else interval.tolist(),
            "lost": self.lost(self.k).tolist(),
            "lost_measured": self.lost_measured(self.k).tolist(),
            "fit": {**asdict(self.decay), "r2": r2, "b_interval": self.b_interval},
            "resamples": len(self.resampled_b),
            "suggested_k": self.suggested_k,
            "suggested_k_interval": self.suggested_k_interval,
            "sentence": self.sentence(),
            "per_class": {name: one.to_dict() for name, one in self.per_class.items()},
        }

    def plot(self) -> Figure:
        """A Matplotlib figure: the gains, of each class where there are few, and what is lost."""
        from lookhops.core.pictures import picture
        from lookhops.neighbourhoods.charts import MOST_CLASSES, class_gains, gains, lost

        found = self.to_dict()
        several = 1 < len(self.per_class) <= MOST_CLASSES
        first = class_gains(found) if several else gains(found)
        kept = "no k can be suggested"
        if (k := self.suggested_k) is not None:
            kept = f"k = {k} keeps {compact_percent(1 - self.lost(k))}"
        return picture({self.name: first.figure, kept: lost(found).figure}, height=3.8)


def _finite(k: float) -> int | None:
    return int(k) if math.isfinite(k) else None


def classes_sentence(found: HopInformation) -> str:
    """Where the classes differ most beyond what resampling them explains."""
    gaps = []
    for (more_name, one), (less_name, other) in permutations(found.per_class.items(), 2):
        if one.gain_interval is not None and other.gain_interval is not None:
            apart = one.gain_interval[:, 0] > other.gain_interval[:, 1]
            gap = np.where(apart, np.abs(one.gain - other.gain), 0)
            gaps.append((gap.max(), gap.argmax(), more_name, less_name))
    if not any(gap > 0 for gap, *_ in gaps):
        return "The classes' intervals overlap at every k: hops add about as much in each."
    _, at, more_name, less_name = max(gaps, key=lambda gap: gap[0])
    more, less = (found.per_class[name].gain[at] for name in (more_name, less_name))
    return (
        f"The classes differ most at k = {found.k[at]}, where IG is {more:.4g} in class "
        f"{more_name} and {less:.4g} in class {less_name}, and their intervals do not overlap."
    )


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

    Classes are not looked at, save to choose graphs when ``per_class`` is asked for, nor are edge
    weights. Where edges have a direction, a node sees those whose information reaches it, against
    the arrows. The result does not depend on ``block_size``. Blanks count as the mean of their
    column; where no feature varies, degrees are looked at, with a warning.

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
        for number, name in enumerate(graphs.class_names if per_class else ()):
            part = replace(scope, members=np.flatnonzero(y == number))
            if part.members.size:
                title = f"{graphs.name}, class {name}"
                found.per_class[name] = _look(title, part, epsilon, bootstrap, seed, report)
    return found


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
    if not np.isnan(gain).any():
        return
    first = int(k[np.isnan(gain).argmax()])
    remedy = "Use more, or more varied, graphs or features."
    if first > LEAST_K:
        remedy = f"Ask for max_k = {first - 1} (--max-k {first - 1})."
    raise LookHopsError(
        f"{name}: at k = {first} or the hop before, all nodes see equally much in every feature, "
        f"so that there is no density to compare. {remedy}"
    )
