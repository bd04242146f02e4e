"""What answers to new graphs are held against: the graphs that a model has seen, in short."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from lookhops.core.arrays import Array
from lookhops.graphs import Graphs
from lookhops.models.neighbours import Known
from lookhops.neighbourhoods import SimilarityIndex, content_hashes
from lookhops.neighbourhoods.similarity import sample
from lookhops.sources.rdkit.descriptors import reference_values
from lookhops.sources.splits import Split
from lookhops.tasks import Task
from lookhops.training.randomness import FINAL

#: Share of the validation graphs that are called unlike the training graphs.
UNLIKE = 0.01
#: Splits that the limit is learnt from: more of them would hardly move it.
LEARNT_FROM = 3
#: Validation graphs of each that are looked at; of more, every second, third, ... one.
MOST_VAL = 20_000
#: Begins the names of tensors with the scores of a seed's validation graphs.
SCORES = "nonconformity."


@dataclass(frozen=True, eq=False)
class Reference:
    """The graphs that a model has seen: what they are, what they look like, how well it knew them.

    Args:
        train: :func:`~lookhops.neighbourhoods.content_hashes` of all training graphs, sorted.
        val: Those of the validation graphs of any seed that no seed was trained on, sorted.
        index: The training graphs, to find the most similar one in.
        limit: 99 of 100 validation graphs are at least so similar to their training part.
        scores: For each seed and target, how far the truth of its validation graphs is from its
            answers (:mod:`lookhops.tasks.conformal`).
        known: Names and targets of the graphs in the index; none in an older folder.
        descriptors: Those that it reads, of a few molecules as RDKit computed them, shape
            (molecules, names); none where it reads none.
    """

    train: Tensor
    val: Tensor
    index: SimilarityIndex
    limit: float
    scores: Mapping[int, Sequence[Array]]
    known: Known | None = None
    descriptors: Tensor | None = None

    @classmethod
    def of(
        cls,
        graphs: Graphs,
        task: Task,
        splits: Sequence[Split],
        scores: Mapping[int, Sequence[Array]],
        ignores_edges: bool = False,
        descriptors: Sequence[str] = (),
    ) -> Reference:
        """What is kept of the graphs of a training.

        Args:
            graphs: All graphs.
            task: What was asked of them.
            splits: Of each seed.
            scores: Of each seed and target.
            ignores_edges: Whether the model looks at nothing that edges carry: then graphs are
                alike whatever they carry.
            descriptors: Names of RDKit's descriptors that it reads.
        """
        graphs = graphs.to("cpu")
        hashes = content_hashes(graphs)
        graphs = graphs.without_edge_features() if ignores_edges else graphs
        train, val = (_all([getattr(split, part) for split in splits]) for part in ("train", "val"))
        seen = hashes[train].unique()
        held = hashes[val].unique()
        indexed = sample(graphs, train)
        return cls(
            seen,
            held[~torch.isin(held, seen)],
            SimilarityIndex.of(graphs, indexed),
            _limit(graphs, splits[:LEARNT_FROM]),
            scores,
            Known.of(graphs, task, indexed),
            torch.from_numpy(reference_values(descriptors)) if descriptors else None,
        )

    def computed_otherwise(self, descriptors: Sequence[str]) -> list[str]:
        """Which of the descriptors that it reads RDKit computes otherwise today."""
        if self.descriptors is None or self.descriptors.shape[1] != len(descriptors):
            return []
        then, now = self.descriptors.numpy(), reference_values(descriptors)
        same = np.isclose(then, now, rtol=1e-4, atol=1e-6, equal_nan=True).all(0)
        return [name for name, is_same in zip(descriptors, same, strict=True) if not is_same]

    def scores_of(self, seed: int) -> Sequence[Array]:
        """Those of a seed, for each target; empty where there are none.

        Of the networks that were trained on all graphs they are those of all seeds together.
        """
        if seed != FINAL:
            return self.scores.get(seed, ())
        return [np.concatenate(each) for each in zip(*self.scores.values(), strict=True)]

    def part_of(self, graphs: Graphs) -> Array:
        """The part that each graph was in, by its content, shape (g).

        ``train`` in the training part of any seed; ``val`` in a validation part alone; else an
        empty text: the model has not learnt from it.
        """
        hashes = content_hashes(graphs.to("cpu"))
        trained, held = (torch.isin(hashes, own).numpy() for own in (self.train, self.val))
        return np.where(trained, "train", np.where(held, "val", ""))

    def tensors(self) -> dict[str, Tensor]:
        """What a model folder keeps of it."""
        return {
            "train": self.train,
            "val": self.val,
            "codes": self.index.codes,
            "offsets": self.index.offsets,
            "limit": torch.tensor(self.limit, dtype=torch.float64),
            **({} if self.known is None else self.known.tensors()),
            **({} if self.descriptors is None else {"descriptors": self.descriptors}),
            **{
                f"{SCORES}{seed}.{target}": torch.from_numpy(values)
                for seed, each in self.scores.items()
                for target, values in enumerate(each)
            },
        }

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Tensor], task: Task) -> Reference:
        """The reference that :meth:`tensors` gave, of a model of this task."""
        index = SimilarityIndex(tensors["codes"], tensors["offsets"])
        scores: dict[int, list[Array]] = {}
        own = [name.split(".")[1:] for name in tensors if name.startswith(SCORES)]
        for seed, target in sorted((int(seed), int(target)) for seed, target in own):
            scores.setdefault(seed, []).append(tensors[f"{SCORES}{seed}.{target}"].numpy())
        limit, known = float(tensors["limit"]), Known.from_tensors(tensors, len(index), task)
        descriptors = tensors.get("descriptors")
        return cls(tensors["train"], tensors["val"], index, limit, scores, known, descriptors)


def _all(parts: Sequence[Tensor]) -> Tensor:
    """The numbers in any of these parts, each once."""
    return torch.cat([part.cpu() for part in parts]).unique()


def _limit(graphs: Graphs, splits: Sequence[Split]) -> float:
    """The similarity to the training part that nearly all validation graphs have."""
    near = [
        SimilarityIndex.of(graphs, split.train).nearest(
            graphs.select(split.val[:: -(-len(split.val) // MOST_VAL)])
        )
        for split in splits
        if len(split.val)
    ]
    return float(np.quantile(np.concatenate(near), UNLIKE, method="lower"))
