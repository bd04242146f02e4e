"""What a model's score costs: time, parameters, and which models nothing beats at less cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Cost:
    """What a model takes for what it gives.

    Args:
        model: Its name.
        score: Its mean over the splits, as the table shows it.
        seconds: Of one split.
        parameters: None for a model whose parameters are not counted.
    """

    model: str
    score: float
    seconds: float
    parameters: int | None


def pareto_front(
    costs: Sequence[float], scores: Sequence[float], higher_is_better: bool = True
) -> list[int]:
    """The points that no other beats in one of the two and equals in the other, by rising cost.

    Args:
        costs: Lower is better.
        scores: Of the same points.
        higher_is_better: Whether more of the score is better.
    """
    gains = [score if higher_is_better else -score for score in scores]
    order = sorted(range(len(costs)), key=lambda i: (costs[i], -gains[i]))
    front: list[int] = []
    for i in order:
        last = front[-1] if front else i
        same = (costs[i], gains[i]) == (costs[last], gains[last])
        if same or gains[i] > gains[last]:
            front.append(i)
    return front
