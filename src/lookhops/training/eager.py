"""Engines: how an epoch is run on a device. The trainer asks; it does not know how."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from copy import deepcopy

import torch
from torch import Tensor

from lookhops.datasets.splits import Split
from lookhops.encoding import Encoding
from lookhops.graphs import Graphs
from lookhops.nn import Architecture, GraphNetwork
from lookhops.tasks import Task
from lookhops.training.protocol import (
    Protocol,
    epoch_generator,
    epoch_randomness,
    seeded_model,
)


class Engine(ABC):
    """Trains a stack of seeds, one model each, on one device.

    Whatever has one value a seed is a tensor of shape (seeds) in main memory.
    """

    seeds: Sequence[int]

    @abstractmethod
    def epoch(self, number: int) -> Tensor:
        """Train one epoch; the mean training loss of each seed."""

    @abstractmethod
    def validate(self) -> tuple[Tensor, Tensor]:
        """Validation loss and main metric of each seed."""

    @abstractmethod
    def predict(self, part: str) -> list[Tensor]:
        """Outputs for a part (``train``, ``val``, ``test``) with the kept weights of each seed."""

    @abstractmethod
    def remember(self, better: Tensor) -> None:
        """Keep the present weights of the seeds where ``better`` is true."""

    def retire(self, done: Tensor) -> None:  # noqa: B027  most engines have nothing to do
        """Hear which seeds have stopped; an engine may take them out of the stack."""

    @abstractmethod
    def weights(self) -> list[dict[str, Tensor]]:
        """The kept weights of each seed."""

    @abstractmethod
    def state(self) -> dict[str, Tensor]:
        """All that a later engine needs to go on from here."""

    @abstractmethod
    def restore(self, state: Mapping[str, Tensor]) -> None:
        """Go on from what :meth:`state` gave."""


class EagerEngine(Engine):
    """One seed, step by step, on any device: pooled graphs really get smaller."""

    def __init__(
        self,
        graphs: Graphs,
        task: Task,
        split: Split,
        seed: int,
        architecture: Architecture,
        protocol: Protocol,
        device: torch.device,
    ) -> None:
        self.seeds = (seed,)
        self.task = task
        self.protocol = protocol
        self.device = device
        self.parts = {
            part: graphs.select(getattr(split, part)).to(device)
            for part in ("train", "val", "test")
        }
        self.encoding = Encoding.fit(graphs, split.train)
        model = seeded_model(seed, self.encoding.width, task.out_channels, architecture)
        self.dtype = torch.float64 if protocol.precision == "float64" else torch.float32
        self.model = model.to(device, self.dtype)
        self.kept = {key: value.clone() for key, value in self.model.state_dict().items()}
        self.optimizer = torch.optim.Adam(
            self.model.parameters(),
            lr=protocol.learning_rate,
            weight_decay=protocol.weight_decay,
            fused=True,
        )
        fitted = task.fit(task.targets(graphs).cpu()[split.train])
        self.fitted = None if fitted is None else fitted.to(device, self.dtype)

    def epoch(self, number: int) -> Tensor:
        """Train one epoch; the mean training loss."""
        self.model.train()
        train = self.parts["train"]
        shuffle = epoch_generator(self.seeds[0], number)
        losses = []
        with epoch_randomness(self.seeds[0], number, self.device):
            for batch in train.batches(self.protocol.batch_size, shuffle=True, generator=shuffle):
                self.optimizer.zero_grad(set_to_none=True)
                output = self._forward(batch, self.model)
                loss, _ = self.task.losses(output, self.task.targets(batch), self.fitted)
                loss.backward()
                self.optimizer.step()
                losses.append(loss.detach() * len(batch))
        return torch.stack(losses).sum().div(len(train)).cpu().view(1)

    def validate(self) -> tuple[Tensor, Tensor]:
        """Validation loss and main metric."""
        output, target = self._outputs("val", self.model), self.task.targets(self.parts["val"])
        loss, _ = self.task.losses(output, target, self.fitted)
        score, _ = self.task.scores(output, target)
        return loss.cpu().view(1), score.cpu().view(1)

    def predict(self, part: str) -> list[Tensor]:
        """Outputs of the network for a part with the kept weights."""
        model = deepcopy(self.model)
        model.load_state_dict(self.kept)
        return [self._outputs(part, model).cpu()]

    @torch.no_grad()
    def _outputs(self, part: str, model: GraphNetwork) -> Tensor:
        model.eval()
        batches = self.parts[part].batches(self.protocol.batch_size)
        return torch.cat([self._forward(batch, model) for batch in batches])

    def _forward(self, batch: Graphs, model: GraphNetwork) -> Tensor:
        level = model.level(batch, self.encoding.columns(batch, dtype=self.dtype))
        if self.protocol.precision == "bfloat16":
            with torch.autocast(self.device.type, torch.bfloat16):
                return model(level).float()
        return model(level)

    def remember(self, better: Tensor) -> None:
        """Keep the present weights."""
        if bool(better[0]):
            for key, value in self.model.state_dict().items():
                self.kept[key].copy_(value)

    def weights(self) -> list[dict[str, Tensor]]:
        """The kept weights."""
        return [{key: value.cpu() for key, value in self.kept.items()}]

    def state(self) -> dict[str, Tensor]:
        """Weights, kept weights and Adam's moments."""
        state = {f"now.{key}": value for key, value in self.model.state_dict().items()}
        state |= {f"kept.{key}": value for key, value in self.kept.items()}
        for number, moments in self.optimizer.state_dict()["state"].items():
            state |= {f"adam.{number}.{key}": value for key, value in moments.items()}
        return {key: value.detach().cpu().clone() for key, value in state.items()}

    def restore(self, state: Mapping[str, Tensor]) -> None:
        """Go on from what :meth:`state` gave."""
        self.model.load_state_dict(under("now.", state))
        self.kept = {key: value.to(self.device) for key, value in under("kept.", state).items()}
        moments: dict[int, dict[str, Tensor]] = {}
        for key, value in under("adam.", state).items():
            number, name = key.split(".")
            moments.setdefault(int(number), {})[name] = value
        groups = self.optimizer.state_dict()["param_groups"]
        self.optimizer.load_state_dict({"state": moments, "param_groups": groups})


def under(prefix: str, state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """What a state holds under a prefix, without the prefix."""
    return {key[len(prefix) :]: value for key, value in state.items() if key.startswith(prefix)}
