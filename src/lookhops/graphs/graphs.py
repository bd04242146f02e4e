"""Many graphs in a few flat tensors.

Everything in LookHops starts from :class:`Graphs`. All is index arithmetic on whole tensors: only
the conversions from and to lists of PyG or NetworkX objects loop over graphs in Python.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from lookhops.core.reading import AS_USUAL, Reading
from lookhops.graphs import choosing, networkx, pyg, storage
from lookhops.graphs import columns as graph_columns
from lookhops.graphs.choosing import Skipped
from lookhops.graphs.features import NO_FEATURES, Features
from lookhops.graphs.indexing import (
    Texts,
    pair_keys,
    row_offsets,
    segment_of,
    stable_argsort,
    to_offsets,
)
from lookhops.graphs.targets import Target, is_blank, pack_targets, read_target, targets_of

if TYPE_CHECKING:
    import networkx as nx
    from torch_geometric.data import Data

SUFFIX = ".graphs"


@dataclass(frozen=True, eq=False)
class Graphs:
    r"""Many graphs, packed: :math:`n` nodes and :math:`e` directed edges of :math:`g` graphs.

    Nodes are numbered through all graphs, graph after graph. Edges stand in CSR order by target:
    the edges into node :math:`i` come from ``source[row_ptr[i]:row_ptr[i + 1]]``, so the edges of
    one graph are neighbours in memory too. An undirected edge is stored in both directions.

    Args:
        node_ptr: Node offsets of the graphs, shape :math:`(g + 1)`.
        row_ptr: Edge offsets of the target nodes, shape :math:`(n + 1)`.
        source: Source node of each edge, shape :math:`(e)`.
        nodes: The features of nodes, :math:`n` rows, if any.
        edges: Those of edges, :math:`e` rows in the order of ``source``.
        whole: Those of graphs, :math:`g` rows.
        y: What is to be learnt of each graph, or none where it is not known. One target of classes:
            whole numbers, shape :math:`(g)`, -1 where blank. One of numbers: float64, shape
            :math:`(g)`, NaN where blank. Several: float64, shape :math:`(g, t)`, NaN where blank.
        targets: The name of each target, and of its classes.
        columns: One value a graph of whatever else the source said (id, SMILES, a measured
            value): arrays of length :math:`g`. They stay in main memory.
        node_ids: What the source calls each node, n texts, where it has names for them: tables and
            NetworkX. They stay in main memory; batches go without.
        name: What to call the set.
        featuriser: What made the features, where it matters to a model (``"tu"``,
            ``"molecules"``): a model refuses graphs whose features were made otherwise.
        skipped: Rows of the source that gave no graph. A choice of graphs has none.
    """

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
    def nodes_per_graph(self) -> Tensor:
        """Number of nodes of each graph, shape (g)."""
        return self.node_ptr.diff()

    @cached_property
    def edge_ptr(self) -> Tensor:
        """Edge offsets of the graphs, shape (g + 1)."""
        return self.row_ptr[self.node_ptr]

    @cached_property
    def batch(self) -> Tensor:
        """Graph of each node, shape (n): PyG's batch vector."""
        return segment_of(self.node_ptr, self.num_nodes)

    @cached_property
    def target(self) -> Tensor:
        """Target node of each edge, shape (e)."""
        return segment_of(self.row_ptr, self.num_edges)

    @property
    def edge_index(self) -> Tensor:
        """PyG's (2, e) tensor of sources and targets, in our order (by target)."""
        return torch.stack((self.source, self.target)).long()

    @property
    def features(self) -> dict[str, Features]:
        """Those of ``nodes``, ``edges`` and ``whole`` graphs."""
        return {"nodes": self.nodes, "edges": self.edges, "whole": self.whole}

    @property
    def num_features(self) -> int:
        """Columns of ``x``: numbers and one-hot labels of the nodes."""
        return self.nodes.width

    @property
    def x(self) -> Tensor:
        """Node features, shape (n, num_features): numbers, then one-hot labels.

        Computed at each call: a set of one-hot labels takes a byte a node, its ``x`` hundreds.
        A set without any feature has one column of ones.
        """
        columns = self.nodes.columns()
        return torch.ones(self.num_nodes, 1, device=self.device) if columns is None else columns

    @property
    def num_edge_features(self) -> int:
        """Columns of ``edge_attr``: numbers and one-hot labels of the edges."""
        return self.edges.width

    @property
    def edge_attr(self) -> Tensor | None:
        """Edge features, shape (e, num_edge_features), or none: numbers, then one-hot labels."""
        return self.edges.columns()

    @property
    def class_names(self) -> tuple[str, ...]:
        """The name of each class, where there is one target and it is of classes."""
        return self.targets[0].classes if len(self.targets) == 1 else ()

    @property
    def num_classes(self) -> int:
        """How many classes there are, whether or not each has a graph here."""
        return len(self.class_names)

    @property
    def ids(self) -> list[str]:
        """What each graph is called: its ``id`` column, else its number from 0."""
        ids = self.columns.get("id")
        return [str(value) for value in (range(len(self)) if ids is None else ids)]

    @property
    def device(self) -> torch.device:
        """Where the tensors are."""
        return self.source.device

    @cached_property
    def is_undirected(self) -> bool:
        """Whether every edge is there in both directions."""
        return choosing.go_both_ways(self)

    @cached_property
    def is_symmetric(self) -> bool:
        """Whether every edge is there in both directions, with the same features."""
        return self.is_undirected and choosing.have_equal_features(self)

    @cached_property
    def num_undirected_edges(self) -> int:
        """Pairs of nodes with an edge in one direction or both; a self-loop is one pair."""
        return choosing.number_of_pairs(self)

    @cached_property
    def fingerprint(self) -> str:
        """A hash of all tensors: two sets with the same graphs in the same order share it."""
        return storage.fingerprint(self)

    @property
    def tensors(self) -> dict[str, Tensor]:
        """All tensors by their names; those of features are ``nodes.numbers``, ..."""
        found = {name: getattr(self, name) for name in ("node_ptr", "row_ptr", "source")}
        for owner, features in self.features.items():
            found |= {f"{owner}.{name}": one for name, one in features.tensors.items()}
        return found if self.y is None else found | {"y": self.y}

    def with_tensors(self, tensors: Mapping[str, Tensor]) -> Graphs:
        """The same graphs with other tensors under the same names; see :attr:`tensors`."""
        changed: dict[str, Any] = {name: one for name, one in tensors.items() if "." not in name}
        for owner, features in self.features.items():
            names = [name for name in features.tensors if f"{owner}.{name}" in tensors]
            changed[owner] = features.with_tensors({n: tensors[f"{owner}.{n}"] for n in names})
        return self.changed(**changed)

    def __repr__(self) -> str:
        return (
            f"Graphs({self.name!r}, graphs={len(self)}, nodes={self.num_nodes}, "
            f"edges={self.num_edges}, features={self.num_features}, classes={self.num_classes})"
        )

    # ---------------------------------------------------------------- choosing and changing

    def select(self, index: choosing.Index) -> Graphs:
        """The graphs at ``index`` (numbers, a mask or a slice), in that order, repeats allowed.

        It is also how a batch is made: a batch is a small ``Graphs``.
        """
        return choosing.select(self, index)

    __getitem__ = select

    def __iter__(self) -> Iterator[Graphs]:
        return (self.select(number) for number in range(len(self)))

    def batches(
        self, size: int, shuffle: bool = False, generator: torch.Generator | None = None
    ) -> Iterator[Graphs]:
        """Batches of at most ``size`` graphs, in order or shuffled, without their columns."""
        count = len(self)
        order = torch.randperm(count, generator=generator) if shuffle else torch.arange(count)
        for index in order.to(self.device).split(min(size, count)) if count else ():
            yield choosing.gather(self, index)

    def changed(self, **fields: Any) -> Graphs:
        """The same graphs, or some of them, with other fields.

        Edges that went both ways still do: it is not found out again.
        """
        found = replace(self, **fields)
        for name in ("is_undirected", "is_symmetric"):
            if self.__dict__.get(name):
                found.__dict__[name] = True
        return found

    def to(self, device: torch.device | str) -> Graphs:
        """The same graphs with their tensors on ``device``."""
        return self.with_tensors({name: tensor.to(device) for name, tensor in self.tensors.items()})

    def undirected(self) -> Graphs:
        """Every edge in both directions, once; self-loops stay.

        Of two edges between the same nodes the first in our order gives the features, and an edge
        that was there in one direction lends its features to the other.
        """
        return choosing.undirected(self)

    def without_edge_features(self) -> Graphs:
        """The same graphs, of whose edges nothing is known but that they are there."""
        return self.changed(edges=NO_FEATURES)

    def with_features(
        self,
        names: str | Iterable[str],
        reading: Reading = AS_USUAL,
        place: Callable[[int], str] | None = None,
    ) -> Graphs:
        """The same graphs with some of ``columns`` as features of whole graphs, ``whole``.

        Args:
            names: Names of columns, with commas between where they are one text, or ``all``: every
                column that can be a feature.
            reading: Its ``numbers`` and ``categories`` say what columns are.
            place: Where a graph stands in its source, for messages.
        """
        return graph_columns.with_features(self, names, reading, place)

    # ---------------------------------------------------------------- making, storing, converting

    @classmethod
    def from_edges(
        cls,
        source: Tensor,
        target: Tensor,
        nodes_per_graph: Tensor,
        *,
        y: Tensor | None = None,
        targets: Sequence[Target] | None = None,
        class_names: Sequence[str] | None = None,
        nodes: Features = NO_FEATURES,
        edges: Features = NO_FEATURES,
        whole: Features = NO_FEATURES,
        **fields: Any,
    ) -> Graphs:
        """Pack edges given in any order, nodes numbered through all graphs.

        Features of edges are given in the order of the edges. Without ``targets``, whole numbers in
        ``y`` are classes, with the ``class_names``, by default ``0``, ``1``, ...
        """
        node_ptr = to_offsets(nodes_per_graph.long())
        num_nodes = int(node_ptr[-1])
        order = stable_argsort(pair_keys(source, target, num_nodes))
        if targets is None:
            targets = targets_of(y, class_names)
        return cls(
            node_ptr=node_ptr.int(),
            row_ptr=row_offsets(target, num_nodes),
            source=source.int()[order],
            nodes=nodes.packed(),
            edges=edges.packed().take(order),
            whole=whole.packed(),
            y=None if y is None else y.double() if y.is_floating_point() else y.long(),
            targets=tuple(targets),
            **fields,
        )

    def save(self, path: Path | str) -> None:
        """Write one safetensors file; an interrupted write leaves what was there before."""
        storage.save(self, path)

    @classmethod
    def load(cls, path: Path | str) -> Graphs:
        """Map a file that :meth:`save` wrote into memory, without copying it."""
        return storage.load(cls, path)

    @classmethod
    def from_pyg(
        cls, data: Iterable[Data] | Data, graph_features: Sequence[str] = (), **fields: Any
    ) -> Graphs:
        """Pack a list of PyG ``Data``, a PyG dataset, or one ``Data``.

        Uses ``x``, ``edge_index``, ``edge_attr``, ``edge_weight``, ``u``, ``y`` and ``num_nodes``.
        Features that are one-hot rows are kept as integer labels. ``y`` is one class number, one
        number, or a row of several targets a graph; NaN, or no ``y``, is a blank. A column of a few
        whole numbers is one of classes, although they may be floats. Columns have no names in PyG
        and are known by their position. ``u``, a row a graph, are features of whole graphs.

        Args:
            data: The graphs.
            graph_features: Fields that are features of whole graphs too: ``["temperature"]`` reads
                ``data.temperature``, a number, a tensor of some, or a text.
            fields: ``y``, ``name`` and other fields.
        """
        return cls.from_edges(**pyg.edges_of(data, graph_features, **fields))

    def to_pyg(self) -> list[Data]:
        """A list of PyG ``Data``, edges ordered by source and then target as PyG orders them."""
        return pyg.to_pyg(self)

    @classmethod
    def from_networkx(
        cls,
        graphs: Iterable[nx.Graph] | nx.Graph,
        y: Sequence[Any] | Tensor | None = None,
        node_features: Mapping[str, Sequence[str] | None] | Sequence[str] | None = None,
        edge_features: Sequence[str] | None = None,
        graph_features: Mapping[str, Sequence[str] | None] | Sequence[str] = (),
        **fields: Any,
    ) -> Graphs:
        """Pack NetworkX graphs, or one; an undirected one gets both directions of each edge.

        Args:
            graphs: ``Graph``, ``DiGraph`` or multigraphs; nodes are taken in their own order.
            y: What is to be learnt of each graph: its class, a number, or a row of several; else
                each graph's ``graph["y"]``. None and NaN are blanks. A column of many different
                numbers is one of numbers, any other one of classes.
            node_features: Node attributes to use, in this order: numbers, or text as labels; None
                and NaN are blanks, of text the label ``(blank)``. By default all. Every node must
                have each of them. A mapping also says which texts each can be (none: it is
                numbers), so that a label means the same in every set.
            edge_features: The same for edges.
            graph_features: The same for ``graph.graph``; by default none.
            fields: ``name`` and other fields.
        """
        features = node_features, edge_features, graph_features
        return cls.from_edges(**networkx.edges_of(graphs, y, *features, **fields))

    @classmethod
    def from_tables(
        cls,
        edges: Any,
        nodes: Any = None,
        graphs: Any = None,
        *,
        reading: Reading = AS_USUAL,
        name: str = "graphs",
        **options: Any,
    ) -> Graphs:
        """Pack graphs given as tables: pandas or polars frames, mappings of columns, or arrays.

        Ids of graphs and nodes may be anything. Numbers stay numbers; text, yes and no, and whole
        numbers of at most ten values become labels; a column ``weight`` of edges is always a
        number. Empty cells are NaN, or a label of their own.

        Args:
            edges: A row an edge: columns ``graph``, ``source`` and ``target`` (or ``from`` and
                ``to``, ...), and features.
            nodes: A row a node: ``graph``, ``node``, and features. Without ``graph``, an id is the
                same node in every graph; without the table, the ends of the edges are the nodes.
            graphs: A row a graph: ``graph``, a class or number to learn, and whatever else is known
                of it, for ``columns``. Without it, a column ``class``, ``label`` or ``y`` of the
                other tables that is the same in all rows of a graph is what is to be learnt.
            reading: Which columns are what, and whether edges are directed.
            name: What to call the set.
            options: Fields of ``reading`` to choose by their names: ``graph_column="case"``.
        """
        from lookhops.graphs.from_tables import packed  # pandas takes a while to import
        from lookhops.graphs.table import Tables, as_table

        given = Tables(
            as_table(edges, "edges"),
            None if nodes is None else as_table(nodes, "nodes"),
            None if graphs is None else as_table(graphs, "graphs"),
            replace(reading, **options),
        )
        fields, label, place = packed(given)
        if label is not None and not all(map(is_blank, fields["columns"][label])):
            cells = fields["columns"].pop(label)
            fields |= pack_targets([read_target(label, cells, place=place)])
        found, features = cls.from_edges(**fields, name=name), given.reading.features
        return found if features is None else found.with_features(features, given.reading, place)

    def to_networkx(self) -> list[nx.Graph]:
        """A list of NetworkX graphs: ``Graph`` where every edge goes both ways, else ``DiGraph``.

        Nodes and edges carry their features by name, a label as the text that it stands for, so
        that :meth:`from_networkx` reads them again. Features without names (PyG's, the TU
        collection's) are a list of numbers, ``x`` of nodes, ``edge_attr`` of edges and ``u`` of
        graphs. The graph carries ``y``.
        """
        return networkx.to_networkx(self)
