"""Many graphs in a few flat tensors.

Everything in LookHops starts from :class:`Graphs`. Selecting, batching, moving, saving and loading
are index arithmetic on whole tensors: nothing here loops over graphs in Python, save the
conversions from and to lists of PyG or NetworkX objects, which are lists of Python objects.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from lookhops.errors import LookHopsError, replacing

if TYPE_CHECKING:
    import networkx as nx
    from torch_geometric.data import Data

FORMAT = "lookhops-graphs-1"
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
        attributes: Continuous node features, shape :math:`(n, a)`.
        labels: Integer node labels, shape :math:`(n, l)`: column :math:`j` holds values in
            ``[0, label_sizes[j])`` and stands for that many one-hot features.
        label_sizes: How many values each column of ``labels`` can take.
        edge_attributes: Continuous edge features, shape :math:`(e, b)`.
        edge_labels: Integer edge labels, shape :math:`(e, m)`, as ``labels`` for nodes.
        edge_label_sizes: How many values each column of ``edge_labels`` can take.
        y: Class of each graph, shape :math:`(g)`, or none where it is not known.
        class_names: The name of each class.
        columns: One value a graph of whatever else the source said (id, SMILES, a measured
            value): arrays of length :math:`g`. They stay in main memory.
        name: What to call the set.
        featuriser: What made the features, where it matters to a model (``"tu"``,
            ``"molecules"``): a model refuses graphs whose features were made otherwise.
    """

    node_ptr: Tensor
    row_ptr: Tensor
    source: Tensor
    attributes: Tensor | None = None
    labels: Tensor | None = None
    label_sizes: tuple[int, ...] = ()
    edge_attributes: Tensor | None = None
    edge_labels: Tensor | None = None
    edge_label_sizes: tuple[int, ...] = ()
    y: Tensor | None = None
    class_names: tuple[str, ...] = ()
    columns: Mapping[str, np.ndarray] = field(default_factory=dict)
    name: str = "graphs"
    featuriser: str = ""

    # ---------------------------------------------------------------- what is here

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
    def num_features(self) -> int:
        """Columns of ``x``: the attributes and the one-hot labels."""
        return _width(self.attributes) + sum(self.label_sizes)

    @property
    def num_edge_features(self) -> int:
        """Columns of ``edge_attr``: the edge attributes and the one-hot edge labels."""
        return _width(self.edge_attributes) + sum(self.edge_label_sizes)

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
        return _segments(self.row_ptr, self.num_edges)

    @cached_property
    def batch(self) -> Tensor:
        """Graph of each node, shape (n): PyG's batch vector."""
        return _segments(self.node_ptr, self.num_nodes)

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
        if self.num_features == 0:
            return torch.ones(self.num_nodes, 1, device=self.device)
        return _expand(self.attributes, self.labels, self.label_sizes, self.num_nodes)

    @property
    def edge_attr(self) -> Tensor | None:
        """Edge features, shape (e, num_edge_features), or none: attributes, then one-hot labels."""
        if self.num_edge_features == 0:
            return None
        return _expand(
            self.edge_attributes, self.edge_labels, self.edge_label_sizes, self.num_edges
        )

    @cached_property
    def is_undirected(self) -> bool:
        """Whether every edge is there in both directions."""
        return torch.equal(
            _pairs(self.source, self.target, self.num_nodes).sort().values,
            _pairs(self.target, self.source, self.num_nodes).sort().values,
        )

    @cached_property
    def fingerprint(self) -> str:
        """A hash of all tensors: two sets with the same graphs in the same order share it."""
        digest = hashlib.sha256()
        for key, tensor in self._tensors().items():
            digest.update(f"{key} {tensor.dtype} {tuple(tensor.shape)}".encode())
            digest.update(tensor.cpu().contiguous().view(torch.uint8).numpy().tobytes())
        return digest.hexdigest()[:16]

    def __repr__(self) -> str:
        return (
            f"Graphs({self.name!r}, graphs={len(self)}, nodes={self.num_nodes}, "
            f"edges={self.num_edges}, features={self.num_features}, classes={self.num_classes})"
        )

    # ---------------------------------------------------------------- choosing graphs

    def select(self, index: Tensor | Sequence[int] | np.ndarray | slice) -> Graphs:
        """The graphs at ``index`` (numbers, a mask or a slice), in that order, repeats allowed.

        It is also how a batch is made: a batch is a small ``Graphs``.
        """
        index = self._as_index(index)
        host = index.cpu().numpy() if self.columns else None
        columns = {key: column[host] for key, column in self.columns.items()}
        return replace(self._gather(index), columns=columns)

    def __getitem__(self, index: int | Tensor | Sequence[int] | np.ndarray | slice) -> Graphs:
        return self.select([index] if isinstance(index, int) else index)

    def batches(
        self, size: int, shuffle: bool = False, generator: torch.Generator | None = None
    ) -> Iterator[Graphs]:
        """Batches of at most ``size`` graphs, in order or shuffled, without their columns."""
        order = torch.randperm(len(self), generator=generator) if shuffle else None
        order = torch.arange(len(self)) if order is None else order
        for index in order.to(self.device).split(size):
            yield self._gather(index)

    def _as_index(self, index: Tensor | Sequence[int] | np.ndarray | slice) -> Tensor:
        if isinstance(index, slice):
            return torch.arange(*index.indices(len(self)), device=self.device)
        index = torch.as_tensor(index, device=self.device)
        if index.dtype == torch.bool:
            if index.shape != (len(self),):
                raise LookHopsError(
                    f"A mask over {len(self)} graphs cannot have shape {tuple(index.shape)}."
                )
            return index.nonzero().flatten()
        index = index.long() if index.numel() else index.new_zeros(0, dtype=torch.long)
        if index.dim() != 1:
            raise LookHopsError(f"Graphs are chosen by a flat list, not {index.dim()} axes.")
        index = torch.where(index < 0, index + len(self), index)
        if index.numel() and not 0 <= int(index.min()) <= int(index.max()) < len(self):
            raise LookHopsError(
                f"There are {len(self)} graphs, numbered 0 to {len(self) - 1}; "
                f"{int(index.min() if index.min() < 0 else index.max())} is not one of them."
            )
        return index

    def _gather(self, index: Tensor) -> Graphs:
        """Index arithmetic only: no loop, and no check that would wait for the device."""
        node, node_ptr, node_shift = _ranges(self.node_ptr, index)
        edge, edge_ptr, edge_shift = _ranges(self.edge_ptr, index)
        per_graph = self.nodes_per_graph[index]
        row_ptr = torch.empty(node.numel() + 1, dtype=self.row_ptr.dtype, device=self.device)
        row_ptr[:-1] = self.row_ptr[node] - torch.repeat_interleave(
            edge_shift, per_graph, output_size=node.numel()
        )
        row_ptr[-1] = edge.numel()
        source = self.source[edge] - torch.repeat_interleave(
            node_shift, edge_ptr.diff(), output_size=edge.numel()
        )
        return replace(
            self,
            node_ptr=node_ptr,
            row_ptr=row_ptr,
            source=source,
            attributes=_rows(self.attributes, node),
            labels=_rows(self.labels, node),
            edge_attributes=_rows(self.edge_attributes, edge),
            edge_labels=_rows(self.edge_labels, edge),
            y=_rows(self.y, index),
            columns={},
        )

    # ---------------------------------------------------------------- changing all graphs

    def to(self, device: torch.device | str) -> Graphs:
        """The same graphs with their tensors on ``device``."""
        moved = {key: tensor.to(device) for key, tensor in self._tensors().items()}
        return replace(self, **moved)

    def undirected(self) -> Graphs:
        """Every edge in both directions, once; self-loops stay.

        Of two edges between the same nodes the first in our order gives the features, and an edge
        that was there in one direction lends its features to the other.
        """
        source = torch.cat((self.source, self.target)).long()
        target = torch.cat((self.target, self.source)).long()
        origin = torch.arange(self.num_edges, device=self.device).repeat(2)
        # The sort is stable: of equal pairs, one given in this direction comes before a reversed one.
        pairs, order = _pairs(source, target, self.num_nodes).sort(stable=True)
        first = torch.ones_like(pairs, dtype=torch.bool)
        first[1:] = pairs[1:] != pairs[:-1]
        order = order[first]
        return replace(
            self,
            source=source[order].to(self.source.dtype),
            row_ptr=_offsets(target[order], self.num_nodes, self.row_ptr.dtype),
            edge_attributes=_rows(self.edge_attributes, origin[order]),
            edge_labels=_rows(self.edge_labels, origin[order]),
        )

    # ---------------------------------------------------------------- making and storing

    @classmethod
    def from_edges(
        cls,
        source: Tensor,
        target: Tensor,
        nodes_per_graph: Tensor,
        *,
        attributes: Tensor | None = None,
        labels: Tensor | None = None,
        label_sizes: Sequence[int] | None = None,
        edge_attributes: Tensor | None = None,
        edge_labels: Tensor | None = None,
        edge_label_sizes: Sequence[int] | None = None,
        y: Tensor | None = None,
        class_names: Sequence[str] | None = None,
        **rest: Any,
    ) -> Graphs:
        """Pack edges given in any order, nodes numbered through all graphs.

        Sizes and class names that are not given are read off the largest value.
        """
        node_ptr = _cumulative(nodes_per_graph.long())
        num_nodes = int(node_ptr[-1])
        if max(num_nodes, source.numel()) >= 2**31:
            raise LookHopsError("More than 2,147,483,647 nodes or edges do not fit one set.")
        order = _pairs(source.long(), target.long(), num_nodes).argsort(stable=True)
        if y is not None and class_names is None:
            class_names = [str(c) for c in range(int(y.max()) + 1 if y.numel() else 0)]
        return cls(
            node_ptr=node_ptr.int(),
            row_ptr=_offsets(target[order].long(), num_nodes, torch.int32),
            source=source[order].int(),
            attributes=_plain(attributes),
            labels=_small(labels),
            label_sizes=_sizes(labels, label_sizes),
            edge_attributes=_rows(_plain(edge_attributes), order),
            edge_labels=_rows(_small(edge_labels), order),
            edge_label_sizes=_sizes(edge_labels, edge_label_sizes),
            y=None if y is None else y.long(),
            class_names=tuple(class_names or ()),
            **rest,
        )

    def save(self, path: Path | str) -> None:
        """Write one safetensors file; an interrupted write leaves what was there before."""
        tensors = {key: tensor.cpu().contiguous() for key, tensor in self._tensors().items()}
        text_columns = []
        for key, column in self.columns.items():
            if column.dtype.kind in "biuf":
                tensors[f"column.{key}"] = torch.from_numpy(np.ascontiguousarray(column))
            else:
                text_columns.append(key)
                text = "\0".join(str(value).replace("\0", "") for value in column)
                tensors[f"column.{key}"] = _bytes(text)
        rest = {
            "name": self.name,
            "featuriser": self.featuriser,
            "class_names": self.class_names,
            "label_sizes": self.label_sizes,
            "edge_label_sizes": self.edge_label_sizes,
            "text_columns": text_columns,
            "columns": list(self.columns),
        }
        with replacing(path) as part:
            try:
                save_file(tensors, part, metadata={"format": FORMAT, "rest": json.dumps(rest)})
            except SafetensorError as error:
                raise LookHopsError(f"{path}: cannot be written ({error}).") from error

    @classmethod
    def load(cls, path: Path | str) -> Graphs:
        """Map a file that :meth:`save` wrote into memory, without copying it."""
        path = Path(path)
        try:
            with safe_open(path, framework="pt") as file:
                metadata = file.metadata() or {}
                tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
        except FileNotFoundError as error:
            raise LookHopsError(f"{path}: no such file.") from error
        except (SafetensorError, OSError) as error:
            raise LookHopsError(f"{path}: not a file of packed graphs ({error}).") from error
        if metadata.get("format") != FORMAT:
            raise LookHopsError(
                f"{path}: not a file of packed graphs of this version (its format is "
                f"{metadata.get('format', 'not given')!r}, expected {FORMAT!r})."
            )
        rest = json.loads(metadata["rest"])
        stored = {key: tensors.pop(f"column.{key}") for key in rest.pop("columns")}
        texts = set(rest.pop("text_columns"))
        graphs = cls(
            **tensors, **{k: tuple(v) if isinstance(v, list) else v for k, v in rest.items()}
        )
        columns = {
            key: np.array(_text(column).split("\0") if len(graphs) else [], dtype=object)
            if key in texts
            else column.numpy()
            for key, column in stored.items()
        }
        return replace(graphs, columns=columns)

    def _tensors(self) -> dict[str, Tensor]:
        values = ((f.name, getattr(self, f.name)) for f in fields(self))
        return {key: value for key, value in values if isinstance(value, Tensor)}

    # ---------------------------------------------------------------- PyG and NetworkX

    @classmethod
    def from_pyg(cls, data: Iterable[Data], **rest: Any) -> Graphs:
        """Pack a list of PyG ``Data`` or a PyG dataset.

        Uses ``x``, ``edge_index``, ``edge_attr``, ``y`` and ``num_nodes``. Features that are
        one-hot rows are kept as integer labels. ``y`` must be one class number a graph, or absent.
        """
        from lookhops._interchange import from_pyg

        return from_pyg(data, **rest)

    def to_pyg(self) -> list[Data]:
        """A list of PyG ``Data``, edges ordered by source and then target as PyG orders them."""
        from lookhops._interchange import to_pyg

        return to_pyg(self)

    @classmethod
    def from_networkx(
        cls,
        graphs: Iterable[nx.Graph],
        y: Sequence[Any] | Tensor | None = None,
        node_features: Sequence[str] | None = None,
        edge_features: Sequence[str] | None = None,
        **rest: Any,
    ) -> Graphs:
        """Pack a list of NetworkX graphs; an undirected one gets both directions of each edge.

        Args:
            graphs: ``Graph``, ``DiGraph`` or multigraphs; nodes are taken in their own order.
            y: The class of each graph, numbers or names; else each graph's ``graph["y"]``.
            node_features: Node attributes to use, in this order: numbers, or text as labels.
                By default all that every node has.
            edge_features: The same for edges.
            rest: ``name`` and other fields.
        """
        from lookhops._interchange import from_networkx

        return from_networkx(graphs, y, node_features, edge_features, **rest)

    def to_networkx(self) -> list[nx.Graph]:
        """A list of NetworkX graphs: ``Graph`` where every edge goes both ways, else ``DiGraph``.

        Nodes carry ``x`` (a list of numbers), edges ``edge_attr``, the graph ``y``.
        """
        from lookhops._interchange import to_networkx

        return to_networkx(self)


# -------------------------------------------------------------------- small pieces


def _width(tensor: Tensor | None) -> int:
    return 0 if tensor is None else tensor.shape[1]


def _rows(tensor: Tensor | None, index: Tensor) -> Tensor | None:
    return None if tensor is None else tensor[index]


def _cumulative(counts: Tensor) -> Tensor:
    """Offsets of segments with these lengths: (0, c_0, c_0 + c_1, ...)."""
    return torch.cat((counts.new_zeros(1), counts.cumsum(0, dtype=counts.dtype)))


def _segments(ptr: Tensor, total: int) -> Tensor:
    """The segment of each element, given the segments' offsets."""
    number = torch.arange(ptr.numel() - 1, dtype=ptr.dtype, device=ptr.device)
    return torch.repeat_interleave(number, ptr.diff(), output_size=total)


def _ranges(ptr: Tensor, index: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Elements of the segments at ``index``, their new offsets, and how far each one moved."""
    counts = ptr.diff()[index]
    new_ptr = _cumulative(counts)
    shift = ptr[index] - new_ptr[:-1]
    total = int(new_ptr[-1])
    where = torch.arange(total, dtype=ptr.dtype, device=ptr.device)
    return where + torch.repeat_interleave(shift, counts, output_size=total), new_ptr, shift


def _pairs(source: Tensor, target: Tensor, num_nodes: int) -> Tensor:
    """One number an edge that sorts by target, then source."""
    return target.long() * num_nodes + source.long()


def _offsets(target: Tensor, num_nodes: int, dtype: torch.dtype) -> Tensor:
    """CSR offsets of sorted targets."""
    rows = torch.arange(num_nodes + 1, device=target.device)
    return torch.searchsorted(target, rows, out_int32=dtype == torch.int32)


def _expand(
    attributes: Tensor | None, labels: Tensor | None, sizes: Sequence[int], rows: int
) -> Tensor:
    """Attributes, then one-hot labels, as one float tensor."""
    template = attributes if attributes is not None else labels
    assert template is not None
    kind = attributes.dtype if attributes is not None else torch.get_default_dtype()
    width = _width(attributes)
    out = torch.zeros(rows, width + sum(sizes), dtype=kind, device=template.device)
    if attributes is not None:
        out[:, :width] = attributes
    if labels is not None:
        starts = torch.tensor([width + sum(sizes[:j]) for j in range(len(sizes))])
        out.scatter_(1, labels.long() + starts.to(labels.device), 1.0)
    return out


def _sizes(labels: Tensor | None, sizes: Sequence[int] | None) -> tuple[int, ...]:
    if labels is None:
        return ()
    if sizes is not None:
        return tuple(int(size) for size in sizes)
    return tuple((labels.amax(0) + 1).tolist()) if labels.numel() else (0,) * labels.shape[1]


def _small(labels: Tensor | None) -> Tensor | None:
    """Labels in the smallest integer type that holds them."""
    if labels is None:
        return None
    largest = int(labels.max()) if labels.numel() else 0
    return labels.to(
        torch.uint8 if largest < 2**8 else torch.int16 if largest < 2**15 else torch.int32
    )


def _plain(attributes: Tensor | None) -> Tensor | None:
    """Float32, unless the caller gave floats of another width on purpose."""
    if attributes is None or attributes.is_floating_point():
        return attributes
    return attributes.float()


def _bytes(text: str) -> Tensor:
    return (
        torch.frombuffer(bytearray(text.encode()), dtype=torch.uint8)
        if text
        else torch.zeros(0, dtype=torch.uint8)
    )


def _text(data: Tensor) -> str:
    return data.numpy().tobytes().decode()
