"""The features of graphs as the columns that a model was trained on."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import torch
from torch import Tensor

from lookhops.core.errors import LookHopsError
from lookhops.core.schema import read
from lookhops.core.words import counted
from lookhops.encoding.columns import (
    NOT_SEEN,
    OWNERS,
    ByName,
    Columns,
    Placed,
    by_place,
    listed,
    told_numbers,
)
from lookhops.encoding.edges import edge_columns, edge_weight, number_columns
from lookhops.encoding.one_hot import AS_NUMBERS, SEVERAL
from lookhops.encoding.scale import Scale
from lookhops.graphs import Graphs
from lookhops.graphs.edges import as_known
from lookhops.graphs.indexing import take
from lookhops.ops.one_hot import one_hot


class ReadOtherwise(UserWarning):
    """Graphs have features that a model does not know, and it answers without them."""


@dataclass(frozen=True)
class Encoding:
    """What a model is told of a node or an edge: numbers, which are blank, then one-hot labels.

    It is fitted on the graphs that a model learns from and saved with the model, so that a column
    means the same whenever the model is used: graphs are read by the names of their features. A
    node without any feature is told as a one.

    Args:
        name: The set on which it was fitted, for messages.
        featuriser: What made the features (see :class:`~lookhops.Graphs`), or nothing.
        nodes: The features of nodes.
        edges: Those of edges, or none where the model looks at none.
        blanks: The numbers of nodes that are blank (NaN) somewhere: each has a column more, which
            says where.
        by_name: Whether features are known by name. They are known by their places where their
            source has no names for them, and to models of earlier versions.
        edge_blanks: The same of the numbers of edges; a weight is never blank.
    """

    name: str
    featuriser: str
    nodes: Columns
    edges: Columns | None = None
    blanks: tuple[str, ...] = ()
    by_name: bool = True
    edge_blanks: tuple[str, ...] = ()

    @classmethod
    def fit(cls, graphs: Graphs, edges: bool = True) -> Encoding:
        """The encoding of these graphs: they say which features there are.

        Args:
            graphs: The graphs.
            edges: Whether the model looks at features of edges.
        """
        of_edges = Columns.of(graphs, "edge_") if edges else None
        return cls(
            graphs.name,
            graphs.featuriser,
            Columns.of(graphs),
            of_edges,
            tuple(_blanks(graphs, "")),
            not _are_unnamed(graphs),
            tuple(_blanks(graphs, "edge_")) if edges else (),
        )

    @property
    def width(self) -> int:
        """Columns that a model is told: at least one."""
        return max(self.nodes.width + len(self.blanks), 1)

    @property
    def sizes(self) -> dict[str, int]:
        """What a network must know of it to be made, besides its width."""
        edges = self.edges or Columns()
        numbers = len(number_columns(edges)) + len(self.edge_blanks)
        labels = sum(edges.sizes)
        return {"num_edge_numbers": numbers, "num_edge_labels": labels}

    # ---------------------------------------------------------------- reading

    def read(self, graphs: Graphs) -> Graphs:
        """Graphs in the columns that the model was trained on.

        Features are found by name, whatever their order. A label's values that the model has not
        seen are read as one more value, which has no effect; features that it does not know are
        left out; both are said in a warning. Features that are missing are refused.
        """
        if self.featuriser and graphs.featuriser and self.featuriser != graphs.featuriser:
            raise LookHopsError(
                f"{graphs.name}: its features were made by {graphs.featuriser!r}; the model was "
                f"trained on {self.name}, with features made by {self.featuriser!r}."
            )
        sides = {"": self.nodes} | ({} if self.edges is None else {"edge_": self.edges})
        fields: dict[str, Any] = {}
        if self.by_name and not _are_unnamed(graphs):
            named = {side: ByName(columns, graphs, side) for side, columns in sides.items()}
            self._refuse_missing(graphs, named)
            found: dict[str, Any] = dict(named)
        else:
            found = {
                side: by_place(columns, graphs, side, self.name) for side, columns in sides.items()
            }
        for side, own in found.items():
            for note in _notes(graphs.name, OWNERS[side], own):
                warnings.warn(note, ReadOtherwise, stacklevel=3)
            fields |= own.fields
        read = replace(graphs, **fields)
        for side in sides:
            for name, count in _blanks(read, side).items():
                if name not in (self.edge_blanks if side else self.blanks):
                    without = f"{counted(count, OWNERS[side][:-1])} with no {name!r}"
                    warnings.warn(
                        f"{graphs.name}: {without}, of which the model knows no blanks: it is read "
                        "as the mean of the training graphs.",
                        ReadOtherwise,
                        stacklevel=3,
                    )
        return as_known(graphs, read)

    def _refuse_missing(self, graphs: Graphs, found: Mapping[str, ByName]) -> None:
        """Name the columns that are missing, and what stands in their place."""
        parts = []
        for side, own in found.items():
            if own.missing:
                owner = OWNERS[side]
                parts.append(f"its {owner} have no {listed(own.missing)}, which the model reads")
                if own.extra:
                    parts.append(f"they have {listed(own.extra)}, which it does not know")
                for label, unknown in own.not_seen.items():
                    parts.append(f"it has not seen the {label!r} {listed(unknown)}")
        if parts:
            raise LookHopsError(
                f"{graphs.name}: {'; '.join(parts)}. The model was trained on {self.name}."
            )

    # ---------------------------------------------------------------- columns

    def columns(
        self,
        graphs: Graphs,
        node: Tensor | None = None,
        dtype: torch.dtype = torch.float32,
        scale: Scale | None = None,
    ) -> Tensor:
        """What the model is told of nodes, on the graphs' device and without waiting for it.

        Args:
            graphs: Graphs that were fitted or that :meth:`read` gave.
            node: Numbers of the nodes, shape (m); none means all nodes.
            dtype: Type of the columns.
            scale: The scale of the numbers; of several members, the nodes stand member after
                member. By default numbers are told as they are.

        Returns:
            Shape (m, width). A label that was not seen is told as zeros.
        """
        attributes, labels, rows = graphs.attributes, graphs.labels, graphs.num_nodes
        if node is not None:
            sizes = self.nodes.sizes
            alone = attributes is None and sizes == graphs.label_sizes
            if labels is not None and alone and sizes:
                return one_hot(labels, node, sizes, dtype)
            attributes, labels, rows = take(attributes, node), take(labels, node), node.numel()
        if not self.nodes.width:
            return torch.ones(rows, 1, dtype=dtype, device=graphs.device)
        if attributes is not None:
            names = self.nodes.attributes
            attributes = told_numbers(attributes, names, self.blanks, dtype, scale)
        return self.nodes.told(attributes, labels, graphs.label_sizes, dtype)

    def edge_columns(
        self,
        graphs: Graphs,
        edge: Tensor | None = None,
        dtype: torch.dtype = torch.float32,
        scale: Scale | None = None,
    ) -> Tensor:
        """What the model is told of edges, shape (m, f); arguments as for :meth:`columns`."""
        assert self.edges is not None
        return edge_columns(self.edges, graphs, edge, dtype, scale, self.edge_blanks)

    def edge_weight(
        self, graphs: Graphs, edge: Tensor | None = None, dtype: torch.dtype = torch.float32
    ) -> Tensor | None:
        """The weights of edges, shape (m), or none where they have none."""
        assert self.edges is not None
        return edge_weight(self.edges, graphs, edge, dtype)

    # ---------------------------------------------------------------- storing

    def to_dict(self) -> dict[str, Any]:
        """The fields as JSON can hold them."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Any) -> Encoding:
        """The encoding that :meth:`to_dict` wrote."""
        return read(cls, values, "encoding")

    @classmethod
    def unnamed(cls, data: Mapping[str, Any]) -> Encoding:
        """Of a model of an earlier version, which knows how many features there are."""
        sizes = tuple(data["label_sizes"])
        nodes = Columns.unnamed(data["num_features"] - sum(sizes), sizes)
        return cls(data["name"], data["featuriser"], nodes, by_name=False)


def _blanks(graphs: Graphs, side: str) -> dict[str, int]:
    """The numbers of nodes or edges that are blank somewhere, and at how many; no weights."""
    attributes = getattr(graphs, f"{side}attributes")
    if attributes is None:
        return {}
    columns, counts = Columns.of(graphs, side), attributes.isnan().sum(0).tolist()
    features = number_columns(columns) if side else range(len(counts))
    return {columns.attributes[i]: counts[i] for i in features if counts[i]}


def _are_unnamed(graphs: Graphs) -> bool:
    """Whether the source of the graphs gave their features no names."""
    sides = (Columns.of(graphs, side) for side in OWNERS)
    return not graphs.featuriser and all(columns.are_unnamed for columns in sides)


def _notes(name: str, owner: str, found: ByName | Placed) -> list[str]:
    """What is read otherwise than it is given, in sentences."""
    notes = []
    if found.extra:
        notes.append(f"{name}: the model does not know {listed(found.extra)} of the {owner}.")
    for label, unknown in found.not_seen.items():
        if set(unknown) == {NOT_SEEN}:  # said when they were read first
            continue
        several = counted(sum(unknown.values()), owner[:-1])
        said = ", ".join(f"{value} ({count:,})" for value, count in list(unknown.items())[:6])
        more = f", {len(unknown) - 6} more" if len(unknown) > 6 else ""
        notes.append(
            f"{name}: {several} with a {label!r} that the model has not seen: {said}{more}. It is "
            "read as none of those that it knows."
            + (f" {AS_NUMBERS}" if SEVERAL in unknown else "")
        )
    return notes
