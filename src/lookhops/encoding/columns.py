"""The columns that a model reads of nodes or of edges, and features as these columns."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from lookhops.core.column_finder import called
from lookhops.encoding.scale import Scale
from lookhops.graphs.features import Features, Names, feature_columns
from lookhops.graphs.indexing import take
from lookhops.ops.one_hot import one_hot

#: The value that stands for all that a label never was in training.
NOT_SEEN = "not seen"


@dataclass(frozen=True)
class Columns(Names):
    """The features of nodes or of edges: which there are, and what their labels can be.

    Args:
        blanks: The numbers that are blank (NaN) somewhere: each has a column more, which says
            where.
        weight: The number of edges that is their weight: it multiplies them, and is no feature.
            A weight is never blank.
    """

    blanks: tuple[str, ...] = ()
    weight: str | None = None

    @classmethod
    def of(cls, features: Features) -> Columns:
        """The columns of features by their names alone."""
        return cls(features.number_names, features.label_names, features.label_values)

    @classmethod
    def fit(cls, features: Features, weights: Collection[str] = ()) -> Columns:
        """The columns of a set.

        Args:
            features: Those of nodes or of edges.
            weights: The names that a weight may have.
        """
        weight = next((name for name in features.number_names if name in weights), None)
        blanks = tuple(name for name in features.blanks if name != weight)
        return replace(cls.of(features), blanks=blanks, weight=weight)

    # ---------------------------------------------------------------- what there is

    @property
    def encoded(self) -> list[int]:
        """Which of the numbers are encoded: all but the weight."""
        return [place for place, name in enumerate(self.numbers) if name != self.weight]

    @property
    def encoded_numbers(self) -> int:
        """Columns of :meth:`encode` that are numbers, or say where these are blank."""
        return len(self.encoded) + len(self.blanks)

    @property
    def owners(self) -> list[int]:
        """For each column of :meth:`encode` its feature: numbers are counted first, then labels."""
        blanks = [self.numbers.index(name) for name in self.blanks]
        labels = [len(self.numbers) + i for i, size in enumerate(self.sizes) for _ in range(size)]
        return [*self.encoded, *blanks, *labels]

    # ---------------------------------------------------------------- features in these columns

    def called_as(self, others: Columns) -> Columns:
        """The same with the names of others, where they differ in their case alone."""
        own, known = {*self.features}, others.features

        def rename(names: Sequence[str]) -> tuple[str, ...]:
            found = ((name, called(name, known)) for name in names)
            return tuple(name if not other or other in own else other for name, other in found)

        return replace(self, numbers=rename(self.numbers), labels=rename(self.labels))

    def with_not_seen(self, labels: Collection[str]) -> Columns:
        """The same with :data:`NOT_SEEN` as one more value of these labels."""
        pairs = zip(self.labels, self.values, strict=True)
        values = ((*own, NOT_SEEN) if label in labels else own for label, own in pairs)
        return replace(self, values=tuple(values))

    @property
    def without_not_seen(self) -> Columns:
        """The same without :data:`NOT_SEEN` at the end of labels' values."""
        values = (own[:-1] if own[-1:] == (NOT_SEEN,) else own for own in self.values)
        return replace(self, values=tuple(values))

    # ---------------------------------------------------------------- encoding

    def encode(
        self,
        features: Features,
        index: Tensor | None = None,
        dtype: torch.dtype = torch.float32,
        scale: Scale | None = None,
    ) -> Tensor:
        """Numbers but the weight, which of them are blank, then one-hot labels.

        Args:
            features: Features in these columns.
            index: Numbers of the rows, shape (m); none means all.
            dtype: Type of the result.
            scale: The scale of the numbers; of several members, the rows stand member after
                member. By default numbers stay as they are.

        Returns:
            Shape (m, columns), on the features' device and without waiting for it. A label that
            was not seen is zeros.
        """
        numbers, labels, sizes = features.numbers, features.labels, features.label_sizes
        if index is not None:
            alone = numbers is None and sizes == self.sizes
            if labels is not None and alone:
                return one_hot(labels, index, sizes, dtype)
            numbers, labels = take(numbers, index), take(labels, index)
        if numbers is not None:
            numbers = self._encoded_numbers(numbers, dtype, scale)
        encoded = feature_columns(numbers, labels, sizes, dtype)
        if sizes == self.sizes:
            return encoded
        known = [True] * (encoded.shape[1] - sum(sizes))
        for size, own in zip(sizes, self.sizes, strict=True):
            known += [number < own for number in range(size)]
        return encoded[:, torch.tensor(known, device=encoded.device).nonzero().flatten()]

    def _encoded_numbers(self, numbers: Tensor, dtype: torch.dtype, scale: Scale | None) -> Tensor:
        encoded = numbers if scale is None else scale(numbers.to(dtype))
        if self.weight is not None:
            # Not by a list of numbers, which would have to be copied to a GPU.
            at = self.numbers.index(self.weight)
            encoded = torch.cat((encoded[:, :at], encoded[:, at + 1 :]), 1)
        places = map(self.numbers.index, self.blanks)
        blank = [numbers[:, place].isnan().to(dtype)[:, None] for place in places]
        return torch.cat((encoded, *blank), 1) if blank else encoded

    def weights(
        self, features: Features, index: Tensor | None, dtype: torch.dtype
    ) -> Tensor | None:
        """The weights of edges, shape (m), or none; arguments as for :meth:`encode`."""
        if self.weight is None or features.numbers is None:
            return None
        weights = features.numbers[:, self.numbers.index(self.weight)]
        return (weights if index is None else weights[index]).to(dtype)
