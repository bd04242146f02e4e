"""What packed graphs hold, and what follows from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from lookhops.graphs import edges, storage
from lookhops.graphs.features import (
    default_values,
    feature_columns,
    fitting_names,
    node_columns,
    sizes_of,
    width,
)
from lookhops.graphs.indexing import segment_of
from lookhops.graphs.skipped import Skipped
from lookhops.graphs.targets import Target
from lookhops.graphs.texts import Texts


@dataclass(frozen=True, eq=False)
class PackedGraphs:
    """The fields of :class:`~lookhops.graphs.Graphs`, which describes them, and their readings."""

    node_ptr: Tensor
    row_ptr: Tensor
    source: Tensor
    attributes: Tensor | None = None
    attribute_names: tuple[str, ...] = ()
    labels: Tensor | None = None
    label_names: tuple[str, ...] = ()
    label_values: tuple[tuple[str, ...], ...] = ()
    edge_attributes: Tensor | None = None
    edge_attribute_names: tuple[str, ...] = ()
    edge_labels: Tensor | None = None
    edge_label_names: tuple[str, ...] = ()
    edge_label_values: tuple[tuple[str, ...], ...] = ()
    y: Tensor | None = None
    targets: tuple[Target, ...] = ()
    columns: Mapping[str, np.ndarray] = field(default_factory=dict)
    node_ids: Texts | None = None
    name: str = "graphs"
    featuriser: str = ""
    skipped: tuple[Skipped, ...] = ()

    def __post_init__(self) -> None:
        # Every column has a name: features that were replaced bring their own or get default ones.
        for of in ("", "edge_"):
            attributes, labels = getattr(self, f"{of}attributes"), getattr(self, f"{of}labels")
            values = getattr(self, f"{of}label_values") if width(labels) else ()
            if len(values) != width(labels):
                values = default_values(sizes_of(labels, None))
            object.__setattr__(self, f"{of}label_values", values)
            for kind, features in (("attribute", attributes), ("label", labels)):
                given = getattr(self, f"{of}{kind}_names")
                names = fitting_names(kind, given, width(features))
                object.__setattr__(self, f"{of}{kind}_names", names)

    def __len__(self) -> int:
        return self.node_ptr.numel() - 1

    @property
    def num_nodes(self) -> int:
        """Nodes of all graphs together."""
        return self.row_ptr.numel() - 1

    @property
    def num_edges(self) -> int:
        """Directed edges of all graphs together: an undirected edge counts twice."""
        return self.source.numel()

    @property
    def label_sizes(self) -> tuple[int, ...]:
        """How many values each column of ``labels`` can take."""
        return tuple(map(len, self.label_values))

    @property
    def edge_label_sizes(self) -> tuple[int, ...]:
        """How many values each column of ``edge_labels`` can take."""
        return tuple(map(len, self.edge_label_values))

    @property
    def num_features(self) -> int:
        """Columns of ``x``: the attributes and the one-hot labels."""
        return width(self.attributes) + sum(self.label_sizes)

    @property
    def num_edge_features(self) -> int:
        """Columns of ``edge_attr``: the edge attributes and the one-hot edge labels."""
        return width(self.edge_attributes) + sum(self.edge_label_sizes)

    @property
    def class_names(self) -> tuple[str, ...]:
        """The name of each class, where there is one target and it is of classes."""
        return self.targets[0].classes if len(self.targets) == 1 else ()

    @property
    def num_classes(self) -> int:
        """How many classes there are, whether or not each has a graph here."""
        return len(self.class_names)

    @property
    def device(self) -> torch.device:
        """Where the tensors are."""
        return self.source.device

    @property
    def nodes_per_graph(self) -> Tensor:
        """Number of nodes of each graph, shape (g)."""
        return self.node_ptr.diff()

    @cached_property
    def edge_ptr(self) -> Tensor:
        """Edge offsets of the graphs, shape (g + 1)."""
        return self.row_ptr[self.node_ptr]

    @cached_property
    def target(self) -> Tensor:
        """Target node of each edge, shape (e)."""
        return segment_of(self.row_ptr, self.num_edges)

    @cached_property
    def batch(self) -> Tensor:
        """Graph of each node, shape (n): PyG's batch vector."""
        return segment_of(self.node_ptr, self.num_nodes)

    @property
    def edge_index(self) -> Tensor:
        """PyG's (2, e) tensor of sources and targets, in our order (by target)."""
        return torch.stack((self.source, self.target)).long()

    @property
    def x(self) -> Tensor:
        """Node features, shape (n, num_features): attributes, then one-hot labels.

        Made anew at each call: a set of one-hot labels takes a byte a node, its ``x`` hundreds.
        A set without any feature has one column of ones.
        """
        return node_columns(self)

    @property
    def edge_attr(self) -> Tensor | None:
        """Edge features, shape (e, num_edge_features), or none: attributes, then one-hot labels."""
        if self.num_edge_features == 0:
            return None
        return feature_columns(self.edge_attributes, self.edge_labels, self.edge_label_sizes)

    @cached_property
    def is_undirected(self) -> bool:
        """Whether every edge is there in both directions."""
        return edges.go_both_ways(self)

    @cached_property
    def is_symmetric(self) -> bool:
        """Whether every edge is there in both directions, with the same features."""
        return self.is_undirected and edges.are_told_alike(self)

    @cached_property
    def num_undirected_edges(self) -> int:
        """Pairs of nodes with an edge in one direction or both; a self-loop is one pair."""
        return edges.number_of_pairs(self)

    @cached_property
    def fingerprint(self) -> str:
        """A hash of all tensors: two sets with the same graphs in the same order share it."""
        return storage.fingerprint(self)

    def _tensors(self) -> dict[str, Tensor]:
        values = ((f.name, getattr(self, f.name)) for f in fields(self))
        return {key: value for key, value in values if isinstance(value, Tensor)}

    def __repr__(self) -> str:
        return (
            f"Graphs({self.name!r}, graphs={len(self)}, nodes={self.num_nodes}, "
            f"edges={self.num_edges}, features={self.num_features}, classes={self.num_classes})"
        )
