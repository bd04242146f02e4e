"""The fast engine: many seeds at once, every step the same shapes, recorded once and replayed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import Any

import torch
from torch import Tensor
from torch.func import functional_call

from lookhops.datasets.splits import Split
from lookhops.encoding import Encoding
from lookhops.graphs import Graphs
from lookhops.nn import Architecture, Convolution, GraphNetwork
from lookhops.tasks import Task
from lookhops.training.eager import Engine, under
from lookhops.training.gather import Capacity, Gatherer
from lookhops.training.protocol import (
    Protocol,
    epoch_generator,
    epoch_randomness,
    seeded_model,
)
from lookhops.training.recording import Recorder


def stackable(model: GraphNetwork) -> bool:
    """Whether a network's layers take a leading axis of seeds: all of ours do."""
    return all(isinstance(conv, Convolution) for conv in model.convs)


class CapturedEngine(Engine):
    """A stack of seeds on a GPU.

    All graphs live on the device. A batch of every seed is gathered there by index arithmetic into
    buffers of fixed capacity; the seeds are one leading axis of all weights and features. A step is
    recorded once as a CUDA graph and then replayed: an epoch costs the host a copy of the shuffled
    order and one launch a step. Where a pooling's shapes depend on the data, the same step runs
    without recording.
    """

    def __init__(
        self,
        graphs: Graphs,
        task: Task,
        splits: Sequence[Split],
        seeds: Sequence[int],
        architecture: Architecture,
        protocol: Protocol,
        device: torch.device,
    ) -> None:
        self.seeds = tuple(seeds)
        self.protocol = protocol
        self.device = device
        self.splits = list(splits)
        self.encoding = Encoding.fit(graphs)
        self.gatherer = Gatherer(graphs.to(device), self.encoding)
        self.counts = graphs.nodes_per_graph.cpu().numpy(), graphs.edge_ptr.diff().cpu().numpy()
        features, classes = self.encoding.width, task.out_channels
        models = [seeded_model(seed, features, classes, architecture) for seed in seeds]
        self.dtype = torch.float64 if protocol.precision == "float64" else torch.float32
        self.model = models[0].to(device, self.dtype)
        self.records = all(getattr(pool, "fixed_shapes", True) for pool in self.model.pools)
        self.task = task
        self.target = task.targets(graphs)
        self.retired: dict[int, dict[str, Tensor]] = {}
        self.rows = list(range(len(seeds)))  # which seeds are still in the stack
        each = [dict(model.named_parameters()) for model in models]
        self._fill(
            {
                key: torch.stack([one[key].detach().to(device, self.dtype) for one in each])
                for key in each[0]
            }
        )

    # ---------------------------------------------------------------- the stack

    def _fill(self, weights: dict[str, Tensor], kept: dict[str, Tensor] | None = None) -> None:
        """Make the stack of the seeds in ``rows`` with these weights and a fresh optimiser."""
        self.weights_now = {key: value.clone().requires_grad_() for key, value in weights.items()}
        self.kept = {key: value.clone() for key, value in (kept or weights).items()}
        self.optimizer = torch.optim.Adam(
            list(self.weights_now.values()),
            lr=self.protocol.learning_rate,
            weight_decay=self.protocol.weight_decay,
            fused=True,
            capturable=True,
        )
        stack, size = len(self.rows), self.protocol.batch_size
        each = [self.task.fit(self.target[self.splits[row].train]) for row in self.rows]
        fitted = [one.to(self.device, self.dtype) for one in each if one is not None]
        self.fitted = torch.stack(fitted) if fitted else None
        self.plans = {
            part: pad([getattr(self.splits[r], part) for r in self.rows], size)
            for part in ("train", "val", "test")
        }
        self.capacity = Capacity(0, 0)
        self.order = torch.full(self.plans["train"].shape, -1, device=self.device)
        self.val_order = self.plans["val"].to(self.device)
        self.tally = torch.zeros(4, stack, dtype=torch.float64, device=self.device)
        self.recorder = Recorder(self.optimizer, self.tally, self.protocol.precision, self.records)
        self.next_plan: tuple[int, Tensor | None] = (-1, None)

    def retire(self, done: Tensor) -> None:
        """Take finished seeds out of the stack once they are half of it."""
        still = [row for row in self.rows if not done[row]]
        if not still or len(still) > len(self.rows) // 2:
            return
        state = self.state()
        for row, weights in zip(self.rows, self._unstack(self.kept), strict=True):
            if row not in still:
                self.retired[row] = weights
        self.rows = still
        self._load(state)

    def _unstack(self, weights: Mapping[str, Tensor]) -> list[dict[str, Tensor]]:
        host = {key: value.detach().cpu() for key, value in weights.items()}
        return [{key: value[i] for key, value in host.items()} for i in range(len(self.rows))]

    # ---------------------------------------------------------------- steps

    def _outputs(
        self, index: Tensor, weights: Mapping[str, Tensor]
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Log-probabilities, classes and which places hold a graph, for a batch of each seed."""
        level, y, real = self.gatherer(index, self.capacity, self.dtype)
        bfloat16 = self.protocol.precision == "bfloat16"
        with torch.autocast("cuda", torch.bfloat16) if bfloat16 else nullcontext():
            outputs = functional_call(self.model, dict(weights), (level,))
        return outputs.to(self.dtype), y, real

    def _train_step(self, number: Tensor) -> None:
        self.model.train()
        index = self.order.index_select(1, number).squeeze(1)
        output, target, real = self._outputs(index, self.weights_now)
        losses, _ = self.task.losses(output, target, self.fitted, real)
        losses.sum().backward()
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        graphs = (index >= 0).sum(1)
        self.tally[0] += losses.detach().double() * graphs
        self.tally[1] += graphs

    @torch.no_grad()
    def _val_step(self, number: Tensor) -> None:
        self.model.eval()
        index = self.val_order.index_select(1, number).squeeze(1)
        outputs, y, real = self._outputs(index, self.weights_now)
        losses, weight = self.task.losses(outputs, y, self.fitted, real)
        self.tally[0] += losses.double() * weight
        self.tally[1] += weight
        scores, graphs = self.task.scores(outputs, y, real)
        self.tally[2] += scores * graphs
        self.tally[3] += graphs

    def _reserve(self, plan: Tensor) -> None:
        """See that every batch of a plan fits; if not, choose more room and record again."""
        needed = Capacity.of(plan.numpy(), *self.counts)
        if not self.capacity.holds(needed):
            usual = Capacity.likely(len(self.rows), self.protocol.batch_size, *self.counts)
            self.capacity = self.capacity.grown(usual).grown(needed)
            self.recorder.forget()

    # ---------------------------------------------------------------- the interface

    def epoch(self, number: int) -> Tensor:
        """Train one epoch; the mean training loss of each seed."""
        plan = self._plan(number)
        self._reserve(plan)
        self._reserve(self.plans["val"])
        self.order.copy_(plan, non_blocking=True)
        with epoch_randomness(self.seeds[self.rows[0]], number, self.device):
            tally = self.recorder.run("train", self._train_step, plan.shape[1])
        self.next_plan = number + 1, self._shuffled(number + 1)  # while the device is busy
        loss, count, *_ = tally.cpu()
        return self._spread(loss / count)

    def _plan(self, number: int) -> Tensor:
        """The batches of an epoch: prepared before, or made now."""
        ahead, plan = self.next_plan
        return plan if ahead == number and plan is not None else self._shuffled(number)

    def _shuffled(self, number: int) -> Tensor:
        parts = []
        for row in self.rows:
            train = self.splits[row].train
            order = torch.randperm(len(train), generator=epoch_generator(self.seeds[row], number))
            parts.append(train[order])
        return pad(parts, self.protocol.batch_size)

    def validate(self) -> tuple[Tensor, Tensor]:
        """Validation loss and accuracy of each seed."""
        self._reserve(self.plans["val"])
        loss, weight, score, count = self.recorder.run(
            "val", self._val_step, self.val_order.shape[1]
        ).cpu()
        return self._spread(loss / weight), self._spread(score / count)

    @torch.no_grad()
    def predict(self, part: str) -> list[Tensor]:
        """Log-probabilities of a part with the kept weights, for each seed."""
        everybody = self.rows, self.kept, self.plans
        if self.retired:  # bring the whole stack back for this once
            kept = self.weights()
            self.rows = list(range(len(self.seeds)))
            self.kept = {
                key: torch.stack([each[key] for each in kept]).to(self.device) for key in kept[0]
            }
            parts = [getattr(split, part) for split in self.splits]
            self.plans = {**self.plans, part: pad(parts, self.protocol.batch_size)}
        self.model.eval()
        plan = self.plans[part]
        found = [[] for _ in self.rows]  # type: list[list[Tensor]]
        room = Capacity.of(plan.numpy(), *self.counts)
        before, self.capacity = self.capacity, self.capacity.grown(room)
        for index in plan.unbind(1):
            outputs, _, real = self._outputs(index.to(self.device), self.kept)
            for i in range(len(self.rows)):
                found[i].append(outputs[i][real[i]].cpu())
        self.capacity = before
        self.rows, self.kept, self.plans = everybody
        return [torch.cat(parts) for parts in found]

    def _spread(self, values: Tensor) -> Tensor:
        """Values of the seeds in the stack, in a place for every seed."""
        out = torch.full((len(self.seeds),), float("nan"), dtype=values.dtype)
        out[self.rows] = values
        return out

    @torch.no_grad()
    def remember(self, better: Tensor) -> None:
        """Keep the present weights of the seeds where ``better`` is true."""
        chosen = better[self.rows].to(self.device)
        for key, value in self.weights_now.items():
            mask = chosen.view(-1, *[1] * (value.dim() - 1))
            self.kept[key].copy_(torch.where(mask, value, self.kept[key]))

    def weights(self) -> list[dict[str, Tensor]]:
        """The kept weights of each seed."""
        found = dict(self.retired) | dict(zip(self.rows, self._unstack(self.kept), strict=True))
        return [found[row] for row in range(len(self.seeds))]

    def state(self) -> dict[str, Tensor]:
        """Weights, kept weights and Adam's moments, under each seed's number."""
        stacks: dict[str, Any] = {"now": self.weights_now, "kept": self.kept}
        for name in ("step", "exp_avg", "exp_avg_sq"):
            stacks[f"adam-{name}"] = {
                key: self.optimizer.state[value][name]
                for key, value in self.weights_now.items()
                if value in self.optimizer.state
            }
        state = {}
        for name, stack in stacks.items():
            for key, value in stack.items():
                for i, row in enumerate(self.rows):
                    each = value if value.dim() == 0 else value[i]
                    state[f"{self.seeds[row]}.{name}.{key}"] = each.detach().cpu().clone()
        for row, weights in self.retired.items():
            state |= {f"{self.seeds[row]}.kept.{key}": value for key, value in weights.items()}
        return state

    def restore(self, state: Mapping[str, Tensor]) -> None:
        """Go on from what :meth:`state` gave."""
        self.retired = {}
        self.rows = [row for row, seed in enumerate(self.seeds) if under(f"{seed}.now.", state)]
        for row, seed in enumerate(self.seeds):
            if row not in self.rows:
                self.retired[row] = under(f"{seed}.kept.", state)
        self._load(state)

    def _load(self, state: Mapping[str, Tensor]) -> None:
        """Fill the stack of the seeds in ``rows`` from a state."""

        def stacked(name: str) -> dict[str, Tensor]:
            each = [under(f"{self.seeds[row]}.{name}.", state) for row in self.rows]
            return {key: torch.stack([one[key] for one in each]).to(self.device) for key in each[0]}

        self._fill(stacked("now"), stacked("kept"))
        moments = {name: stacked(f"adam-{name}") for name in ("step", "exp_avg", "exp_avg_sq")}
        for key, value in self.weights_now.items():
            if key in moments["step"]:
                own = {name: stack[key] for name, stack in moments.items()}
                own["step"] = own["step"][0]
                self.optimizer.state[value] = own


def pad(parts: Sequence[Tensor], size: int) -> Tensor:
    """Each seed's graphs cut into batches, shape (seeds, batches, size), with -1 for no graph."""
    batches = max(1, max(-(-len(part) // size) for part in parts))
    plan = torch.full((len(parts), batches * size), -1)
    for row, part in zip(plan, parts, strict=True):
        row[: len(part)] = part
    return plan.view(len(parts), batches, size)
