"""What several trained networks give for the same graphs."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import TypeVar, cast

import numpy as np
import torch
from torch import Tensor
from torch.func import functional_call

from lookhops.encoding import Encoding
from lookhops.encoding.preprocessing import PreparedGraphs, Preprocessing
from lookhops.graphs import Graphs
from lookhops.graphs.choosing import gather
from lookhops.nn import GraphNetwork
from lookhops.training.batches import Capacity, GraphSizes, keeps_shapes
from lookhops.training.device import limited_threads
from lookhops.training.feed import Feed
from lookhops.training.inputs import MemberInputs
from lookhops.training.member_weights import padded_stack
from lookhops.training.recording import Recorder
from lookhops.training.stacked import stackable

Result = TypeVar("Result")
#: Batches that are computed at a time on the CPU at most: Python itself keeps no more busy.
MOST_THREADS = 4
#: Numbers of a layer's features in a batch on the CPU at most, 4 MiB; graphs of a batch on a GPU.
MOST_NUMBERS, GPU_GRAPHS = 1 << 20, 4096
#: Nodes of a batch on a GPU at most, those of all networks: with 128 channels a tensor of 128 MiB.
MOST_NODES = 262_144


class Ensemble:
    """Trained networks of one architecture that are asked about the same graphs.

    On a GPU they are one stack, whose step is recorded. On the CPU each batch is gathered once for
    all of them; batches are computed side by side, each by one thread, so that no thread ever waits
    for another that the machine has put aside.
    """

    def __init__(
        self,
        networks: Sequence[GraphNetwork],
        preprocessing: Sequence[Preprocessing],
        encoding: Encoding,
    ) -> None:
        self.networks = [network.eval() for network in networks]
        self.preprocessing, self.encoding = list(preprocessing), encoding

    @torch.inference_mode()
    def outputs(self, prepared: PreparedGraphs) -> list[Tensor]:
        """What each network gives for each graph, shape (g, outputs), in main memory.

        ``prepared`` are the graphs, on the networks' device, with their features of whole graphs.
        """
        first, graphs = self.networks[0], prepared.graphs
        if not len(graphs):
            return [torch.zeros(0, first.out_channels) for _ in self.networks]
        if graphs.device.type == "cuda" and stackable(first):
            return list(self.stacked_outputs(prepared).cpu().unbind(0))
        inputs = self._inputs(prepared)
        number = torch.arange(len(graphs), device=graphs.device)
        features = {id(one): one.gather_whole.every(number) for one in inputs}
        totals = self._readouts(prepared, self.networks, inputs)
        return [
            network.answer(total, features[id(one)]).cpu()
            for network, total, one in zip(self.networks, totals, inputs, strict=True)
        ]

    @torch.inference_mode()
    def readout(self, prepared: PreparedGraphs) -> Tensor:
        """The summed readouts of the first network's layers, shape (g, d), in main memory.

        A network without a convolution has none: d is 0.
        """
        first = self.networks[0]
        if not first.convs or not len(prepared.graphs):
            return torch.zeros(len(prepared.graphs), first.readout_channels)
        total = self._readouts(prepared, [first], self._inputs(prepared))[0]
        assert total is not None
        return total.cpu()

    def _inputs(self, prepared: PreparedGraphs) -> list[MemberInputs]:
        different = {id(fitted): fitted for fitted in self.preprocessing}
        inputs = {key: MemberInputs(prepared, self.encoding, f) for key, f in different.items()}
        return [inputs[id(fitted)] for fitted in self.preprocessing]

    def _readouts(
        self,
        prepared: PreparedGraphs,
        networks: Sequence[GraphNetwork],
        inputs: Sequence[MemberInputs],
    ) -> list[Tensor | None]:
        """The sum of each network's readouts, shape (g, d); none where it has no convolution."""
        if not networks[0].convs:
            return [None] * len(networks)

        @torch.inference_mode()
        def totals(index: Tensor) -> list[Tensor]:
            graphs, batch, found = gather(prepared.graphs, index), None, []
            for network, one in zip(networks, inputs, strict=False):
                if batch is None or one.are_scaled:  # else members read the same batch
                    batch = one.bare_batch(network, graphs)
                found.append(cast(Tensor, network.look(batch)[1]))
            return found

        _ = prepared.graphs.is_undirected  # found out once, not by every thread
        batches = _batches(prepared.graphs, networks[0].architecture.hidden)
        return [torch.cat(each) for each in zip(*side_by_side(totals, batches), strict=True)]

    @torch.no_grad()
    def stacked_outputs(self, prepared: PreparedGraphs) -> Tensor:
        """As :meth:`outputs`, by one stack, on the graphs' device: (networks, g, outputs)."""
        model, graphs, members = self.networks[0], prepared.graphs, len(self.preprocessing)
        dtype = next(model.parameters()).dtype
        columns = [fitted.columns(prepared) for fitted in self.preprocessing]
        feed = Feed(graphs, self.encoding, model, columns, self.preprocessing, dtype)
        nodes = graphs.nodes_per_graph.cpu().numpy()
        batches = batches_by_nodes(nodes, max(MOST_NODES // members, 1), GPU_GRAPHS)
        sizes = GraphSizes(model, nodes, graphs.edge_ptr)
        plan = np.broadcast_to(batches, (members, *batches.shape))
        capacity = Capacity(0, 0).grown(sizes.needs(plan, feed.entries))
        order = torch.from_numpy(batches).to(graphs.device)
        shape = members, len(graphs) + 1, model.out_channels  # one place more, for padding
        outputs = torch.empty(shape, dtype=dtype, device=graphs.device)

        def step(number: Tensor) -> None:
            index = order.index_select(0, number)
            batch = feed.batch(index.expand(members, -1), capacity)
            output = functional_call(model, self._weights, (batch,))
            row = torch.where(index[0] >= 0, index[0], len(graphs))
            outputs.index_copy_(1, row, output.to(dtype))

        fixed = keeps_shapes(model, capacity, members) and len(batches) > 2
        Recorder(None, torch.zeros(1, device=graphs.device), fixed).run("", step, len(batches))
        return outputs[:, :-1]

    @cached_property
    def _weights(self) -> dict[str, Tensor]:
        each = [dict(network.named_parameters()) for network in self.networks]
        return {key: padded_stack([one[key].detach() for one in each]) for key in each[0]}


def _batches(graphs: Graphs, channels: int) -> list[Tensor]:
    """The numbers of the graphs, in batches: on the CPU a layer's tensors stay in the cache."""
    if graphs.device.type != "cpu":
        return list(torch.arange(len(graphs), device=graphs.device).split(GPU_GRAPHS))
    nodes = graphs.nodes_per_graph.numpy()
    batches = batches_by_nodes(nodes, max(MOST_NUMBERS // channels, 1), len(nodes))
    return [torch.from_numpy(batch[batch >= 0]) for batch in batches]


def side_by_side(batch: Callable[[Tensor], Result], batches: Sequence[Tensor]) -> Iterator[Result]:
    """The results of ``batch`` in order; on the CPU several at a time, by one thread each."""
    threads = min(torch.get_num_threads(), MOST_THREADS, len(batches))
    if batches[0].is_cuda or threads < 2:
        yield from map(batch, batches)
        return
    with (
        limited_threads(1),
        ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,)) as pool,
    ):
        yield from pool.map(batch, batches)


def batches_by_nodes(nodes: np.ndarray, most_nodes: int, most_graphs: int) -> np.ndarray:
    """Graphs in their order in batches of a bounded number of nodes; a larger graph is alone.

    Gives the numbers of the graphs, shape (batches, size), -1 for none.
    """
    ends = np.cumsum(nodes, dtype=np.int64)
    starts, start = [], 0
    while start < len(nodes):
        starts.append(start)
        before = ends[start - 1] if start else 0
        stop = int(np.searchsorted(ends, before + most_nodes, side="right"))
        start = max(min(stop, start + most_graphs), start + 1)
    first = np.array(starts, dtype=np.int64)
    count = np.diff(first, append=len(nodes))
    position = np.arange(count.max())
    return np.where(position < count[:, None], first[:, None] + position, -1)
