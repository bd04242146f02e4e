"""The answer in words, for someone who has read nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lookhops.words import compact_percent

if TYPE_CHECKING:
    from lookhops.information.result import HopInformation

# A curve that explains less of the gains than this is no ground for a suggestion.
GOOD_FIT = 0.9


def sentence(found: HopInformation) -> str:
    """What k to take, what it keeps, what more hops would add, and how sure that is."""
    k = found.suggested_k
    if k is None:
        return (
            f"Up to k = {found.max_k}, each hop tells as much as the one before: the information "
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
    times = f"Drawing the graphs anew {len(found.resampled_b)} times gave"
    if low == high:
        return [f"{times} the same k."] if low == found.suggested_k else [f"{times} k = {low}."]
    most = "no decay" if high is None else str(high)
    return [f"{times} k = {low} to {most} (95% of the draws)."]


def classes_sentence(found: HopInformation) -> str:
    """Where the classes differ most beyond what resampling them explains."""
    best = None
    names = list(found.per_class)
    for i, first in enumerate(names):
        for second in names[:i]:
            gap = _largest_gap(found.per_class[first], found.per_class[second])
            if gap and (best is None or gap[0] > best[0]):
                best = (*gap, first, second)
    if best is None:
        return "The classes' intervals overlap at every k: hops tell about as much in each."
    _, k, first, second = best
    i = int(k - found.k[0])
    gains = [(found.per_class[name].gain[i], name) for name in (first, second)]
    (more, more_name), (less, less_name) = sorted(gains, reverse=True)
    return (
        f"The classes differ most at k = {k}, where IG is {more:.4g} in class {more_name} and "
        f"{less:.4g} in class {less_name}, and their intervals do not overlap."
    )


def _largest_gap(one: HopInformation, other: HopInformation) -> tuple[float, int] | None:
    """The largest difference of gains where the intervals do not overlap, and its k."""
    if one.gain_interval is None or other.gain_interval is None:
        return None
    apart = (one.gain_interval[:, 0] > other.gain_interval[:, 1]) | (
        other.gain_interval[:, 0] > one.gain_interval[:, 1]
    )
    if not apart.any():
        return None
    gap = np.where(apart, np.abs(one.gain - other.gain), 0)
    return float(gap.max()), int(one.k[np.argmax(gap)])
