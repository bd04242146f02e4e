"""Which trials fall behind, and are not worth going on with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import TYPE_CHECKING

from lookhops.tasks import Metric

if TYPE_CHECKING:
    from optuna import Trial
    from optuna.trial import FrozenTrial

#: Epochs of the first inner split after which trials are compared. With the usual patience most
#: have ended by the 70th; a comparison before the 20th would end some of the best.
RUNGS = (20, 40, 80)
#: Stands for an epoch after all: the end of the first inner split.
END = 1_000_000
#: Fewer trials than this are no median to compare with.
FEW = 4


class Rungs:
    """Compares trials that have come to the same point of the first inner split.

    A trial falls behind where its best score so far is worse than the median of all that came to
    the same rung, those of its own stack among them: as in successive halving, about half go on.
    The first trial of a study never does: it is what the others are compared with.

    Args:
        trials: Those that are finished.
        metric: What they are judged by.
    """

    def __init__(self, trials: Sequence[FrozenTrial], metric: Metric) -> None:
        self.metric = metric
        self.reached: dict[int, list[float]] = {}
        for trial in trials:
            for step, value in trial.intermediate_values.items():
                self.reached.setdefault(step, []).append(value)

    def behind(self, step: int, scores: Mapping[Trial, float]) -> set[Trial]:
        """The trials of a stack that are behind at a rung; all are told to Optuna.

        Args:
            step: The epoch, or :data:`END`.
            scores: The best score so far of each.
        """
        reached = self.reached.setdefault(step, [])
        for trial, score in scores.items():
            trial.report(score, step)
            reached.append(score)
        if len(reached) < FEW:
            return set()
        middle, sign = median(reached), 1 if self.metric.higher_is_better else -1
        worse = (trial for trial, score in scores.items() if sign * score < sign * middle)
        return {trial for trial in worse if trial.number}
