"""Engines: how an epoch is run on a device. The trainer asks; it does not know how."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.func import functional_call

from lookhops.core.options import Protocol
from lookhops.encoding import Encoding
from lookhops.encoding.preprocessing import PreparedGraphs, Preprocessing
from lookhops.graphs import Graphs
from lookhops.nn import Architecture, GraphBatch, GraphNetwork
from lookhops.ops.adam import Adam
from lookhops.sources.splits import Split
from lookhops.tasks import Task
from lookhops.training.batches import batches
from lookhops.training.device import (
    dense_products,
    dropout_key,
    layers_of_others,
    seeded_model,
    shuffled,
)
from lookhops.training.inputs import MemberInputs, WindowInputs
from lookhops.training.member_weights import MemberAdam, MemberWeights, ModelWeights
from lookhops.training.runs import Rates
from lookhops.training.windows import Windows, should_stream
from lookhops.training.workers import ALONE, Workers


class Engine(ABC):
    """Trains the members of a stack, one network each, on one device.

    A member has its own seed and its own split, and all that is random in it follows from that
    seed. Whatever has one value a member is a tensor of shape (members) in main memory.

    Args:
        graphs, task, architecture, protocol, device, workers: As for
            :class:`~lookhops.training.trainer.Trainer`.
        splits, seeds: One for each member.
        rates: Learning rate, weight decay and dropout of each member; by default those of protocol
            and architecture.
    """

    model: GraphNetwork
    stack: ModelWeights | MemberWeights

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
        self.task, self.architecture, self.protocol = task, architecture, protocol
        self.device, self.workers = device, workers
        #: Of the weights, the features and the losses.
        self.dtype = torch.float64 if protocol.precision == "float64" else torch.float32
        self.splits, self.seeds = tuple(splits), tuple(seeds)
        self.rates = tuple(rates or [Rates.of(architecture, protocol)] * len(self.seeds))
        #: What a state calls each member: by its seed, and by a number where that is not its own.
        self.names = [
            f"{seed}-{before}" if (before := self.seeds[:i].count(seed)) else f"{seed}"
            for i, seed in enumerate(self.seeds)
        ]
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
            seeded_model(seed, width, outputs, architecture, **fitted.sizes, **self.encoding.sizes)
            for seed, fitted in zip(seeds, self.preprocessing, strict=True)
        ]
        self.prepare([model.to(device, self.dtype) for model in models])

    @abstractmethod
    def prepare(self, models: Sequence[GraphNetwork]) -> None:
        """Make all that training needs from each member's network with its initial weights."""

    @abstractmethod
    def epoch(self, number: int) -> Tensor:
        """Train one epoch; the mean training loss of each member."""

    @abstractmethod
    def validate(self) -> tuple[Tensor, Tensor]:
        """Validation loss and main metric of each member."""

    @abstractmethod
    def validated(self) -> Tensor:
        """The outputs that :meth:`validate` measured, padded, in main memory, (members, n, c)."""

    @abstractmethod
    def predict(self, part: str) -> list[Tensor]:
        """Outputs for a part (``train``, ``val`` or ``test``) with each member's kept weights."""

    def remember(self, better: Tensor) -> None:
        """Keep the present weights of the members where ``better`` is true."""
        self.stack.remember(better)

    def retire(self, done: Tensor) -> None:  # noqa: B027  an engine of one has nothing to do
        """Hear which members have stopped; an engine may take them out of the stack."""

    def weights(self) -> list[dict[str, Tensor]]:
        """The kept weights of each member."""
        return self.stack.each()

    def state(self) -> dict[str, Tensor]:
        """All that a later engine, of whichever kind, needs to go on from here.

        For each member ``SEED.now.NAME``, ``SEED.kept.NAME`` and Adam's ``SEED.adam-MOMENT.NAME``
        (a second member of a seed is ``SEED-1``); of one that has left the stack only what was
        kept.
        """
        return self.stack.state()

    def restore(self, state: Mapping[str, Tensor]) -> None:
        """Go on from what :meth:`state` gave."""
        self.stack.restore(state)

    def batches(self, order: Tensor) -> list[Tensor]:
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

        The parts of all workers add up to the loss of the task, shape (...), and what layers have
        ``added`` to each graph's, shape (..., g); ``real`` says which places hold a graph.
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
        enabled = self.protocol.precision == "bfloat16"
        with torch.autocast(self.device.type, torch.bfloat16, enabled=enabled):
            options = {"key": key, "with_loss": True}
            output, added = functional_call(self.model, dict(weights), (batch,), options)
        return output.to(self.dtype), added

    def begin(self, parameters: Iterable[Tensor], members: Sequence[int]) -> Adam:
        """Give the network these members' dropout; their optimiser, on a GPU to be recorded."""
        rates = [self.rates[member] for member in members]
        first, values = rates[0], list(parameters)
        options: dict[str, Any] = {"fused": True, "capturable": self.device.type == "cuda"}
        if set(rates) == {first}:
            self.model.dropout = first.dropout
            return Adam(values, lr=first.learning_rate, weight_decay=first.weight_decay, **options)
        dropout = [rate.dropout for rate in rates]
        self.model.dropout = torch.tensor(dropout, dtype=torch.float64, device=self.device)
        return MemberAdam(values, rates, **options)


class EagerEngine(Engine):
    """One member on any device: pooled graphs really get smaller."""

    def prepare(self, models: Sequence[GraphNetwork]) -> None:
        [self.model] = models
        [self.seed], [self.split], [self.fitted] = self.seeds, self.splits, self.fitted_each
        [preprocessing] = self.preprocessing
        self.inputs: MemberInputs | WindowInputs
        if self.windows is None:
            self.inputs = MemberInputs(self.whole, self.encoding, preprocessing)
        else:
            self.inputs = WindowInputs(self.windows, preprocessing)
        self.stack = ModelWeights(self.model, self.names[0], self.begin)

    def epoch(self, number: int) -> Tensor:
        self.model.train()
        order = shuffled(self.split.train, self.seed, number)
        key = torch.tensor(dropout_key(self.seed, number), device=self.device)
        losses = []
        with (
            dense_products(self.protocol.precision),
            layers_of_others(self.seed, number, self.device),
        ):
            for index in self.batches(order):
                self.stack.optimizer.zero_grad(set_to_none=True)
                loss = self._loss(index, key)
                loss.backward()
                self.workers.add_gradients(self.model.parameters())
                self.stack.optimizer.step()
                losses.append(loss.detach() * len(index))
        total = torch.stack(losses).sum()
        self.workers.add(total)
        return total.div(len(order)).cpu().view(1)

    def _loss(self, index: Tensor, key: Tensor) -> Tensor:
        """The training loss of a batch; of several workers, this one's part of it."""
        share = self.workers.share(index)
        counts = len(share) > 0
        if not counts:  # a batch with fewer graphs than workers: its gradient is zero here
            share = index[:1]
        batch, target = self.inputs.batch(self.model, share), self.target[share.to(self.device)]
        output, added = self.forward(batch, {}, key)
        alone = self.workers.alone
        real = None if alone else torch.full((len(share),), counts, device=self.device)
        return self.loss(output, target, self.fitted, added, real)[0]

    def validate(self) -> tuple[Tensor, Tensor]:
        output, target = self._outputs(self.split.val, {})
        self.val_outputs = output
        loss, _ = self.task.losses(output, target, self.fitted)
        score, _ = self.task.scores(output, target, self.fitted)
        return loss.cpu().view(1), score.cpu().view(1)

    def validated(self) -> Tensor:
        return self.val_outputs.cpu()[None]

    def predict(self, part: str) -> list[Tensor]:
        return [self._outputs(getattr(self.split, part), self.stack.kept)[0].cpu()]

    @torch.no_grad()
    def _outputs(self, part: Tensor, weights: Mapping[str, Tensor]) -> tuple[Tensor, Tensor]:
        self.model.eval()
        outputs, batches, workers = [], self.batches(part), self.workers
        with dense_products(self.protocol.precision):
            for number, index in enumerate(batches):
                if number % workers.count == workers.rank:
                    outputs.append(self.forward(self.inputs.batch(self.model, index), weights)[0])
                else:  # another worker's: all are added up
                    width = self.task.out_channels
                    none = torch.zeros(len(index), width, dtype=self.dtype, device=self.device)
                    outputs.append(none)
        output = torch.cat(outputs)
        workers.add(output)
        return output, self.target[part.to(self.device)]
