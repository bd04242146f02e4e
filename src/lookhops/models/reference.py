"""What answers to new graphs are held against: the graphs that a model has seen, in short."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import inf
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lookhops.core.arrays import Array
from lookhops.core.errors import LookHopsError
from lookhops.core.tensors import Expected, check_tensors, codes, numbers, offsets, part_of
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
class Reference:
    """The graphs that a model has seen: what they are, what they look like, how well it knew them.

    ==================== ==========================================================================
    tensor               what
    ==================== ==========================================================================
    train                :func:`~lookhops.neighbourhoods.content_hashes` of all training graphs
    val                  those of the validation graphs that no seed was trained on
    codes, offsets       a :class:`SimilarityIndex` of the training graphs
    ids, smiles          texts of the graphs in the index: their names, and the molecules
    targets              the same graphs' numbers or numbers of classes, NaN where blank, shape
                         (graphs, targets)
    limit                99 of 100 validation graphs are at least so similar to their training part
    descriptors          those that the model reads, of a few molecules as RDKit computed them
    nonconformity.s.t    of seed s and target t, how far the truth of the validation graphs is from
                         the answers (:mod:`lookhops.tasks.conformal`)
    ==================== ==========================================================================

    Args:
        tensors: What a model folder keeps; an older one has no ``ids``, ``smiles`` and ``targets``.
    """

    tensors: Mapping[str, Tensor]

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
        index, rows = SimilarityIndex.of(graphs, indexed), indexed.numpy()
        tensors = {
            "train": trained,
            "val": held_out[~torch.isin(held_out, trained)],
            "codes": index.codes,
            "offsets": index.offsets,
            "limit": torch.tensor(_limit(graphs, splits[:LEARNT_FROM]), dtype=torch.float64),
            "targets": task.targets(graphs).cpu()[indexed].view(len(rows), -1),
        }
        texts = {"ids": np.asarray(graphs.ids, dtype=object)}
        if "smiles" in graphs.columns:
            texts["smiles"] = graphs.columns["smiles"]
        for name, column in texts.items():
            packed = Texts.of([str(one) for one in column[rows]])
            tensors[f"{name}.data"] = torch.from_numpy(packed.data)
            tensors[f"{name}.ptr"] = torch.from_numpy(packed.ptr)
        if descriptors:
            tensors["descriptors"] = torch.from_numpy(reference_values(descriptors))
        for seed, each in scores.items():
            for target, values in enumerate(each):
                tensors[f"{SCORES}{seed}.{target}"] = torch.from_numpy(values)
        return cls(tensors)

    @cached_property
    def index(self) -> SimilarityIndex:
        """The training graphs, to find the most similar one in."""
        return SimilarityIndex(self.tensors["codes"], self.tensors["offsets"])

    @property
    def limit(self) -> float:
        """Graphs that are less similar than this to all training graphs are warned about."""
        return float(self.tensors["limit"])

    def neighbours(self, prepared: PreparedGraphs, count: int, task: Task) -> Neighbours:
        """So many of the most similar training graphs of each graph."""
        codes = prepared.codes_of(HOPS)
        similarity, number = self.index.most_similar(prepared.graphs, count, codes)
        values = self.tensors["targets"].numpy()[number].astype(object)
        for column, head in enumerate(task.heads):
            if names := head.task.class_names:
                filled = values[..., column] == values[..., column]
                labels = [names[int(one)] for one in values[..., column][filled]]
                values[..., column][filled] = labels
        ids = self._texts("ids", number)
        smiles = self._texts("smiles", number) if "smiles.ptr" in self.tensors else None
        names = tuple(head.title for head in task.heads)
        are_classes = tuple(bool(head.task.class_names) for head in task.heads)
        return Neighbours(similarity, ids, smiles, values, names, are_classes)

    def _texts(self, name: str, number: Array) -> Array:
        """The texts with these numbers, as an array of the same shape."""
        data, ptr = (self.tensors[f"{name}.{part}"].numpy() for part in ("data", "ptr"))
        found = Texts(data, ptr).take(number.ravel()).tolist()
        return np.array(found, dtype=object).reshape(number.shape)

    def computed_otherwise(self, descriptors: Sequence[str]) -> list[str]:
        """Which of the descriptors that the model reads RDKit computes otherwise today."""
        computed = self.tensors.get("descriptors")
        if computed is None or computed.shape[1] != len(descriptors):
            return []
        then, now = computed.numpy(), reference_values(descriptors)
        same = np.isclose(then, now, rtol=1e-4, atol=1e-6, equal_nan=True).all(0)
        return [name for name, is_same in zip(descriptors, same, strict=True) if not is_same]

    def scores_of(self, seed: int) -> list[Array]:
        """Those of a seed, for each target; empty where there are none.

        Of the networks that were trained on all graphs they are those of all seeds together.
        """
        if seed == FINAL:
            seeds = {int(name.split(".")[1]) for name in self.tensors if name.startswith(SCORES)}
            each = [self.scores_of(one) for one in sorted(seeds)]
            return [np.concatenate(target) for target in zip(*each, strict=True)]
        found = part_of(self.tensors, f"{SCORES}{seed}")
        return [found[target].numpy() for target in sorted(found, key=int)]

    def part_of(self, graphs: Graphs) -> Array:
        """The part that each graph was in, by its content, shape (g).

        ``train`` in the training part of any seed; ``val`` in a validation part alone; else an
        empty text: the model has not learnt from it.
        """
        hashes = content_hashes(graphs.to("cpu"))
        trained, held_out = (
            torch.isin(hashes, self.tensors[part]).numpy() for part in ("train", "val")
        )
        return np.where(trained, "train", np.where(held_out, "val", ""))

    @classmethod
    def from_tensors(
        cls,
        tensors: Mapping[str, Tensor],
        task: Task,
        seeds: Sequence[int],
        descriptors: Sequence[str] = (),
    ) -> Reference:
        """The reference of these tensors, checked."""
        table = {
            "train": codes("train", rising=True),
            "val": codes("val", rising=True),
            "offsets": offsets("graphs", into="codes"),
            "codes": Expected(("codes",), "int32", -inf, inf),
            "limit": numbers(low=0, high=1),
        }
        for seed, target in product(seeds, range(len(task.heads))):
            name = f"{SCORES}{seed}.{target}"
            beside = (2,) if name in tensors and tensors[name].dim() > 1 else ()
            table[name] = numbers(f"rows of {name}", *beside, low=0)
        if descriptors:
            table["descriptors"] = Expected(("molecules", len(descriptors)), blank=True)
        texts = [n for n in ("ids", "smiles") if part_of(tensors, n)]
        if texts or "targets" in tensors:
            table["targets"] = Expected(("graphs", len(task.heads)), blank=True)
            for name in dict.fromkeys(("ids", *texts)):
                table[f"{name}.ptr"] = offsets("graphs", into=f"{name}.data")
                table[f"{name}.data"] = Expected((f"bytes of {name}",), "uint8", 0, 255)
        check_tensors(tensors, table)
        for column, head in enumerate(task.heads if "targets" in tensors else ()):
            y, most = tensors["targets"][:, column], len(head.task.class_names)
            if most and not bool(((y >= 0) & (y < most) | y.isnan()).all()):
                raise LookHopsError(f"'targets' has classes that {head.title!r} has not")
        return cls(tensors)


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
