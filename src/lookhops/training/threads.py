"""How many threads PyTorch's operations take on the CPU."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from lookhops.core.options import Architecture, Protocol
from lookhops.graphs import Graphs

#: Numbers that a thread is worth: below that, threads wait longer for each other than they compute,
#: and where other programs hold the cores, much longer.
WORK = 1 << 19


def threads_for(nodes: float, channels: int) -> int:
    """The threads for batches of so many nodes with so many channels: one for little work.

    The answer does not depend on what else the machine does, so that neither do the numbers.
    """
    return max(min(torch.get_num_threads(), int(nodes * channels) // WORK), 1)


def threads_of(graphs: Graphs, architecture: Architecture, protocol: Protocol) -> int:
    """The threads that a batch of these graphs is worth."""
    nodes = protocol.batch_size * graphs.num_nodes / max(len(graphs), 1)
    return threads_for(nodes, architecture.hidden)


@contextmanager
def limited_threads(count: int) -> Iterator[None]:
    """PyTorch's operations take so many threads in the block."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
