"""The plain engine: one member, step by step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from lookhops.nn import GraphNetwork
from lookhops.training.device import dense_products
from lookhops.training.engine import MOMENTS, Engine, check_state, entries, moments
from lookhops.training.inputs import MemberInputs, WindowInputs
from lookhops.training.randomness import dropout_key, layers_of_others, shuffled


class EagerEngine(Engine):
    """One member on any device: pooled graphs really get smaller."""

    def prepare(self, models: Sequence[GraphNetwork]) -> None:
        [self.model] = models
        [self.seed], [self.split], [self.name] = self.seeds, self.splits, self.names
        [preprocessing] = self.preprocessing
        self.inputs: MemberInputs | WindowInputs
        if self.windows is None:
            self.inputs = MemberInputs(self.whole, self.encoding, preprocessing)
        else:
            self.inputs = WindowInputs(self.windows, preprocessing)
        self.kept = {key: value.clone() for key, value in self.model.state_dict().items()}
        self.optimizer = self.begin(self.model.parameters(), [0])
        [self.fitted] = self.fitted_each

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
                self.optimizer.zero_grad(set_to_none=True)
                loss = self._loss(index, key)
                loss.backward()
                self.workers.add_gradients(self.model.parameters())
                self.optimizer.step()
                losses.append(loss.detach() * len(index))
        total = torch.stack(losses).sum()
        self.workers.add(total)
        return total.div(len(order)).cpu().view(1)

    def _loss(self, index: Tensor, key: Tensor) -> Tensor:
        """The training loss of a batch; of several workers, this one's part of it."""
        own = self.workers.share(index)
        counts = len(own) > 0
        if not counts:  # a batch with fewer graphs than workers: its gradient is zero here
            own = index[:1]
        batch, target = self.inputs.batch(self.model, own), self.target[own.to(self.device)]
        output, added = self.forward(batch, {}, key)
        real = None
        if not self.workers.alone:
            real = torch.full((len(own),), counts, device=self.device)
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
        return [self._outputs(getattr(self.split, part), self.kept)[0].cpu()]

    @torch.no_grad()
    def _outputs(self, part: Tensor, weights: Mapping[str, Tensor]) -> tuple[Tensor, Tensor]:
        """Outputs and targets of the graphs with these numbers; no weights: the present ones."""
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

    def remember(self, better: Tensor) -> None:
        if bool(better[0]):
            for key, value in self.model.state_dict().items():
                self.kept[key].copy_(value)

    def weights(self) -> list[dict[str, Tensor]]:
        return [{key: value.cpu() for key, value in self.kept.items()}]

    def state(self) -> dict[str, Tensor]:
        parts: dict[str, Mapping[str, Tensor]] = {
            "now": self.model.state_dict(),
            "kept": self.kept,
            **moments(self.optimizer, dict(self.model.named_parameters())),
        }
        return {
            f"{self.name}.{part}.{key}": value.detach().cpu().clone()
            for part, values in parts.items()
            for key, value in values.items()
        }

    def restore(self, state: Mapping[str, Tensor]) -> None:
        check_state(state, self.names)
        kept = entries(state, self.name, "kept")
        self.model.load_state_dict(entries(state, self.name, "now") or kept)
        self.kept = {key: value.to(self.device) for key, value in kept.items()}
        own = {moment: entries(state, self.name, f"adam-{moment}") for moment in MOMENTS}
        for key, value in self.model.named_parameters():
            if key in own["step"]:
                self.optimizer.state[value] = {
                    moment: values[key].to(self.device) for moment, values in own.items()
                }
