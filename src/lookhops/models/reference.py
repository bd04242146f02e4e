"""What answers to new graphs are held against: the graphs that a model has seen, in short."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from math import inf
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lookhops.core.arrays import Array
from lookhops.core.errors import LookHopsError
from lookhops.core.tensors import Expected, check_tensors, codes, numbers, offsets
from lookhops.core.words import MINUS
from lookhops.encoding.preprocessing import PreparedGraphs
from lookhops.graphs import Graphs
from lookhops.graphs.indexing import Texts
from lookhops.neighbourhoods import SimilarityIndex, content_hashes
from lookhops.neighbourhoods.similarity import HOPS, sample
from lookhops.sources.rdkit.descriptors import reference_values
from lookhops.sources.splits import Split
from lookhops.tasks import Task
from lookhops.tasks.answers import Column
from lookhops.training.runs import FINAL

#: The most neighbours that are asked for.
MOST_NEIGHBOURS = 100
#: Share of the validation graphs that are called unlike the training graphs.
UNLIKE = 0.01
#: Splits that the limit is learnt from: more of them would hardly move it.
LEARNT_FROM = 3
#: Validation graphs of each that are looked at; of more, every second, third, ... one.
MOST_VAL = 20_000
#: Begins the names of tensors with the scores of a seed's validation graphs.
SCORES = "nonconformity."


@dataclass(frozen=True, eq=False)
class Neighbours:
    """The training graphs that new graphs are most similar to, the most similar first.

    Args:
        similarity: From 0 to 1, shape (g, k).
        ids, smiles: Of each, shape (g, k); no SMILES where graphs are no molecules.
        values: The name of its class or its number for each target, shape (g, k, targets); NaN
            where it is blank.
        names: Of the targets.
        are_classes: Whether each target is a class.
    """

    similarity: Array
    ids: Array
    smiles: Array | None
    values: Array
    names: tuple[str, ...]
    are_classes: tuple[bool, ...]

    @property
    def count(self) -> int:
        """How many each graph has."""
        return int(self.similarity.shape[1])

    def records(self, graph: int) -> list[dict[str, Any]]:
        """Those of one graph, as JSON can hold them; ``target`` is the only one."""
        found = []
        for rank in range(self.count):
            values = [None if one != one else one for one in self.values[graph, rank]]
            targets = dict(zip(self.names, values, strict=True))
            smiles = {} if self.smiles is None else {"smiles": self.smiles[graph, rank]}
            measured = {"targets": targets} if len(values) > 1 else {"target": values[0]}
            similarity = {"similarity": float(self.similarity[graph, rank])}
            found.append({"id": self.ids[graph, rank], **smiles, **measured, **similarity})
        return found

    def columns(self) -> dict[str, Column]:
        """The columns of a table: ``neighbour_1``, ``neighbour_1_target``, ..."""
        found: dict[str, Column] = {}
        for rank in range(self.count):
            name = f"neighbour_{rank + 1}"
            found[name] = self.ids[:, rank], ""
            if self.smiles is not None:
                found[f"{name}_smiles"] = self.smiles[:, rank], ""
            for number, target in enumerate(self.names):
                values = self.values[:, rank, number]
                key = f"{name}_target" if len(self.names) == 1 else f"{name}_target_{target}"
                if self.are_classes[number]:
                    found[key] = np.where(values == values, values, ""), ""
                else:
                    found[key] = values, "%.15g"
            found[f"{name}_similarity"] = self.similarity[:, rank], "%.3f"
        return found

    def said(self, graph: int, most: int, name: str) -> list[str]:
        """The first neighbours of one graph in words, as ``1-octene (-4.44; similarity 0.89)``.

        Where the model was trained on it, it is not named itself, which its ``name`` tells.
        """
        itself = (self.ids[graph] == name) & (self.similarity[graph] == 1)
        others = np.delete(np.arange(self.count), itself.argmax() if itself.any() else [])
        said = []
        for rank in others[:most]:
            values = dict(zip(self.names, self.values[graph, rank], strict=True))
            texts = {
                target: value if isinstance(value, str) else f"{value:.15g}".replace("-", MINUS)
                for target, value in values.items()
                if value == value
            }
            named = [f"{target} {text}" for target, text in texts.items()]
            measured = ", ".join(named if len(values) > 1 else texts.values()) or "not measured"
            similarity = f"similarity {self.similarity[graph, rank]:.2f}"
            said.append(f"{self.ids[graph, rank]} ({measured}; {similarity})")
        return said


@dataclass(frozen=True, eq=False)
class Known:
    """The names of the graphs in an index, the molecules, and their targets.

    These are numbers of classes, or numbers, NaN where blank, shape (graphs, targets).
    """

    ids: Texts
    smiles: Texts | None
    targets: Tensor

    @classmethod
    def of(cls, graphs: Graphs, task: Task, chosen: Tensor) -> Known:
        """Those of the chosen graphs."""
        rows, smiles = chosen.numpy(), graphs.columns.get("smiles")
        targets = task.targets(graphs).cpu()[chosen].view(len(rows), -1)
        ids = np.asarray(graphs.ids, dtype=object)[rows]
        texts = None if smiles is None else Texts.of([str(one) for one in smiles[rows]])
        return cls(Texts.of(ids.tolist()), texts, targets)

    def of_numbers(self, number: Array, similarity: Array, task: Task) -> Neighbours:
        """Those with these numbers, shape (g, k)."""

        def taken(texts: Texts) -> Array:
            found = texts.take(number.ravel()).tolist()
            return np.array(found, dtype=object).reshape(number.shape)

        values = self.targets.numpy()[number].astype(object)
        for column, head in enumerate(task.heads):
            if names := head.task.class_names:
                known = values[..., column] == values[..., column]
                labels = [names[int(one)] for one in values[..., column][known]]
                values[..., column][known] = labels
        smiles = None if self.smiles is None else taken(self.smiles)
        names = tuple(head.title for head in task.heads)
        are_classes = tuple(bool(head.task.class_names) for head in task.heads)
        return Neighbours(similarity, taken(self.ids), smiles, values, names, are_classes)

    def tensors(self) -> dict[str, Tensor]:
        """All of it as named tensors."""
        found = {"targets": self.targets}
        for name, texts in (("ids", self.ids), ("smiles", self.smiles)):
            if texts is not None:
                found[f"{name}.data"] = torch.from_numpy(texts.data.copy())
                found[f"{name}.ptr"] = torch.from_numpy(texts.ptr)
        return found

    @staticmethod
    def table(task: Task, has_smiles: bool) -> dict[str, Expected]:
        """What :meth:`tensors` must be, of as many graphs as there are."""
        found = {"targets": Expected(("graphs", len(task.heads)), blank=True)}
        for name in ("ids", "smiles") if has_smiles else ("ids",):
            found[f"{name}.ptr"] = offsets("graphs", into=f"{name}.data")
            found[f"{name}.data"] = Expected((f"bytes of {name}",), "uint8", 0, 255)
        return found

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Tensor], task: Task) -> Known:
        """What :meth:`tensors` gave, held against :meth:`table`."""
        for head, y in zip(task.heads, tensors["targets"].T, strict=True):
            most = len(head.task.class_names)
            if most and not bool(((y >= 0) & (y < most) | y.isnan()).all()):
                raise LookHopsError(f"'targets' has classes that {head.title!r} has not")
        ids, *smiles = (
            Texts(tensors[f"{name}.data"].numpy(), tensors[f"{name}.ptr"].numpy())
            for name in ("ids", "smiles")
            if f"{name}.data" in tensors
        )
        return cls(ids, smiles[0] if smiles else None, tensors["targets"])


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
        """What is kept of all graphs of a training, with the split of each seed.

        A model that ``ignores_edges`` has graphs that are alike whatever their edges carry.
        """
        graphs = graphs.to("cpu")
        hashes = content_hashes(graphs)
        graphs = graphs.without_edge_features() if ignores_edges else graphs
        train, val = (
            torch.cat([getattr(split, part).cpu() for split in splits]).unique()
            for part in ("train", "val")
        )
        trained, held_out = hashes[train].unique(), hashes[val].unique()
        indexed = sample(graphs, train)
        return cls(
            trained,
            held_out[~torch.isin(held_out, trained)],
            SimilarityIndex.of(graphs, indexed),
            _limit(graphs, splits[:LEARNT_FROM]),
            scores,
            Known.of(graphs, task, indexed),
            torch.from_numpy(reference_values(descriptors)) if descriptors else None,
        )

    def neighbours(self, prepared: PreparedGraphs, count: int, task: Task) -> Neighbours:
        """So many of the most similar training graphs of each graph."""
        assert self.known is not None
        codes = prepared.codes_of(HOPS)
        similarity, number = self.index.most_similar(prepared.graphs, count, codes)
        return self.known.of_numbers(number, similarity, task)

    def computed_otherwise(self, descriptors: Sequence[str]) -> list[str]:
        """Which of the descriptors that the model reads RDKit computes otherwise today."""
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
        trained, held_out = (torch.isin(hashes, part).numpy() for part in (self.train, self.val))
        return np.where(trained, "train", np.where(held_out, "val", ""))

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
    def from_tensors(
        cls,
        tensors: Mapping[str, Tensor],
        task: Task,
        seeds: Sequence[int],
        descriptors: Sequence[str] = (),
    ) -> Reference:
        """The reference that :meth:`tensors` gave, checked."""
        scores = {
            seed: [f"{SCORES}{seed}.{target}" for target in range(len(task.heads))]
            for seed in seeds
        }
        table = {
            "train": codes("train", rising=True),
            "val": codes("val", rising=True),
            "offsets": offsets("graphs", into="codes"),
            "codes": Expected(("codes",), "int32", -inf, inf),
            "limit": numbers(low=0, high=1),
        }
        for name in chain.from_iterable(scores.values()):
            beside = (2,) if name in tensors and tensors[name].dim() > 1 else ()
            table[name] = numbers(f"rows of {name}", *beside, low=0)
        if descriptors:
            table["descriptors"] = Expected(("molecules", len(descriptors)), blank=True)
        has_smiles = not {"smiles.data", "smiles.ptr"}.isdisjoint(tensors)
        of_known = Known.table(task, has_smiles)
        is_known = not of_known.keys().isdisjoint(tensors)
        check_tensors(tensors, table | of_known if is_known else table)
        return cls(
            tensors["train"],
            tensors["val"],
            SimilarityIndex(tensors["codes"], tensors["offsets"]),
            float(tensors["limit"]),
            {seed: [tensors[name].numpy() for name in names] for seed, names in scores.items()},
            Known.from_tensors(tensors, task) if is_known else None,
            tensors.get("descriptors"),
        )


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
