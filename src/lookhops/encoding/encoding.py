"""The features of graphs as the columns that a model was trained on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

import torch
from torch import Tensor

from lookhops.errors import LookHopsError
from lookhops.graphs import Graphs
from lookhops.graphs.features import node_columns


@dataclass(frozen=True)
class Encoding:
    """What a model is told of a node: continuous attributes as they are, then one-hot labels.

    It is fitted on the graphs that a model learns from and saved with the model, so that a column
    means the same whenever the model is used. A node without any feature is told as a one.

    Args:
        name: The set on which it was fitted, for messages.
        num_features: Columns of the features: attributes and one-hot labels.
        label_sizes: How many values each label takes.
        featuriser: What made the features (see :class:`~lookhops.Graphs`), or nothing.
    """

    name: str
    num_features: int
    label_sizes: tuple[int, ...] = ()
    featuriser: str = ""

    @classmethod
    def fit(cls, graphs: Graphs, train: Tensor | None = None) -> Encoding:
        """The encoding of these graphs.

        Args:
            graphs: All graphs: they say which features there are.
            train: The graphs to learn from, by number; none means all. Attributes and labels as
                they are need nothing learnt, so that the answer is the same for every part.
        """
        return cls(graphs.name, graphs.num_features, tuple(graphs.label_sizes), graphs.featuriser)

    @property
    def width(self) -> int:
        """Columns that a model is told: at least one."""
        return max(self.num_features, 1)

    def check(self, graphs: Graphs) -> None:
        """Refuse graphs whose features are not those that the model was trained on."""
        both_named = bool(self.featuriser and graphs.featuriser)
        if both_named and self.featuriser != graphs.featuriser:
            raise LookHopsError(
                f"{graphs.name}: its features were made by {graphs.featuriser!r}; the model was "
                f"trained on {self.name}, with features made by {self.featuriser!r}."
            )
        if graphs.num_features != self.num_features:
            raise LookHopsError(
                f"{graphs.name}: has {graphs.num_features} features a node; the model was trained "
                f"on {self.name}, which has {self.num_features}."
            )
        if both_named and tuple(graphs.label_sizes) != self.label_sizes:
            raise LookHopsError(
                f"{graphs.name}: its node labels take {list(graphs.label_sizes)} values; the model "
                f"was trained on {self.name}, where they take {list(self.label_sizes)}."
            )

    def columns(
        self, graphs: Graphs, node: Tensor | None = None, dtype: torch.dtype = torch.float32
    ) -> Tensor:
        """What the model is told of nodes, on the graphs' device and without waiting for it.

        Args:
            graphs: Graphs that :meth:`check` accepts.
            node: Numbers of the nodes, shape (m); none means all nodes.
            dtype: Type of the columns.

        Returns:
            Shape (m, width).
        """
        return node_columns(graphs, node, dtype)

    def to_dict(self) -> dict[str, Any]:
        """The fields as JSON can hold them."""
        return asdict(self) | {"label_sizes": list(self.label_sizes)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Encoding:
        """The encoding that :meth:`to_dict` wrote; other entries are left alone."""
        known = {field.name: values[field.name] for field in fields(cls)}
        return cls(**known | {"label_sizes": tuple(known["label_sizes"])})
