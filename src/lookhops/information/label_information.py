"""What h hops tell about the target of a graph, in numbers and in words."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, SupportsFloat

import pandas as pd

from lookhops.core.arrays import Array
from lookhops.core.paired import Estimate, corrected_t
from lookhops.core.words import compact_percent, counted

#: A smaller p-value is beyond noise.
LEVEL = 0.05


@dataclass(frozen=True, eq=False)
class LabelInformation:
    """What h hops tell about the classes, or about a number.

    Args:
        name: The data set.
        graphs: How many graphs were looked at.
        scores: Validation accuracy (of numbers, R²) with 0 to H hops on each split, shape
            (H + 1, splits).
        naive: That of the commonest class (of numbers, the mean), shape (splits).
        validation_to_train: Validation graphs over training graphs.
        number: The number that is told; none where it is classes.
    """

    name: str
    graphs: int
    scores: Array
    naive: Array
    validation_to_train: float
    number: str | None = None

    @property
    def max_hops(self) -> int:
        """The most hops that were looked at."""
        return len(self.scores) - 1

    @property
    def mean(self) -> Array:
        """Mean score over the splits, shape (H + 1)."""
        return self.scores.mean(1)

    @property
    def std(self) -> Array:
        """Sample standard deviation over the splits, shape (H + 1)."""
        return self.scores.std(1, ddof=1)

    @property
    def best(self) -> int:
        """The hops with the highest mean score, the fewest of them."""
        return int(self.mean.argmax())

    @cached_property
    def lost(self) -> list[Estimate]:
        """How far h hops are below the best number of hops, paired over splits."""
        return self._paired(self.scores[self.best] - self.scores)

    @cached_property
    def gained(self) -> list[Estimate]:
        """How far h hops are above the commonest class or the mean, paired over splits."""
        return self._paired(self.scores - self.naive)

    @property
    def enough(self) -> int | None:
        """The fewest hops that lose nothing beyond noise, or none where no hops tell anything.

        Beyond noise is a difference with p < 0.05 in the corrected resampled t-test, p multiplied
        by the number of depths compared (Bonferroni). What h hops lose against the best number of
        hops must not be beyond noise, and what they gain on the commonest class, or the mean, must
        be.
        """
        hops = range(self.max_hops + 1)
        fits = (h for h in hops if self._real(self.gained[h]) and not self._real(self.lost[h]))
        return next(fits, None)

    def _real(self, difference: Estimate) -> bool:
        """Whether a difference is above 0 beyond noise."""
        return difference.mean > 0 and difference.p * len(self.scores) < LEVEL

    def _paired(self, differences: Array) -> list[Estimate]:
        return [corrected_t(one, self.validation_to_train) for one in differences]

    # ---------------------------------------------------------------- as text and numbers

    @property
    def metric(self) -> str:
        """What the scores are: ``accuracy`` or ``r2``."""
        return "accuracy" if self.number is None else "r2"

    def sentence(self) -> str:
        """The answer in words."""
        h, chance = self.enough, self._written(self.naive.mean())
        of_classes = self.number is None
        what = "Your classes are" if of_classes else f"{self.number} is"
        if h is None:
            told = "your classes" if of_classes else str(self.number)
            rival = f"always naming the commonest class ({chance})" if of_classes else "the mean"
            return (
                f"What lies within {counted(self.max_hops, 'hop')} does not tell {told}: no number "
                f"of hops does better, beyond noise, than {rival}. This is what counts of exact "
                "neighbourhoods tell a linear model; sizes and numbers may tell more: lookhops "
                "compare has models that read these."
            )
        reached = self._written(self.mean[h])
        if of_classes:
            reached += f" right, against {chance} for the commonest class"
        if h == 0:
            said = f"{what} told by the nodes alone, without any edge: {reached}."
        else:
            decided = "decided" if of_classes else "told"
            said = (
                f"{what} {decided} within {counted(h, 'hop')}: {reached} and "
                f"{self._written(self.mean[h - 1])} within {counted(h - 1, 'hop')}."
            )
        if h == self.max_hops == 0:
            return said
        if h == self.max_hops:
            return f"{said} The last hop still helped: look farther (--max-hops {h + 2})."
        most = f" (at most {self._written(self.mean[self.best])}, with {self.best})"
        return f"{said} More hops gain nothing beyond noise{most if self.best > h else ''}."

    def _written(self, score: SupportsFloat) -> str:
        """A score in words: ``80.0%``, ``R² 0.80``."""
        return compact_percent(score) if self.number is None else f"R² {float(score):.2f}"

    def to_frame(self) -> pd.DataFrame:
        """One row a number of hops: the score, its spread, what is lost against the best."""
        return pd.DataFrame(
            {
                "hops": range(self.max_hops + 1),
                self.metric: self.mean,
                "std": self.std,
                "lost": [lost.mean for lost in self.lost],
                "low": [lost.low for lost in self.lost],
                "high": [lost.high for lost in self.lost],
            }
        )

    def to_dict(self) -> dict[str, Any]:
        """Everything a report needs, as plain numbers and text that JSON can hold."""
        return {
            "graphs": self.graphs,
            "splits": self.naive.size,
            "hops": list(range(self.max_hops + 1)),
            **({} if self.number is None else {"number": self.number}),
            self.metric: self.mean.tolist(),
            "std": self.std.tolist(),
            "lost": [lost.mean for lost in self.lost],
            "lost_interval": [[lost.low, lost.high] for lost in self.lost],
            "majority" if self.number is None else "of_the_mean": float(self.naive.mean()),
            "enough": self.enough,
            "sentence": self.sentence(),
        }
