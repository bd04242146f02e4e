"""Hop information: the gain of each hop, how it dies away, the k that follows, in words."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from lookhops.core.words import compact_percent
from lookhops.neighbourhoods.gain import Decay, smallest_k

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False)
class HopInformation:
    r"""How much each further hop adds, and how many hops are worth looking at.

    Args:
        name: The data set.
        graphs: How many graphs were looked at.
        nodes: How many nodes they have.
        neighbourhood: ``"walk"`` or ``"ball"``.
        epsilon: The share of the information that may be lost.
        k: 2 to K, shape (K - 1). IG(1) is left out: with 0 hops all entropies are 0, so that there
            is no density to compare with.
        gain: :math:`IG(k)`, shape (K - 1).
        by_channel: The divergence of each channel in use, shape (K - 1, d); NaN where kInfo is the
            same for all nodes, at k or k - 1: it has no density there, and is left out of the mean.
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
    per_class: Mapping[str, HopInformation] = field(default_factory=dict)

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
        hop, which cannot be measured, is taken from the curve. The curve follows the first gains,
        which are the largest; where the later ones die away more slowly, this share is larger.
        """
        beyond = self.k[:, None] > np.atleast_1d(k)
        total = float(self.decay(1)) + self.gain.sum()
        lost = np.maximum(self.gain @ beyond, 0) / total if total > 0 else 0.0 * beyond[0]
        return lost.reshape(np.shape(k))

    # ---------------------------------------------------------------- intervals

    @property
    def gain_interval(self) -> np.ndarray | None:
        """95% of the resamples: low and high of IG(k), shape (K - 1, 2), or none without any."""
        if not self.resampled_gain.size:
            return None
        return np.percentile(self.resampled_gain, (2.5, 97.5), axis=0).T

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
        """The answer in words."""
        return _sentence(self)

    def to_frame(self) -> pd.DataFrame:
        """One row a k: gain, its interval (NaN without a bootstrap), fitted gain, shares lost."""
        import pandas as pd

        interval = self.gain_interval
        low, high = interval.T if interval is not None else np.full((2, self.k.size), np.nan)
        return pd.DataFrame(
            {
                "k": self.k,
                "gain": self.gain,
                "low": low,
                "high": high,
                "fitted": self.decay(self.k),
                "lost": self.lost(self.k),
                "lost_measured": self.lost_measured(self.k),
            }
        )

    def to_dict(self) -> dict[str, Any]:
        """Everything a report needs, as plain numbers and text that JSON can hold."""
        interval = self.gain_interval
        return {
            "name": self.name,
            "graphs": self.graphs,
            "nodes": self.nodes,
            "neighbourhood": self.neighbourhood,
            "epsilon": self.epsilon,
            "channels": self.channels.size,
            "constant_channels": self.constant_channels,
            "k": self.k.tolist(),
            "gain": self.gain.tolist(),
            "gain_interval": None if interval is None else interval.tolist(),
            "lost": self.lost(self.k).tolist(),
            "lost_measured": self.lost_measured(self.k).tolist(),
            "fit": {
                **asdict(self.decay),
                "r2": self.decay.r2 if math.isfinite(self.decay.r2) else None,
                "b_interval": self.b_interval,
            },
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
        k = self.suggested_k
        kept = "no k can be suggested"
        if k is not None:
            kept = f"k = {k} keeps {compact_percent(1 - self.lost(k))}"
        return picture({self.name: first.figure, kept: lost(found).figure}, height=3.8)


def _finite(k: float) -> int | None:
    return int(k) if math.isfinite(k) else None


# A curve that explains less of the gains than this is no ground for a suggestion.
GOOD_FIT = 0.9


def _sentence(found: HopInformation) -> str:
    """What k to take, what it keeps, what more hops would add, and how sure that is."""
    k = found.suggested_k
    if k is None:
        return (
            f"Up to k = {found.max_k}, each hop adds as much as the one before: the information "
            "does not die away, and no k can be suggested."
        )
    one_more, two_more = (found.lost(k + i) - found.lost(k + i + 1) for i in (0, 1))
    parts = [
        f"k = {k} keeps {compact_percent(1 - found.lost(k))} of the information; each further hop "
        f"adds less: one more {compact_percent(one_more)}, another {compact_percent(two_more)}."
    ]
    if k > found.max_k:
        parts.append(
            f"That k lies beyond the {found.max_k} hops that were measured: measure further before "
            "you trust it."
        )
    elif k > 1:
        parts.append(
            f"k = {k - 1} would lose {compact_percent(found.lost(k - 1))}, more than the "
            f"{compact_percent(found.epsilon)} allowed."
        )
    parts += _slow_tail(found, k)
    if found.decay.r2 < GOOD_FIT:
        parts.append(
            f"The curve explains the gains poorly (R² = {found.decay.r2:.2f}): trust the gains "
            "themselves more than this k."
        )
    return " ".join((*parts, *_certainty(found)))


def _slow_tail(found: HopInformation, k: int) -> list[str]:
    """A remark where the gains themselves die away too slowly for the k that the curve suggests."""
    if k >= found.max_k or found.lost_measured(k) <= found.epsilon:
        return []
    enough = found.k[found.lost_measured(found.k) <= found.epsilon]
    return [
        f"But the gains fall more slowly than the curve: those measured beyond k = {k} are "
        f"{compact_percent(found.lost_measured(k))} of all. Take k = {enough[0]} to be safe."
    ]


def _certainty(found: HopInformation) -> list[str]:
    interval = found.suggested_k_interval
    if interval is None:
        return []
    low, high = interval
    times = f"Resampling the graphs {len(found.resampled_b)} times gave"
    if low is None:
        return [f"{times} no decay."]
    if low == high:
        return [f"{times} the same k."] if low == found.suggested_k else [f"{times} k = {low}."]
    most = "no decay" if high is None else str(high)
    return [f"{times} k = {low} to {most} (95% of the resamples)."]


def classes_sentence(found: HopInformation) -> str:
    """Where the classes differ most beyond what resampling them explains."""
    gaps = []
    for one, other in combinations(found.per_class, 2):
        first, second = found.per_class[one], found.per_class[other]
        if first.gain_interval is None or second.gain_interval is None:
            continue
        intervals = zip(
            found.k, first.gain, second.gain, first.gain_interval, second.gain_interval, strict=True
        )
        for k, a, b, (a_low, a_high), (b_low, b_high) in intervals:
            if a_low > b_high or b_low > a_high:
                (more, more_name), (less, less_name) = sorted([(a, one), (b, other)], reverse=True)
                gaps.append((more - less, k, more, more_name, less, less_name))
    if not gaps:
        return "The classes' intervals overlap at every k: hops add about as much in each."
    _, k, more, more_name, less, less_name = max(gaps, key=lambda gap: gap[0])
    return (
        f"The classes differ most at k = {k}, where IG is {more:.4g} in class {more_name} and "
        f"{less:.4g} in class {less_name}, and their intervals do not overlap."
    )
