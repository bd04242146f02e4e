"""Engines: how an epoch is run on a device. The trainer asks; it does not know how."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.func import functional_call

from lookhops.core.errors import LookHopsError
from lookhops.core.options import Protocol
from lookhops.encoding import Encoding
from lookhops.encoding.graph_encoding import PreparedGraphs, Preprocessing
from lookhops.graphs import Graphs
from lookhops.nn import Architecture, GraphBatch, GraphNetwork
from lookhops.ops.adam import Adam
from lookhops.sources.splits import Split
from lookhops.tasks import Task
from lookhops.training.batches import batches
from lookhops.training.device import dtype_of, layers
from lookhops.training.randomness import seeded_model
from lookhops.training.runs import Rates
from lookhops.training.windows import Windows, should_stream
from lookhops.training.workers import ALONE, Workers

#: What Adam remembers of each parameter.
MOMENTS = ("step", "exp_avg", "exp_avg_sq")


class Engine(ABC):
    """Trains the members of a stack, one network each, on one device.

    A member has its own seed and its own split, and all that is random in it follows from that
    seed. Whatever has one value a member is a tensor of shape (members) in main memory.

    Args:
        graphs: Graphs with targets.
        task: What is asked.
        splits: One for each seed.
        seeds: One for each member.
        architecture: The network.
        protocol: How to train.
        device: Where.
        rates: Learning rate, weight decay and dropout of each member; by default those of protocol
            and architecture.
        workers: The processes that train these members together, this one among them.
    """

    model: GraphNetwork

    def __init__(
        self,
        graphs: Graphs,
        task: Task,
        splits: Sequence[Split],
        seeds: Sequence[int],
        architecture: Architecture,
        protocol: Protocol,
        device: torch.device,
        rates: Sequence[Rates] | None = None,
        workers: Workers = ALONE,
    ) -> None:
        self.task = task
        self.workers = workers
        self.splits = tuple(splits)
        self.seeds = tuple(seeds)
        self.rates = tuple(rates or [Rates.of(architecture, protocol)] * len(self.seeds))
        #: What a state calls each member: by its seed, and by a number where that is not its own.
        self.names = [
            f"{seed}-{before}" if (before := self.seeds[:i].count(seed)) else f"{seed}"
            for i, seed in enumerate(self.seeds)
        ]
        self.architecture = architecture
        self.protocol = protocol
        self.device = device
        self.dtype = dtype_of(protocol.precision)
        self.nodes = graphs.nodes_per_graph.cpu()
        self.target = task.targets(graphs).to(device)
        self.encoding = Encoding.fit(graphs, architecture.reads_edges, architecture.totals)
        #: The graphs where they do not live on the device, or none.
        self.windows: Windows | None = None
        if should_stream(graphs, architecture, protocol, len(seeds), device):
            self.windows = Windows(graphs, architecture, self.encoding, device)
        else:
            self.graphs = graphs.to(device)
            # Features of whole graphs: computed once, then fitted on each training part.
            self.whole = PreparedGraphs.of(self.graphs, architecture, self.encoding)
        #: What was fitted on each member's training part.
        preprocessing = {
            one: Preprocessing.fit(self.whole, architecture, one.train)
            if self.windows is None
            else self.windows.learn(one.train)
            for one in dict.fromkeys(splits)
        }
        self.preprocessing = [preprocessing[split] for split in splits]
        #: What the task took from each member's training part.
        self.fitted_each = [task.fit(self.target[split.train.to(device)]) for split in splits]
        width, outputs = self.encoding.width, task.out_channels
        models = [
            seeded_model(
                seed, width, outputs, architecture, **preprocessing.sizes, **self.encoding.sizes
            )
            for seed, preprocessing in zip(seeds, self.preprocessing, strict=True)
        ]
        self.prepare([model.to(device, self.dtype) for model in models])

    @abstractmethod
    def prepare(self, models: Sequence[GraphNetwork]) -> None:
        """Make all that training needs from each member's network with its initial weights."""

    # ---------------------------------------------------------------- what the trainer asks

    @abstractmethod
    def epoch(self, number: int) -> Tensor:
        """Train one epoch; the mean training loss of each member."""

    @abstractmethod
    def validate(self) -> tuple[Tensor, Tensor]:
        """Validation loss and main metric of each member."""

    @abstractmethod
    def validated(self) -> Tensor:
        """The outputs that :meth:`validate` measured, in main memory.

        Shape (members, n, channels), with padding where parts differ in size, and anything for a
        member that has left.
        """

    @abstractmethod
    def predict(self, part: str) -> list[Tensor]:
        """Outputs for a part (``train``, ``val`` or ``test``) with each member's kept weights."""

    @abstractmethod
    def remember(self, better: Tensor) -> None:
        """Keep the present weights of the members where ``better`` is true."""

    def retire(self, done: Tensor) -> None:  # noqa: B027  an engine of one has nothing to do
        """Hear which members have stopped; an engine may take them out of the stack."""

    @abstractmethod
    def weights(self) -> list[dict[str, Tensor]]:
        """The kept weights of each member."""

    @abstractmethod
    def state(self) -> dict[str, Tensor]:
        """All that a later engine, of whichever kind, needs to go on from here.

        For each member ``SEED.now.NAME``, ``SEED.kept.NAME`` and Adam's ``SEED.adam-MOMENT.NAME``
        (a second member of a seed is ``SEED-1``); of one that has left the stack only what was
        kept.
        """

    @abstractmethod
    def restore(self, state: Mapping[str, Tensor]) -> None:
        """Go on from what :meth:`state` gave."""

    # ---------------------------------------------------------------- what engines share

    def batches(self, order: Tensor) -> list[Tensor]:
        """The graphs of each batch, in this order."""
        return batches(order, self.nodes, self.protocol)

    def loss(
        self,
        output: Tensor,
        target: Tensor,
        fitted: Tensor | None,
        added: Tensor | None,
        real: Tensor | None,
    ) -> tuple[Tensor, Tensor]:
        """This worker's part of the training loss of a batch, and the graphs of the whole batch.

        The parts of all workers add up to the loss, shape (...), as their graphs do.

        Args:
            output, target, fitted: As for :meth:`~lookhops.tasks.Task.losses`.
            added: What layers add to each graph's, shape (..., g); none adds nothing.
            real: Which places hold a graph that counts, shape (..., g); none means all.
        """
        mean, weight = self.task.losses(output, target, fitted, real)
        if real is None:
            assert self.workers.alone
            return (mean if added is None else mean + added.mean(-1)), weight
        graphs = real.sum(-1)
        if self.workers.alone:
            if added is not None:
                mean = mean + (added * real).sum(-1) / graphs.clamp(min=1)
            return mean, graphs
        graphs = graphs.to(weight.dtype)
        all_weight, all_graphs = weight.detach().clone(), graphs.clone()
        self.workers.add(all_weight, all_graphs)
        part = mean * weight / all_weight.clamp(min=1e-12)
        if added is not None:
            part = part + (added * real).sum(-1) / all_graphs.clamp(min=1)
        return part, all_graphs

    def forward(
        self, batch: GraphBatch, weights: Mapping[str, Tensor], key: Tensor | None = None
    ) -> tuple[Tensor, Tensor | None]:
        """Outputs of the network with these weights, in the protocol's precision.

        Beside them is what layers add to the training loss of each graph, or none.
        """
        with layers(self.protocol.precision, self.device):
            options = {"key": key, "with_loss": True}
            output, added = functional_call(self.model, dict(weights), (batch,), options)
        return output.to(self.dtype), added

    def begin(self, parameters: Iterable[Tensor], members: Sequence[int]) -> Adam:
        """Give the network these members' dropout; their optimiser, on a GPU to be recorded."""
        rates = [self.rates[member] for member in members]
        first, values = rates[0], list(parameters)
        options: dict[str, Any] = {"fused": True, "capturable": self.device.type == "cuda"}
        if all(own == first for own in rates):
            self.model.dropout = first.dropout
            return Adam(values, lr=first.learning_rate, weight_decay=first.weight_decay, **options)
        shares = [own.dropout for own in rates]
        self.model.dropout = torch.tensor(shares, dtype=torch.float64, device=self.device)
        return MemberAdam(values, rates, **options)


def moments(optimizer: Adam, weights: Mapping[str, Tensor]) -> dict[str, dict[str, Tensor]]:
    """What Adam remembers: moment, name of the parameter, value; empty before the first step."""
    state = optimizer.state
    return {
        f"adam-{moment}": {n: state[w][moment] for n, w in weights.items() if w in state}
        for moment in MOMENTS
    }


def entries(state: Mapping[str, Tensor], name: str, what: str) -> dict[str, Tensor]:
    """A member's entries of a state: ``now``, ``kept`` or one of Adam's moments."""
    prefix = f"{name}.{what}."
    return {key[len(prefix) :]: value for key, value in state.items() if key.startswith(prefix)}


def check_state(state: Mapping[str, Tensor], names: Iterable[str]) -> None:
    """Refuse a state that lacks a member's weights."""
    for name in names:
        if not entries(state, name, "kept"):
            raise LookHopsError(
                f"The unfinished training holds no weights of seed {name}: another version of "
                "LookHops began it. Begin again with --overwrite."
            )


class MemberAdam(Adam):
    r"""Adam with a learning rate and a weight decay for each member of a stack.

    PyTorch's takes one rate for all of a parameter. A step of it with the rate 1 moves a parameter
    :math:`\theta` by :math:`u`, which does not depend on the rate; of this each member :math:`m`
    takes its share, where there is no kernel that takes one rate for each:

    .. math::
        \theta_m \leftarrow \theta_m + \eta_m u_m, \qquad
        u = \mathrm{Adam}_1(\nabla_m + \lambda_m \theta_m)

    The rates are tensors on the device of the parameters, which a recorded step reads.

    Args:
        parameters: With a leading axis of members, shape (members, ...).
        rates: Of each member.
        options: Of :class:`torch.optim.Adam`.
    """

    def __init__(
        self, parameters: Iterable[Tensor], rates: Sequence[Rates], **options: Any
    ) -> None:
        super().__init__(parameters, lr=1.0, **options)
        self.learning = self._rates(*(own.learning_rate for own in rates))
        self.decay = self._rates(*(own.weight_decay for own in rates))

    def step_of_pytorch(self, closure: Callable[[], Any] | None) -> None:
        """The formula above."""
        assert closure is None
        moved = [value for value in self.values if value.grad is not None]
        for value in moved:
            value.grad.addcmul_(value, _along(self.decay, value))  # type: ignore[union-attr]
        before = [value.clone() for value in moved]
        super().step_of_pytorch(closure)
        for value, old in zip(moved, before, strict=True):
            value.copy_(old.lerp_(value, _along(self.learning, value)))


def _along(each: Tensor, value: Tensor) -> Tensor:
    """One number a member, shaped to multiply a parameter."""
    return each.view(-1, *[1] * (value.dim() - 1))
