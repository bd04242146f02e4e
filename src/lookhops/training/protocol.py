"""The protocol: everything that decides a training run but the graphs and the network."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import inf

import torch

from lookhops.errors import LookHopsError
from lookhops.nn import Architecture, GraphNetwork

PAPER_SEEDS = (11, 22, 33, 44, 55, 66, 77, 88, 99, 110)
MOST_SEEDS = 10_000
PRECISIONS = ("float32", "tf32", "bfloat16", "float64")


@dataclass(frozen=True)
class Protocol:
    """How a model is trained and tested. The defaults are the paper's, to the letter.

    Each seed draws its own split and its own initial weights. Adam; training stops after
    ``patience`` epochs without a lower validation loss; the weights of the lowest validation loss
    are tested, once.

    Args:
        seeds: One run for each.
        fractions: Of all graphs, for training, validation and test.
        stratify: Whether each part has the classes in the same proportions.
        batch_size: Graphs in a batch.
        learning_rate: Of Adam.
        weight_decay: Of Adam.
        max_epochs: No run is longer.
        patience: Epochs without improvement before a run stops.
        class_weights: Whether the loss weighs classes by their rarity in the training part.
        precision: ``float32``; ``tf32`` (dense products rounded to 10 bits on GPUs that can);
            ``bfloat16`` (layers in bfloat16, weights in float32); ``float64``.
    """

    seeds: tuple[int, ...] = PAPER_SEEDS
    fractions: tuple[float, float, float] = (0.8, 0.1, 0.1)
    stratify: bool = False
    batch_size: int = 256
    learning_rate: float = 1e-3
    weight_decay: float = 0.0
    max_epochs: int = 500
    patience: int = 30
    class_weights: bool = False
    precision: str = "float32"

    def __post_init__(self) -> None:
        if not self.seeds:
            raise LookHopsError("At least one seed is needed.")
        if len(set(self.seeds)) != len(self.seeds):
            raise LookHopsError(f"Seeds must differ from each other: {self.seeds}.")
        if not 0 <= min(self.seeds) <= max(self.seeds) < 2**32:
            raise LookHopsError("Seeds are whole numbers from 0 to 4,294,967,295.")
        for name in ("batch_size", "max_epochs", "patience"):
            if getattr(self, name) < 1:
                raise LookHopsError(f"{name} must be at least 1, not {getattr(self, name)}.")
        if not 0 < self.learning_rate < inf:
            raise LookHopsError(f"The learning rate must be above 0, not {self.learning_rate}.")
        if not 0 <= self.weight_decay < inf:
            raise LookHopsError(f"The weight decay must be at least 0, not {self.weight_decay}.")
        if self.precision not in PRECISIONS:
            raise LookHopsError(
                f"precision is one of {', '.join(PRECISIONS)}, not {self.precision!r}."
            )


def seeded_model(
    seed: int, in_channels: int, num_classes: int, architecture: Architecture
) -> GraphNetwork:
    """A network with this seed's initial weights, whatever was drawn before."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return GraphNetwork.from_architecture(in_channels, num_classes, architecture)


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


def class_weights(y: torch.Tensor, num_classes: int) -> torch.Tensor:
    """Weights that give each class the same say: n / (classes * count), zero for absent ones."""
    count = torch.bincount(y, minlength=num_classes)
    weight = y.numel() / (num_classes * count.clamp(min=1).float())
    return torch.where(count > 0, weight, torch.zeros_like(weight))


def parse_seeds(text: str | int | Sequence[int]) -> tuple[int, ...]:
    """Seeds from a count (the paper's first n: 11, 22, ...) or a list such as ``11,22,33``."""
    if isinstance(text, int) or (isinstance(text, str) and text.strip().isdecimal()):
        count = int(text)
        if not 1 <= count <= MOST_SEEDS:
            raise LookHopsError(f"A count of seeds is from 1 to {MOST_SEEDS:,}, not {count}.")
        return tuple(11 * (i + 1) for i in range(count))
    if isinstance(text, str):
        try:
            return tuple(int(part) for part in text.split(",") if part.strip())
        except ValueError as error:
            raise LookHopsError(
                f"Seeds are a count or numbers with commas between, not {text!r}."
            ) from error
    return tuple(int(seed) for seed in text)
