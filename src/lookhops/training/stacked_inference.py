"""Trained networks as one stack over the same graphs; on a GPU a step is recorded and replayed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor
from torch.func import functional_call

from lookhops.encoding import Encoding
from lookhops.encoding.learnt import Learnt
from lookhops.encoding.scale import Scales
from lookhops.encoding.whole import WholeGraphs
from lookhops.nn import GraphNetwork
from lookhops.training.capacity import Capacity, keeps_shapes, makes_links
from lookhops.training.gather import Gatherer
from lookhops.training.member_weights import padded_stack
from lookhops.training.recording import Recorder
from lookhops.training.whole_gather import WholeGatherer

#: Nodes of a batch, those of all networks together: with 128 channels a tensor of 128 MiB.
MOST_NODES = 262_144
#: Graphs of a batch at most.
MOST_GRAPHS = 4096


class StackedNetworks:
    """Networks of one architecture with their weights stacked along a leading axis.

    Args:
        networks: The networks, on one device; their layers take a leading axis
            (:func:`~lookhops.training.stacked.stackable`).
        learnt: What each of them learnt to be told.
        encoding: What they are told.
    """

    def __init__(
        self, networks: Sequence[GraphNetwork], learnt: Sequence[Learnt], encoding: Encoding
    ) -> None:
        self.model = networks[0].eval()
        self.learnt = list(learnt)
        self.encoding = encoding
        each = [dict(network.named_parameters()) for network in networks]
        self.weights = {key: padded_stack([own[key].detach() for own in each]) for key in each[0]}
        self.dtype = next(iter(self.weights.values())).dtype

    @torch.no_grad()
    def outputs(self, whole: WholeGraphs) -> Tensor:
        """What each network gives for each graph, on the graphs' device.

        Args:
            whole: The graphs, on the networks' device, and what is known of them as wholes.

        Returns:
            Shape (networks, g, outputs).
        """
        graphs, members = whole.graphs, len(self.learnt)
        nodes = graphs.nodes_per_graph.cpu().numpy()
        edges = graphs.edge_ptr.diff().cpu().numpy()
        batches = batches_by_nodes(nodes, max(MOST_NODES // members, 1), MOST_GRAPHS)
        plan = np.broadcast_to(batches, (members, *batches.shape))
        gatherer = Gatherer(graphs, self.encoding, self.model)
        columns = [own.whole.columns(whole) for own in self.learnt]
        sizes = [own.whole.num_neighbourhoods for own in self.learnt]
        told = WholeGatherer(columns, sizes)
        like = torch.empty(0, dtype=self.dtype, device=graphs.device)
        scales = Scales.stack([own.scales for own in self.learnt], like)
        tells = gatherer.tells_edges, makes_links(self.model)
        needed = Capacity.of(plan, nodes, edges, told.counts, *tells)
        room = Capacity(0, 0).grown(needed)
        order = torch.from_numpy(batches).to(graphs.device)
        shape = members, len(graphs) + 1, self.model.out_channels  # one place more, for padding
        found = torch.empty(shape, dtype=self.dtype, device=graphs.device)

        def step(number: Tensor) -> None:
            index = order.index_select(0, number)
            each = index.expand(members, -1)
            level = gatherer(each, room, self.dtype, scales)
            level = replace(level, whole=told(each, room.entries))
            output = functional_call(self.model, self.weights, (level,))
            place = torch.where(index[0] >= 0, index[0], len(graphs))
            found.index_copy_(1, place, output.to(self.dtype))

        fixed = keeps_shapes(self.model, room, members) and len(batches) > 2
        Recorder(None, torch.zeros(1, device=graphs.device), fixed).run("", step, len(batches))
        return found[:, :-1]


def batches_by_nodes(nodes: np.ndarray, most_nodes: int, most_graphs: int) -> np.ndarray:
    """Graphs in their order in batches of a bounded number of nodes; a larger graph is alone.

    Args:
        nodes: Nodes of each graph, shape (g), g at least 1.
        most_nodes: Of a batch.
        most_graphs: Of a batch.

    Returns:
        Numbers of the graphs, shape (batches, size), -1 for none.
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
    place = np.arange(count.max())
    return np.where(place < count[:, None], first[:, None] + place, -1)
