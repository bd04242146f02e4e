"""The training graphs that new graphs are most similar to, with what was measured of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lookhops.core.arrays import Array
from lookhops.core.errors import LookHopsError
from lookhops.core.words import MINUS
from lookhops.graphs import Graphs
from lookhops.graphs.indexing import Texts
from lookhops.tasks import Task
from lookhops.tasks.answers import Column

#: The most neighbours that are asked for.
MOST_NEIGHBOURS = 100


@dataclass(frozen=True, eq=False)
class Neighbours:
    """The training graphs that some graphs are most similar to, the most similar first.

    Args:
        similarity: From 0 to 1, shape (g, k).
        ids: What each is called, shape (g, k).
        smiles: The molecules, shape (g, k); none where graphs are no molecules.
        values: The name of its class or its number for each target, shape (g, k, targets); NaN
            where it is blank.
        names: What to call each target.
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
            known = [None if one != one else one for one in self.values[graph, rank]]
            targets = dict(zip(self.names, known, strict=True))
            found.append(
                {
                    "id": self.ids[graph, rank],
                    **({} if self.smiles is None else {"smiles": self.smiles[graph, rank]}),
                    **({"targets": targets} if len(known) > 1 else {"target": known[0]}),
                    "similarity": float(self.similarity[graph, rank]),
                }
            )
        return found

    def columns(self) -> dict[str, Column]:
        """The columns of a table: ``neighbour_1``, ``neighbour_1_target``, ..."""
        found: dict[str, Column] = {}
        for rank in range(self.count):
            name = f"neighbour_{rank + 1}"
            found[name] = self.ids[:, rank], ""
            if self.smiles is not None:
                found[f"{name}_smiles"] = self.smiles[:, rank], ""
            for column, target in enumerate(self.names):
                own = self.values[:, rank, column]
                key = f"{name}_target" if len(self.names) == 1 else f"{name}_target_{target}"
                if self.are_classes[column]:
                    found[key] = np.where(own == own, own, ""), ""
                else:
                    found[key] = own, "%.6g"
            found[f"{name}_similarity"] = self.similarity[:, rank], "%.3f"
        return found

    def said(self, graph: int, most: int, name: str) -> list[str]:
        """The first of one graph in words, each as ``1-octene (-4.44; similarity 0.89)``.

        Args:
            graph: Its number.
            most: How many are named.
            name: What it is called: where it was trained on, it is not named itself.
        """
        itself = (self.ids[graph] == name) & (self.similarity[graph] == 1)
        others = np.delete(np.arange(self.count), itself.argmax() if itself.any() else [])
        said = []
        for rank in others[:most]:
            values = dict(zip(self.names, self.values[graph, rank], strict=True))
            known = {own: _written(value) for own, value in values.items() if value == value}
            named = [f"{own} {value}" for own, value in known.items()]
            what = ", ".join(named if len(values) > 1 else known.values()) or "not measured"
            alike = f"similarity {self.similarity[graph, rank]:.2f}"
            said.append(f"{self.ids[graph, rank]} ({what}; {alike})")
        return said


def _written(value: str | float) -> str:
    return value if isinstance(value, str) else f"{value:.6g}".replace("-", MINUS)


@dataclass(frozen=True, eq=False)
class Known:
    """What is known of the graphs in an index.

    Args:
        ids: What they are called.
        smiles: The molecules; none where they are none.
        targets: Numbers of classes, or numbers, NaN where blank, shape (graphs, targets).
    """

    ids: Texts
    smiles: Texts | None
    targets: Tensor

    @classmethod
    def of(cls, graphs: Graphs, task: Task, chosen: Tensor) -> Known:
        """What is known of the chosen graphs."""
        rows, smiles, target = chosen.numpy(), graphs.columns.get("smiles"), task.targets(graphs)
        columns = []
        for head in task.heads:
            y = head.target(target.cpu())[chosen]
            columns.append(torch.where(head.task.known(y), y.double(), torch.nan))
        ids = np.asarray(graphs.ids, dtype=object)[rows]
        texts = None if smiles is None else Texts.of([str(one) for one in smiles[rows]])
        return cls(Texts.of(ids.tolist()), texts, torch.stack(columns, 1))

    def of_numbers(self, number: Array, similarity: Array, task: Task) -> Neighbours:
        """Those with these numbers, shape (g, k)."""

        def texts(own: Texts) -> Array:
            found = np.empty(number.size, dtype=object)
            found[:] = own.take(number.ravel()).tolist()
            return found.reshape(number.shape)

        values = self.targets.numpy()[number].astype(object)
        for column, head in enumerate(task.heads):
            if names := head.task.class_names:
                known = values[..., column] == values[..., column]
                labels = [names[int(one)] for one in values[..., column][known]]
                values[..., column][known] = labels
        smiles = None if self.smiles is None else texts(self.smiles)
        names = tuple(head.title for head in task.heads)
        are_classes = tuple(bool(head.task.class_names) for head in task.heads)
        return Neighbours(similarity, texts(self.ids), smiles, values, names, are_classes)

    def tensors(self) -> dict[str, Tensor]:
        """All of it as named tensors."""
        kinds = {"ids": self.ids} | ({} if self.smiles is None else {"smiles": self.smiles})
        found = {"targets": self.targets}
        for name, own in kinds.items():
            found[f"{name}.data"] = torch.from_numpy(own.data.copy())
            found[f"{name}.ptr"] = torch.from_numpy(own.ptr)
        return found

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Tensor], count: int, task: Task) -> Known | None:
        """What :meth:`tensors` gave of so many graphs, checked; none where it was not kept."""
        if "targets" not in tensors:
            return None
        texts = [
            Texts(tensors[f"{name}.data"].numpy(), tensors[f"{name}.ptr"].numpy())
            for name in ("ids", "smiles")
            if f"{name}.data" in tensors and f"{name}.ptr" in tensors
        ]
        targets, classes = tensors["targets"], [len(h.task.class_names) for h in task.heads]
        fits = targets.dtype == torch.float64 and targets.shape == (count, len(classes))
        fits = fits and all(
            bool(((y >= 0) & (y < most) | y.isnan()).all())
            for y, most in zip(targets.T, classes, strict=True)
            if most
        )
        if not texts or not fits or not all(own.is_sound(count) for own in texts):
            raise LookHopsError("its ids and targets are not those of its graphs")
        return cls(texts[0], texts[1] if len(texts) > 1 else None, targets)
