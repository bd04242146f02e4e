"""The features of graphs as the columns that a model was trained on."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from math import isnan
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from lookhops.core.errors import LookHopsError
from lookhops.core.schema import read
from lookhops.encoding.columns import Columns, Found, by_name, by_position
from lookhops.encoding.scale import Scale
from lookhops.graphs import Graphs
from lookhops.graphs.columns import completed
from lookhops.neighbourhoods.totals import DEGREES, graph_totals
from lookhops.sources.rdkit.descriptors import is_descriptor

#: Names of a number of edges that is their weight: it multiplies them, and is no feature.
WEIGHTS = ("weight", "edge_weight")
#: What has features, in sentences.
CALLED = {"nodes": "nodes", "edges": "edges", "whole": "graphs"}
#: What was fitted on graphs that are still in use: they do not change, and many ask.
_FITTED: WeakKeyDictionary[Graphs, dict[tuple[bool, bool], Encoding]] = WeakKeyDictionary()


class FeatureMissing(LookHopsError):
    """Graphs lack features of whole graphs that a model reads."""


class ReadOtherwise(UserWarning):
    """Graphs have features that a model does not know, and it answers without them."""


@dataclass(frozen=True)
class Encoding:
    """What a model is given of a node or an edge: numbers, which are blank, then one-hot labels.

    It is fitted on the graphs that a model learns from and saved with the model, so that a column
    means the same whenever the model is used: graphs are read by the names of their features. A
    node without any feature is encoded as a one.

    Args:
        name: The set on which it was fitted, for messages.
        featuriser: What made the features (see :class:`~lookhops.Graphs`), or nothing.
        nodes: The features of nodes.
        edges: Those of edges, or none where the model reads none.
        by_name: Whether features of nodes and edges are known by name. They are known by their
            position where their source has no names for them.
        whole: The features of whole graphs, or none where there are none or the model reads none.
    """

    name: str
    featuriser: str
    nodes: Columns
    edges: Columns | None = None
    by_name: bool = True
    whole: Columns | None = None

    @classmethod
    def fit(cls, graphs: Graphs, edges: bool = True, whole: bool = True) -> Encoding:
        """The encoding of these graphs, whose edges and wholes a model may or may not read."""
        fitted = _FITTED.setdefault(graphs, {})
        if (edges, whole) not in fitted:
            fitted[edges, whole] = cls(
                graphs.name,
                graphs.featuriser,
                Columns.fit(graphs.nodes),
                Columns.fit(graphs.edges, WEIGHTS) if edges else None,
                not _are_unnamed(graphs),
                Columns.fit(graphs.whole) if whole and graphs.whole.width else None,
            )
        return fitted[edges, whole]

    @property
    def width(self) -> int:
        """Columns of a node: at least one."""
        return max(self.nodes.encoded_numbers + sum(self.nodes.sizes), 1)

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The features of whole graphs that the model reads: numbers, then labels."""
        return () if self.whole is None else self.whole.features

    @property
    def reads_molecules(self) -> bool:
        """Whether the graphs were molecules."""
        return self.featuriser.startswith("molecules")

    @property
    def descriptors(self) -> tuple[str, ...]:
        """The features of whole graphs that RDKit computes."""
        known = filter(is_descriptor, self.feature_names)
        return tuple(known) if self.reads_molecules else ()

    @property
    def sizes(self) -> dict[str, int]:
        """What a network must know of it to be made, besides its width."""
        edges, whole = self.edges or Columns(), self.whole or Columns()
        return {
            "num_edge_numbers": edges.encoded_numbers,
            "num_edge_labels": sum(edges.sizes),
            "num_graph_features": whole.encoded_numbers + sum(whole.sizes),
        }

    @property
    def num_totals(self) -> int:
        """Width of :meth:`totals`."""
        edges = self.edges or Columns()
        labels = DEGREES + sum(self.nodes.sizes) + sum(edges.sizes)
        return 2 + 2 * labels + len(self.nodes.numbers) + len(edges.numbers)

    # ---------------------------------------------------------------- reading

    def read(self, graphs: Graphs) -> Graphs:
        """Graphs in the columns that the model was trained on.

        Features are found by name, whatever their order. A label's values that the model has not
        seen are read as one more value, which has no effect; features that it does not know are
        left out; both are said in a warning. Features that are missing are refused; those of whole
        graphs are looked for among ``columns`` too, and read as the numbers or labels that they
        were in training.
        """
        if self.featuriser and graphs.featuriser and self.featuriser != graphs.featuriser:
            raise LookHopsError(
                f"{graphs.name}: its features were made by {graphs.featuriser!r}; the model was "
                f"trained on {self.name}, with features made by {self.featuriser!r}."
            )
        named = self.by_name and not _are_unnamed(graphs)
        sides = {"nodes": self.nodes, "edges": self.edges, "whole": self.whole}
        found: dict[str, Found] = {}
        missing: list[str] = []
        notes: list[str] = []
        for owner, columns in sides.items():
            if columns is None:
                continue
            features, called = graphs.features[owner], CALLED[owner]
            if owner == "whole" and (named := not columns.are_unknown):
                features = completed(graphs, columns)
            where = f"{graphs.name}: its {called}"
            if named:
                found[owner] = by_name(columns, features, where)
            else:
                found[owner] = by_position(columns, features, where, self.name)
            missing += found[owner].missing_in_words(called)
            notes += found[owner].notes(called, columns)
        if missing:
            lacks_whole = "whole" in found and found["whole"].missing
            raise (FeatureMissing if lacks_whole else LookHopsError)(
                f"{graphs.name}: {'; '.join(missing)}. The model was trained on {self.name}."
            )
        for note in notes:
            warnings.warn(f"{graphs.name}: {note}", ReadOtherwise, stacklevel=3)
        return graphs.changed(**{owner: side.features for owner, side in found.items()})

    def check_weights(self, graphs: Graphs) -> None:
        """Refuse weights of edges that are below zero or blank."""
        columns = self.edges or Columns()
        weight = columns.weights(graphs.edges, dtype=torch.float64)
        if weight is None or bool((weight >= 0).all()):
            return
        name, edge = columns.weight, int((~(weight >= 0)).nonzero()[0])
        graph, wrong = int(graphs.batch[graphs.target[edge]]), float(weight[edge])
        called = graphs.columns["id"][graph] if "id" in graphs.columns else graph
        raise LookHopsError(
            f"{graphs.name}: an edge of graph {str(called)!r} has "
            f"{f'no {name}' if isnan(wrong) else f'the {name} {wrong:g}'}; a weight is a number "
            "from 0 up. Rename the column to have it read as a feature, or use --edges ignore."
        )

    # ---------------------------------------------------------------- encoding

    def encode_nodes(
        self,
        graphs: Graphs,
        node: Tensor | None = None,
        scale: Scale | None = None,
        dtype: torch.dtype = torch.float32,
    ) -> Tensor:
        """The columns of nodes, shape (m, width); arguments as for :meth:`Columns.encode`."""
        if not self.nodes.width:
            rows = graphs.num_nodes if node is None else node.numel()
            return torch.ones(rows, 1, dtype=dtype, device=graphs.device)
        return self.nodes.encode(graphs.nodes, node, dtype, scale)

    def totals(self, graphs: Graphs) -> Tensor:
        """The :func:`~lookhops.neighbourhoods.graph_totals` of graphs in these columns."""
        return graph_totals(graphs, self.nodes.sizes, self.edges.sizes if self.edges else None)

    def encode_whole(self, graphs: Graphs) -> Tensor | None:
        """The columns of whole graphs, float64, shape (g, c), NaN where blank; or none."""
        if self.whole is None:
            return None
        return self.whole.encode(graphs.whole, dtype=torch.float64)

    # ---------------------------------------------------------------- storing

    def to_dict(self) -> dict[str, Any]:
        """The fields as JSON can hold them; ``whole`` where there are such features."""
        return {k: v for k, v in asdict(self).items() if k != "whole" or v is not None}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Encoding:
        """The encoding that :meth:`to_dict` wrote."""
        return read(cls, values, "encoding")


def _are_unnamed(graphs: Graphs) -> bool:
    """Whether the source of the graphs gave their features no names."""
    both = graphs.nodes.names.are_unknown and graphs.edges.names.are_unknown
    return both and not graphs.featuriser
