"""Numbers on a common scale, learnt from a training part."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, fields
from typing import NamedTuple

import torch
from torch import Tensor

#: Half of a normal distribution lies within this many standard deviations of its median.
QUARTILE = 0.6745


@dataclass(frozen=True, eq=False)
class Scale:
    r"""Columns of numbers as a model is told of them: :math:`f((x - m) \cdot r)`.

    With ``none`` :math:`m = 0`, :math:`r = 1`. With ``standard`` :math:`m` is the mean of the
    training part and :math:`1 / r` its standard deviation. With ``asinh`` :math:`m` is the median,
    :math:`1 / r` the standard deviation that the quartiles of a normal distribution would have, and
    :math:`f` the inverse hyperbolic sine: linear around the median, logarithmic in the tails. A
    column that is constant in the training part is left as it is. A blank (NaN) is told as the mean
    of what the training part is told.

    Args:
        shift: The :math:`m` of each column, float64, shape (a) or, of several members,
            (members, 1, a).
        factor: The :math:`r`, of the same shape.
        curved: Whether :math:`f` is the inverse hyperbolic sine, not the identity; same shape.
        fill: What a blank is told as; same shape.
    """

    shift: Tensor
    factor: Tensor
    curved: Tensor
    fill: Tensor

    @classmethod
    def fit(cls, kind: str, values: Tensor) -> Scale:
        """Learn a scale from the columns' values in a training part.

        Args:
            kind: ``none``, ``standard`` or ``asinh``.
            values: Shape (n, a).
        """
        seen = values.detach().cpu().double()  # here, so that it is the same for every device
        columns = [_fit_column(kind, column[~column.isnan()]) for column in seen.unbind(1)]
        parts = zip(*columns, strict=True) if columns else ((), (), ())
        shift, factor, curved = (torch.tensor(own, dtype=torch.float64) for own in parts)
        found = cls(shift, factor, curved > 0, torch.full_like(shift, torch.nan))
        return cls(shift, factor, curved > 0, found(seen).nanmean(0).nan_to_num(0.0))

    def __call__(self, values: Tensor) -> Tensor:
        """Columns on this scale, blanks filled, shape (n, a); of members one after another."""
        own, shape = self.to(values), values.shape
        if own.shift.dim() > 1:
            values = values.view(len(own.shift), -1, shape[-1])
        told = (values - own.shift) * own.factor
        told = torch.where(own.curved, told.asinh(), told)
        return torch.where(told.isnan(), own.fill, told).view(shape)

    def to(self, like: Tensor) -> Scale:
        """The same where a tensor is, and of its type."""
        shift, factor, fill = (own.to(like) for own in (self.shift, self.factor, self.fill))
        return Scale(shift, factor, self.curved.to(like.device), fill)

    @classmethod
    def stack(cls, members: Sequence[Scale], like: Tensor) -> Scale:
        """The scales of several members, where a tensor is, for their values one after another."""
        parts = zip(*map(astuple, members), strict=True)
        return cls(*(torch.stack(own)[:, None] for own in parts)).to(like)

    def tensors(self) -> dict[str, Tensor]:
        """What a model folder keeps of it."""
        return {own.name: getattr(self, own.name) for own in fields(self)}

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Tensor]) -> Scale:
        """The scale that :meth:`tensors` gave."""
        return cls(*(tensors[own.name] for own in fields(cls)))


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
    """Shift, factor and whether it is curved, of one column without its blanks."""
    if kind == "none" or not values.numel() or values.min() == values.max():
        return 0.0, 1.0, False
    spread = float(values.std(correction=0))
    if kind == "standard":
        return float(values.mean()), 1 / spread, False
    ordered = values.sort().values
    low, middle, high = (float(ordered[int(q * (len(ordered) - 1))]) for q in (0.25, 0.5, 0.75))
    # Where more than half of the values are equal the quartiles tell nothing.
    return middle, 1 / ((high - low) / (2 * QUARTILE) or spread), True
