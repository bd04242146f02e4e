"""Numbers on a common scale, fitted on a training part."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from torch import Tensor

from lookhops.core.tensors import Expected, Saved, numbers, saved

#: Half of a normal distribution lies within this many standard deviations of its median.
QUARTILE = 0.6745
#: Tails are heavy where the standard deviation is more than so many times what quartiles say.
HEAVY = 2.0
#: Quantiles of a column; between them its distribution is taken as even.
KNOTS = 33


@dataclass(frozen=True, eq=False)
class Scale(Saved):
    r"""Scaled columns of numbers.

    With ``none`` a number stays as it is. With ``standard`` it becomes :math:`(x - m) / s`, with
    mean and standard deviation of the training part. With ``quantiles`` it becomes the value of a
    standard normal distribution that has as many values below it as :math:`x` has in the training
    part: interpolated between 33 quantiles, and no farther than the outer ones.
    ``standard`` does that too with a column that has heavy tails, where the standard deviation is
    more than twice what a normal distribution with its quartiles would have.

    A column that is constant in the training part is left as it is. A blank (NaN) becomes the
    mean of the scaled training part.
    """

    # Of each column; of several members the shape is (members, 1, columns).
    shift: Tensor = saved(numbers("columns"))  # the m
    factor: Tensor = saved(numbers("columns"))  # the 1 / s
    fill: Tensor = saved(numbers("columns"))  # what a blank becomes
    bent: Tensor = saved(Expected(("columns",), "bool"))  # whether the quantiles count instead
    # Shape ([members,] columns, knots), without knots where they count for no column:
    knots: Tensor = saved(numbers("columns", "knots"))  # quantiles, sorted
    scores: Tensor = saved(numbers("columns", "knots"))  # what a number at each knot becomes

    @classmethod
    def fit(cls, kind: str, values: Tensor) -> Scale:
        """Fit ``none``, ``standard`` or ``quantiles`` on the values of a training part, (n, a)."""
        seen = values.detach().cpu().double()  # here, so that it is the same for every device
        columns = [column[~column.isnan()] for column in seen.unbind(1)]
        fitted = [_fit_column(kind, column) for column in columns]
        table = torch.tensor(fitted, dtype=torch.float64).view(-1, 3)
        shift, factor, bent = table.T.clone(memory_format=torch.contiguous_format)
        knots = scores = shift.new_zeros(len(columns), 0)
        if bool(bent.any()):
            knots, scores = torch.stack([_quantiles(column) for column in columns], 1)
        blank = torch.full_like(shift, torch.nan)
        found = cls(shift, factor, blank, bent.bool(), knots, scores)
        return replace(found, fill=found(seen).nanmean(0).nan_to_num(0.0))

    def __call__(self, values: Tensor) -> Tensor:
        """Columns on this scale, blanks filled, shape (n, a); of members one after another."""
        here, shape = self.to(values), values.shape
        if here.shift.dim() > 1:
            values = values.view(len(here.shift), -1, shape[-1])
        scaled = (values - here.shift) * here.factor
        if here.knots.shape[-1]:
            scaled = torch.where(here.bent, here._interpolated(values), scaled)
        return torch.where(values.isnan(), here.fill, scaled).view(shape)

    def _interpolated(self, values: Tensor) -> Tensor:
        """Scores between those of the knots on either side."""
        x = values.transpose(-1, -2).contiguous()
        if torch.compiler.is_exporting():
            right = (self.knots[..., None, :] < x[..., None]).sum(-1)
        else:
            right = torch.searchsorted(self.knots, x)
        right = right.clamp(1, self.knots.shape[-1] - 1)
        low, high = self.knots.gather(-1, right - 1), self.knots.gather(-1, right)
        share = ((x - low) / (high - low)).nan_to_num(1.0).clamp(0, 1)  # equal knots: 0 / 0
        below, above = self.scores.gather(-1, right - 1), self.scores.gather(-1, right)
        return (below + share * (above - below)).transpose(-1, -2)

    def to(self, like: Tensor) -> Scale:
        """The same where a tensor is, and of its type."""
        moved = {
            name: value.to(like.device, None if value.dtype == torch.bool else like.dtype)
            for name, value in self.tensors().items()
        }
        return Scale(**moved)

    @classmethod
    def stack(cls, members: Sequence[Scale], like: Tensor) -> Scale:
        """The scales of several members, where a tensor is, for their values one after another."""
        most, parts = max(one.knots.shape[-1] for one in members), {}
        for name in members[0].tensors():
            each = [getattr(one, name) for one in members]
            if name in ("knots", "scores"):  # of a member without bent columns: none counts
                each = [one if one.shape[-1] else one.new_zeros(len(one), most) for one in each]
                parts[name] = torch.stack(each)
            else:
                parts[name] = torch.stack(each)[:, None]
        return cls(**parts).to(like)


class Scales(NamedTuple):
    """The scales of the numbers of nodes and of edges; none where there are no numbers."""

    nodes: Scale | None = None
    edges: Scale | None = None

    @classmethod
    def stack(cls, members: Sequence[Scales], like: Tensor) -> Scales:
        """Those of several members; see :meth:`Scale.stack`."""
        sides = ([one for one in side if one is not None] for side in zip(*members, strict=True))
        return cls(*(Scale.stack(known, like) if known else None for known in sides))


def _fit_column(kind: str, values: Tensor) -> tuple[float, float, bool]:
    """Shift, factor and whether it is bent, of a column without its blanks."""
    if kind == "none" or not values.numel() or values.min() == values.max():
        return 0.0, 1.0, False
    spread = float(values.std(correction=0))
    ordered = values.sort().values
    low, high = (float(ordered[int(q * (len(ordered) - 1))]) for q in (0.25, 0.75))
    # Where more than half of the values are equal the quartiles tell nothing.
    usual = (high - low) / (2 * QUARTILE) or spread
    return float(values.mean()), 1 / spread, kind == "quantiles" or spread > HEAVY * usual


def _quantiles(values: Tensor) -> Tensor:
    """Quantiles of a column without blanks, and their scores, of equal ones the mean."""
    if not values.numel():
        return values.new_zeros(2, KNOTS)
    number = torch.arange(KNOTS, dtype=torch.float64)
    knots = values.sort().values[(number / (KNOTS - 1) * (len(values) - 1)).long()]
    scores = torch.special.ndtri((number + 0.5) / KNOTS)
    same = (knots[:, None] == knots).double()
    return torch.stack((knots, same @ scores / same.sum(1)))
