"""Where the batches of a stack come from: graphs on the device, or windows of a larger set."""

from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from lookhops.encoding import Encoding
from lookhops.encoding.preprocessing import GraphColumns, Preprocessing
from lookhops.encoding.scale import Scales
from lookhops.graphs import Graphs
from lookhops.graphs.choosing import gather
from lookhops.nn import EdgeInputs, GraphBatch, GraphNetwork
from lookhops.ops import Adjacency
from lookhops.ops.layout import Layout, Tables, lay_out
from lookhops.training.batches import Capacity, makes_links
from lookhops.training.inputs import WholeGatherer
from lookhops.training.windows import Window, Windows, first_entries

#: Steps whose graphs come to the device together, and nodes: whichever is fewer.
STEPS, NODES = 32, 1 << 22
#: Rounds that are fetched while one runs, each in a thread of its own.
AHEAD = 2
STEP = 1024  # sizes of buffers are multiples of this


class Feed:
    """Gives the members of a stack batches of fixed shape, made by index arithmetic alone.

    Here all graphs live on the device.
    """

    def __init__(
        self,
        graphs: Graphs,
        encoding: Encoding,
        model: GraphNetwork,
        columns: Sequence[GraphColumns],
        preprocessing: Sequence[Preprocessing],
        dtype: torch.dtype,
    ) -> None:
        self.model, self.encoding, self.dtype = model, encoding, dtype
        self._read(graphs, preprocessing)
        vocabularies = [fitted.num_neighbourhoods for fitted in preprocessing]
        self.whole = WholeGatherer.of(columns, vocabularies)
        #: Known neighbourhoods of each graph, shape (members, graphs), in main memory, or none.
        self.entries = self.whole.counts

    def _read(
        self,
        graphs: Graphs,
        preprocessing: Sequence[Preprocessing],
        first_node: Tensor | None = None,
    ) -> None:
        """Make batches of these graphs, which may be some of a larger set."""
        self.graphs, self.undirected = graphs, graphs.is_undirected
        self.symmetric = self.model.uses_edges and graphs.is_symmetric
        #: Whether links are laid out for all pairs of nodes: steps over such batches can be
        #: recorded, which only pays on a GPU.
        self.lays_out_links = makes_links(self.model) and graphs.device.type == "cuda"
        ends = graphs.node_ptr.long(), graphs.row_ptr.long()
        self.tables = Tables(*ends, graphs.source, first_node)
        like = torch.empty(0, dtype=self.dtype, device=graphs.device)
        self.scales = Scales.stack([fitted.scales for fitted in preprocessing], like)

    def batch(self, index: Tensor, capacity: Capacity) -> GraphBatch:
        """A batch with one batch for each member, of the graphs at ``index``, (members, size)."""
        members, size = index.shape  # -1 for no graph
        made = lay_out(index, self.tables, capacity.nodes, capacity.edges)
        weight = None
        if self.model.uses_edges and self.encoding.edges is not None:
            weight = self.encoding.edges.weights(self.graphs.edges, made.edge, self.dtype)
        symmetric = self.undirected if weight is None else self.symmetric
        scale = self.scales.nodes
        x = self.encoding.encode_nodes(self.graphs, made.node, dtype=self.dtype, scale=scale)
        return GraphBatch(
            x=x.view(members, capacity.nodes, -1),
            adjacency=Adjacency(made.pattern, weight, symmetric=symmetric),
            graph=made.graph,
            num_graphs=members * size,
            alive=made.alive,
            segments=made.segments,
            place=made.place,
            whole=self.whole(index, capacity.entries),
            edges=self._edges(made, capacity) if self.model.edge_channels else None,
            largest=capacity.largest,
            extent=capacity.extent(members, members * size) if self.lays_out_links else None,
        )

    def _edges(self, made: Layout, capacity: Capacity) -> EdgeInputs:
        """The features of the edges, a slice for each member."""
        pattern, old, size = made.pattern, made.edge, capacity.own_edges
        first = pattern.row_ptr[: -1 : capacity.nodes].long()  # edge of each member
        slot = torch.arange(size, device=old.device)
        edge = (first[:, None] + slot).clamp(max=old.numel() - 1)  # past its end: anybody's
        assert self.encoding.edges is not None
        columns = self.encoding.edges.encode(
            self.graphs.edges, old[edge].flatten(), self.dtype, self.scales.edges
        )
        member = pattern.row.long() // capacity.nodes
        position = torch.arange(old.numel(), device=old.device) - first[member]
        position = member * size + position.clamp(max=size - 1)
        return EdgeInputs(columns.view(len(first), size, -1), position, self.symmetric)

    def reserve(self, plan: Tensor) -> bool:
        """Reserve memory for the graphs of a plan; whether steps run over other memory now."""
        return False

    def empty_order(self, plan: Tensor) -> Tensor:
        """An empty plan on the device, as large as those that :meth:`rounds` gives."""
        return torch.full_like(plan, -1, device=self.graphs.device)

    def rounds(self, plan: Tensor) -> Iterator[Tensor]:
        """The batches of a plan, some at a time, whose graphs are then on the device.

        The plan has numbers of graphs in the whole set, shape (members, batches, size), -1 for
        none; what is given has numbers as :meth:`batch` takes them.
        """
        yield plan

    def prefetch(self) -> None:
        """Fetch the graphs of the next rounds while the steps of this one run."""


@dataclass(frozen=True, eq=False)
class _Round:
    """What some steps need."""

    order: Tensor  # the batches, by numbers in the window, in main memory
    tensors: dict[str, Tensor]  # the graphs, member after member, by the names of the buffers
    ready: torch.cuda.Event | None  # reached on the device when all of it is there


class Streamed(Feed):
    """Graphs stay in main memory; those of the next steps come while the present ones run.

    Threads gather the graphs of some steps from main memory, or from the mapped file, into pinned
    memory and copy them on a stream of their own. Then they are put into buffers that stay where
    they are, over which steps can be recorded.
    """

    def __init__(
        self,
        windows: Windows,
        model: GraphNetwork,
        preprocessing: Sequence[Preprocessing],
        entries: Tensor | None,
        dtype: torch.dtype,
    ) -> None:
        self.encoding, self.model, self.dtype = windows.encoding, model, dtype
        self.windows, self.preprocessing = windows, preprocessing
        self.entries = None if entries is None else entries.numpy()
        self.first_entries = None if entries is None else [first_entries(row) for row in entries]
        self.vocabularies = [fitted.num_neighbourhoods for fitted in preprocessing]
        self.stream = torch.cuda.Stream() if windows.device.type == "cuda" else None
        self.left: deque[Tensor] = deque()
        self.coming: deque[Future[_Round]] = deque()
        self.sizes: tuple[int, ...] = (0, 0, 0, 0)
        self.reserve(torch.full((len(preprocessing), 1, 1), -1))

    def reserve(self, plan: Tensor) -> bool:
        needs = [self.sizes, *map(self._needs, self._parts(plan))]
        needed = [max(each) for each in zip(*needs, strict=True)]
        if hasattr(self, "buffers") and needed == list(self.sizes):
            return False
        self.sizes = tuple(-(-each // STEP) * STEP for each in needed)
        self._allocate()
        return True

    def _needs(self, part: Tensor) -> tuple[int, ...]:
        graphs = self.windows.graphs
        chosen = part[part >= 0]
        nodes, edges = (
            int((ptr[chosen + 1] - ptr[chosen]).sum(dtype=torch.long))
            for ptr in (graphs.node_ptr, graphs.edge_ptr)
        )
        entries = 0
        if self.entries is not None:
            members = zip(self.entries, part, strict=True)
            entries = sum(int(each[row[row >= 0].numpy()].sum()) for each, row in members)
        return len(chosen), nodes, edges, entries

    def _allocate(self) -> None:
        graphs, nodes, edges, entries = self.sizes
        whole_set, device = self.windows.graphs, self.windows.device
        rows = {"node_ptr": graphs + 1, "row_ptr": nodes + 1, "source": edges}
        rows |= {"nodes": nodes, "edges": edges, "whole": graphs}

        def numbers(count: int) -> Tensor:
            return torch.zeros(count, dtype=torch.long, device=device)

        def empty(name: str, like: Tensor) -> Tensor:
            dtype = torch.long if name.endswith("_ptr") else like.dtype
            count = rows[name.partition(".")[0]]
            return torch.zeros(count, *like.shape[1:], dtype=dtype, device=device)

        bare = replace(whole_set, y=None, columns={}, node_ids=None, skipped=())
        tensors = {name: empty(name, like) for name, like in bare.tensors.items()}
        self.buffers: Graphs = bare.with_tensors(tensors)
        self.buffers.__dict__["is_undirected"] = whole_set.is_undirected
        if self.model.uses_edges:
            self.buffers.__dict__["is_symmetric"] = whole_set.is_symmetric
        in_set = {"number": numbers(graphs), "first_node": numbers(graphs)}
        self._read(self.buffers, self.preprocessing, in_set["first_node"])
        whole: dict[str, Any] = {}
        if totals := self.preprocessing[0].num_totals:
            whole["totals"] = torch.zeros(graphs, totals, device=device)
        if self.entries is not None:
            sizes = {"indices": entries, "offsets": graphs + 1, "first_entry": graphs}
            whole |= {name: numbers(size) for name, size in sizes.items()}
        self.whole = WholeGatherer(**whole, number=in_set["number"])
        self.slots = {**self.buffers.tensors, **in_set, **whole}

    def _put(self, made: _Round) -> None:
        if made.ready is not None:
            torch.cuda.current_stream().wait_event(made.ready)
        for name, slot in self.slots.items():
            if (values := made.tensors.get(name)) is not None:
                slot[: len(values)].copy_(values)
                if made.ready is not None:
                    values.record_stream(torch.cuda.current_stream())

    def _parts(self, plan: Tensor) -> tuple[Tensor, ...]:
        graphs = self.windows.graphs
        slots = plan.shape[0] * plan.shape[2] * graphs.num_nodes // max(len(graphs), 1)
        return plan.split(max(1, min(STEPS, NODES // max(slots, 1))), dim=1)

    def empty_order(self, plan: Tensor) -> Tensor:
        return torch.full_like(self._parts(plan)[0], -1, device=self.windows.device)

    def rounds(self, plan: Tensor) -> Iterator[Tensor]:
        self.left, self.coming = deque(self._parts(plan)), deque()
        with ThreadPoolExecutor(AHEAD) as self.pool:
            while self.left or self.coming:
                if not self.coming:
                    self.prefetch()
                made = self.coming.popleft().result()
                self._put(made)
                yield made.order

    def prefetch(self) -> None:
        while self.left and len(self.coming) < AHEAD:
            self.coming.append(self.pool.submit(self._fetch, self.left.popleft()))

    def _fetch(self, part: Tensor) -> _Round:
        """What some steps need; runs in a thread of its own."""
        beside = torch.cuda.stream(self.stream) if self.stream is not None else nullcontext()
        with torch.no_grad(), beside:
            real = part >= 0
            order = torch.full_like(part, -1)
            order[real] = torch.arange(int(real.sum()))
            window = self.windows.of(part[real])
            in_set = {"number": window.number, "first_node": window.first_node}
            tensors = {**window.graphs.tensors, **in_set, **self._whole(window, part)}
            ready = None
            if self.stream is not None:
                order = order.pin_memory()
                ready = torch.cuda.Event()
                ready.record(self.stream)
        return _Round(order, tensors, ready)

    def _whole(self, window: Window, part: Tensor) -> dict[str, Tensor]:
        """The features of a window's whole graphs, those of ``part``, by name."""
        if self.entries is None and not self.preprocessing[0].num_totals:
            return {}
        chosen = [batches[batches >= 0] for batches in part]
        numbers = torch.arange(len(window.number), device=window.number.device)
        columns = [
            fitted.columns(self.windows.whole(gather(window.graphs, index)))
            for fitted, index in zip(
                self.preprocessing, numbers.split([*map(len, chosen)]), strict=True
            )
        ]
        made = WholeGatherer.of(columns, self.vocabularies)
        tables = {"totals": made.totals, "indices": made.indices, "offsets": made.offsets}
        if made.indices is not None and self.first_entries is not None:
            pairs = zip(self.first_entries, chosen, strict=True)
            first = torch.cat([entries[index] for entries, index in pairs])
            tables["first_entry"] = first.to(numbers.device)
        return {name: table for name, table in tables.items() if table is not None}
