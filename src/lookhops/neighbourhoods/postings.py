"""How much graphs share with those of an index, by index arithmetic alone: the way of a GPU."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from lookhops.graphs.indexing import elements_of, segment_of, stable_argsort, to_offsets
from lookhops.neighbourhoods.counts import SparseRows


@dataclass(frozen=True, eq=False)
class Postings:
    """For each feature the graphs that have it: the common features dense, the rare ones as lists.

    Args:
        place: Column of each feature in ``dense``, -1 for a rare one, shape (f).
        dense: Counts of the common features, float32, shape (common, g).
        offsets: Where the list of each feature begins, and the end, shape (f + 1).
        graphs: The graphs in the lists.
    """

    place: Tensor
    dense: Tensor
    offsets: Tensor
    graphs: Tensor

    @classmethod
    def of(cls, rows: SparseRows, common: float) -> Postings:
        """The postings of an index.

        Args:
            rows: The features of each graph.
            common: Features in a larger share of the graphs are common.
        """
        count = rows.indices.bincount(minlength=rows.num_columns)
        many = count > common * len(rows)
        place = torch.where(many, many.cumsum(0) - 1, -1)
        graph = segment_of(rows.offsets, rows.indices.numel())
        dense = torch.zeros(int(many.sum()), len(rows), device=graph.device)
        here = many[rows.indices]
        dense.index_put_(
            (place[rows.indices[here]], graph[here]), torch.ones((), device=graph.device), True
        )
        order = stable_argsort(rows.indices)
        return cls(place, dense, to_offsets(count), graph[order])

    def shared(self, rows: SparseRows, step: int) -> Iterator[tuple[int, Tensor]]:
        """How many features graphs share with each of the index: so many graphs at a time.

        Args:
            rows: The features of the graphs.
            step: How many graphs.

        Yields:
            The number of the first graph, and the counts, float32, shape (step, g).
        """
        one = torch.ones((), device=self.dense.device)
        for start in range(0, len(rows), step):
            number = torch.arange(start, min(start + step, len(rows)), device=one.device)
            part = rows.select(number)
            row = segment_of(part.offsets, part.indices.numel())
            place = self.place[part.indices]
            common = place >= 0
            told = torch.zeros(len(part), len(self.dense), device=one.device)
            told.index_put_((row[common], place[common]), one, accumulate=True)
            found = told @ self.dense
            rare = part.indices[~common]
            entry, ends, _ = elements_of(self.offsets, rare)
            owner = torch.repeat_interleave(row[~common], ends.diff(), output_size=entry.numel())
            found.index_put_((owner, self.graphs[entry]), one, accumulate=True)
            yield start, found
