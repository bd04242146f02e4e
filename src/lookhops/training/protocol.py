"""What follows from a seed of the protocol: initial weights, shuffling, whatever is drawn."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from lookhops.nn import Architecture, GraphNetwork
from lookhops.options import Protocol as Protocol
from lookhops.options import parse_seeds as parse_seeds


def seeded_model(
    seed: int, in_channels: int, out_channels: int, architecture: Architecture
) -> GraphNetwork:
    """A network with this seed's initial weights, whatever was drawn before."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return GraphNetwork.from_architecture(in_channels, out_channels, architecture)


def epoch_generator(seed: int, epoch: int) -> torch.Generator:
    """What shuffles an epoch's training graphs: a fresh one each time, so that a run can go on."""
    return torch.Generator().manual_seed(seed * 1_000_003 + epoch)


@contextmanager
def epoch_randomness(seed: int, epoch: int, device: torch.device) -> Iterator[None]:
    """Whatever is drawn in the block (dropout) follows from the seed and the epoch alone."""
    devices = [device] if device.type == "cuda" else []
    with torch.random.fork_rng(devices=devices):
        torch.manual_seed(seed * 1_000_003 + epoch)
        yield
