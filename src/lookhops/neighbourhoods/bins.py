"""Numeric attributes as whole numbers, so that neighbourhoods with nearly equal ones are equal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class Bins:
    """Bins of each column of attributes, learnt from a training part; blanks (NaN) are one more.

    Args:
        edges: For each column the inner edges of its bins, sorted: a value is in the bin whose
            number is how many edges are not above it.
    """

    edges: tuple[Tensor, ...]

    @classmethod
    def learn(cls, attributes: Tensor, count: int) -> Bins:
        """At most ``count`` bins a column, each with about as many of these values.

        Args:
            attributes: Values of the training nodes, shape (n, a).
            count: Number of bins. Columns with fewer different values have fewer.
        """
        edges = []
        for column in attributes.unbind(1):
            values = column[~column.isnan()].sort().values
            inner = torch.arange(1, count, device=values.device) * values.numel() // count
            # An edge at the smallest value would leave the first bin empty.
            distinct = values[inner].unique() if values.numel() else values
            edges.append(distinct[distinct > values[:1]])
        return cls(tuple(edges))

    def __call__(self, attributes: Tensor) -> Tensor:
        """The bin of each value, int64, same shape (n, a)."""
        columns = []
        for column, edges in zip(attributes.T.contiguous(), self.edges, strict=True):
            known = edges.to(column)  # the bin is how many of these are not above the value
            if torch.compiler.is_exporting():
                number = (known <= column[:, None]).sum(1)
            else:
                number = torch.bucketize(column, known, right=True)
            columns.append(torch.where(column.isnan(), len(edges) + 1, number))
        return torch.stack(columns, 1) if columns else attributes.long()

    def tensors(self) -> dict[str, Tensor]:
        """What a model folder keeps of them."""
        sizes = torch.tensor([len(edges) for edges in self.edges])
        return {"edges": torch.cat(self.edges), "sizes": sizes}

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Tensor]) -> Bins:
        """The bins that :meth:`tensors` gave."""
        return cls(tensors["edges"].split(tensors["sizes"].tolist()))
