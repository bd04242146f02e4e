"""The answer in words, for someone who has read nothing else."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

from lookhops.core.words import compact_percent

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
    if low is None:
        return [f"{times} no decay."]
    if low == high:
        return [f"{times} the same k."] if low == found.suggested_k else [f"{times} k = {low}."]
    most = "no decay" if high is None else str(high)
    return [f"{times} k = {low} to {most} (95% of the draws)."]


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
        return "The classes' intervals overlap at every k: hops tell about as much in each."
    _, k, more, more_name, less, less_name = max(gaps, key=lambda gap: gap[0])
    return (
        f"The classes differ most at k = {k}, where IG is {more:.4g} in class {more_name} and "
        f"{less:.4g} in class {less_name}, and their intervals do not overlap."
    )
