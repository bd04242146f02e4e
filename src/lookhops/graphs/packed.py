"""What packed graphs hold, and what follows from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from lookhops.graphs import edges, storage
from lookhops.graphs.features import NO_FEATURES, Features
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
    nodes: Features = NO_FEATURES
    edges: Features = NO_FEATURES
    whole: Features = NO_FEATURES
    y: Tensor | None = None
    targets: tuple[Target, ...] = ()
    columns: Mapping[str, np.ndarray] = field(default_factory=dict)
    node_ids: Texts | None = None
    name: str = "graphs"
    featuriser: str = ""
    skipped: tuple[Skipped, ...] = ()

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
    def features(self) -> dict[str, Features]:
        """Those of ``nodes``, ``edges`` and ``whole`` graphs."""
        return {"nodes": self.nodes, "edges": self.edges, "whole": self.whole}

    @property
    def num_features(self) -> int:
        """Columns of ``x``: numbers and one-hot labels of the nodes."""
        return self.nodes.width

    @property
    def num_edge_features(self) -> int:
        """Columns of ``edge_attr``: numbers and one-hot labels of the edges."""
        return self.edges.width

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
        """Node features, shape (n, num_features): numbers, then one-hot labels.

        Computed at each call: a set of one-hot labels takes a byte a node, its ``x`` hundreds.
        A set without any feature has one column of ones.
        """
        columns = self.nodes.columns()
        return torch.ones(self.num_nodes, 1, device=self.device) if columns is None else columns

    @property
    def edge_attr(self) -> Tensor | None:
        """Edge features, shape (e, num_edge_features), or none: numbers, then one-hot labels."""
        return self.edges.columns()

    @cached_property
    def is_undirected(self) -> bool:
        """Whether every edge is there in both directions."""
        return edges.go_both_ways(self)

    @cached_property
    def is_symmetric(self) -> bool:
        """Whether every edge is there in both directions, with the same features."""
        return self.is_undirected and edges.have_equal_features(self)

    @cached_property
    def num_undirected_edges(self) -> int:
        """Pairs of nodes with an edge in one direction or both; a self-loop is one pair."""
        return edges.number_of_pairs(self)

    @cached_property
    def fingerprint(self) -> str:
        """A hash of all tensors: two sets with the same graphs in the same order share it."""
        return storage.fingerprint(self)

    @property
    def tensors(self) -> dict[str, Tensor]:
        """All tensors by their names; those of features are ``nodes.numbers``, ..."""
        found = {name: getattr(self, name) for name in ("node_ptr", "row_ptr", "source")}
        for owner, features in self.features.items():
            found |= {f"{owner}.{name}": own for name, own in features.tensors.items()}
        return found if self.y is None else found | {"y": self.y}

    def with_tensors(self, tensors: Mapping[str, Tensor]) -> Self:
        """The same graphs with other tensors under the same names; see :attr:`tensors`."""
        changed: dict[str, Any] = {name: own for name, own in tensors.items() if "." not in name}
        for owner, features in self.features.items():
            names = [name for name in features.tensors if f"{owner}.{name}" in tensors]
            changed[owner] = features.with_tensors({n: tensors[f"{owner}.{n}"] for n in names})
        return replace(self, **changed)

    def __repr__(self) -> str:
        return (
            f"Graphs({self.name!r}, graphs={len(self)}, nodes={self.num_nodes}, "
            f"edges={self.num_edges}, features={self.num_features}, classes={self.num_classes})"
        )
