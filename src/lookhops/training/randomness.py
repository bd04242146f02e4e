"""What is random in a run, and what it follows from: its seed, its member's number, the epoch."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from lookhops.encoding import Encoding
from lookhops.graphs import Graphs
from lookhops.nn import Architecture, GraphNetwork
from lookhops.tasks import Task

#: Stands where a seed does, for networks that are trained on all graphs.
FINAL = -1


def member_seed(seed: int, member: int) -> int:
    """The seed of all that is random in a member: of the first the split's own, else from both."""
    if member == 0 and seed != FINAL:
        return seed
    return int.from_bytes(hashlib.sha256(f"{seed} {member}".encode()).digest()[:4], "little")


def seeded_model(
    seed: int, in_channels: int, out_channels: int, architecture: Architecture, **sizes: int
) -> GraphNetwork:
    """A network with this seed's initial weights, whatever was drawn before."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)  # weights are drawn on the CPU
        return GraphNetwork.from_architecture(in_channels, out_channels, architecture, **sizes)


def unweighted(graphs: Graphs, task: Task, architecture: Architecture) -> GraphNetwork:
    """The network that these graphs would get, without weights: it shows what it is made of."""
    encoding = Encoding.fit(graphs, architecture.reads_edges, architecture.totals)
    sizes = {"in_channels": encoding.width, "out_channels": task.out_channels, **encoding.sizes}
    with torch.device("meta"):
        return GraphNetwork.from_architecture(architecture=architecture, **sizes)


def shuffled(train: Tensor, seed: int, epoch: int) -> Tensor:
    """The training graphs in an epoch's order: from a fresh generator, so that a run can go on."""
    generator = torch.Generator().manual_seed(_epoch_seed(seed, epoch))
    return train[torch.randperm(len(train), generator=generator)]


def dropout_key(seed: int, epoch: int) -> int:
    """What an epoch's dropout follows from: seed and epoch, 32 bits each, as a signed integer."""
    bits = seed << 32 | epoch
    return bits - (1 << 64) if bits >> 63 else bits


@contextmanager
def layers_of_others(seed: int, epoch: int, device: torch.device) -> Iterator[None]:
    """Fix PyTorch's generators for layers that draw from them, and put them back afterwards.

    Ours draw from a :func:`dropout_key`; a layer that a user registered may not.
    """
    # For a GPU that is not used, `torch.manual_seed` would note down every call with its stack.
    on_gpu = device.type == "cuda"
    fix = torch.manual_seed if on_gpu else torch.default_generator.manual_seed
    with torch.random.fork_rng(devices=[device] if on_gpu else []):
        fix(_epoch_seed(seed, epoch))
        yield


def _epoch_seed(seed: int, epoch: int) -> int:
    return seed * 1_000_003 + epoch
