"""What several trained networks give for the same graphs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cached_property
from typing import TypeVar

import torch
from torch import Tensor

from lookhops.encoding import Encoding
from lookhops.encoding.learnt import Learnt
from lookhops.encoding.whole import WholeGraphs
from lookhops.graphs import Graphs
from lookhops.graphs.choosing import gather
from lookhops.nn import GraphNetwork, Level
from lookhops.training.inputs import BATCH_SIZE, MemberInputs
from lookhops.training.stacked import stackable
from lookhops.training.stacked_inference import StackedNetworks
from lookhops.training.threads import limited_threads

Result = TypeVar("Result")
#: Batches that are computed at a time on the CPU at most: Python itself keeps no more busy.
MOST_THREADS = 4


class Ensemble:
    """Trained networks of one architecture that are asked about the same graphs.

    On a GPU they are one stack, whose step is recorded (:class:`StackedNetworks`). On the CPU each
    batch is gathered once for all of them; batches are computed side by side, each by one thread,
    so that no thread ever waits for another that the machine has put aside.

    Args:
        networks: The networks, on one device.
        learnt: What each of them learnt to be told.
        encoding: What they are told.
    """

    def __init__(
        self, networks: Sequence[GraphNetwork], learnt: Sequence[Learnt], encoding: Encoding
    ) -> None:
        self.networks = [network.eval() for network in networks]
        self.learnt = list(learnt)
        self.encoding = encoding

    @cached_property
    def stack(self) -> StackedNetworks:
        """The networks with a leading axis."""
        return StackedNetworks(self.networks, self.learnt, self.encoding)

    @torch.inference_mode()
    def outputs(self, whole: WholeGraphs) -> list[Tensor]:
        """What each network gives for each graph, shape (g, outputs), in main memory.

        Args:
            whole: The graphs, on the networks' device, and what is known of them as wholes.
        """
        first = self.networks[0]
        if not len(whole.graphs):
            return [torch.zeros(0, first.out_channels) for _ in self.networks]
        if whole.graphs.device.type == "cuda" and stackable(first):
            return list(self.stack.outputs(whole).cpu().unbind(0))
        return self._each_batch(whole, self.networks, lambda network, level: network(level))

    @torch.inference_mode()
    def readout(self, whole: WholeGraphs) -> Tensor:
        """The summed readouts of the first network's layers, shape (g, d), in main memory.

        A network without a convolution has none: d is 0.
        """
        first = self.networks[0]
        if not first.convs or not len(whole.graphs):
            return torch.zeros(len(whole.graphs), first.readout_channels)
        return self._each_batch(whole, [first], _readout)[0]

    def _each_batch(
        self,
        whole: WholeGraphs,
        networks: Sequence[GraphNetwork],
        what: Callable[[GraphNetwork, Level], Tensor],
    ) -> list[Tensor]:
        """What is computed for each network, batch after batch, joined."""
        known: dict[int, MemberInputs] = {}
        for own in self.learnt:
            if id(own) not in known:
                known[id(own)] = MemberInputs(whole, self.encoding, own)
        inputs = [known[id(own)] for own, _ in zip(self.learnt, networks, strict=False)]

        def batch(index: Tensor) -> list[Tensor]:
            with torch.inference_mode():
                levels = _levels(networks, inputs, whole.graphs, index)
                return [what(n, level).cpu() for n, level in zip(networks, levels, strict=True)]

        _ = whole.graphs.is_undirected  # found out once, not by every thread
        batches = _batches(whole.graphs)
        found = list(side_by_side(batch, batches))
        return [torch.cat(each) for each in zip(*found, strict=True)]


def _readout(network: GraphNetwork, level: Level) -> Tensor:
    total = network.look(level)[1]
    assert total is not None
    return total


def _levels(
    networks: Sequence[GraphNetwork],
    inputs: Sequence[MemberInputs],
    graphs: Graphs,
    index: Tensor,
) -> Iterator[Level]:
    """A batch as each network sees it: the same level, save for what a network learnt."""
    chosen = gather(graphs, index)
    shared: Level | None = None
    for network, own in zip(networks, inputs, strict=True):
        if shared is None or own.are_scaled:
            shared = own.level(network, index, chosen)
            yield shared
        else:
            yield replace(shared, whole=own.gather_whole.one(index))


def _batches(graphs: Graphs) -> list[Tensor]:
    """The numbers of the graphs, in batches; larger ones on a GPU, which they hardly fill."""
    size = BATCH_SIZE if graphs.device.type == "cpu" else 16 * BATCH_SIZE
    return list(torch.arange(len(graphs), device=graphs.device).split(size))


def side_by_side(batch: Callable[[Tensor], Result], batches: Sequence[Tensor]) -> Iterator[Result]:
    """The batches' results in order; on the CPU several at a time, by one thread each.

    Args:
        batch: What is done with each, given the numbers of its graphs.
        batches: One at least.
    """
    threads = min(torch.get_num_threads(), MOST_THREADS, len(batches))
    if batches[0].is_cuda or threads < 2:
        yield from map(batch, batches)
        return
    with (
        limited_threads(1),
        ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,)) as pool,
    ):
        yield from pool.map(batch, batches)
