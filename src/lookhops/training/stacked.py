"""The fast engine: many members at once, every step of the same shapes, recorded once, replayed."""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from lookhops.nn import Convolution, GraphNetwork
from lookhops.sources.splits import PARTS
from lookhops.training.batches import Capacity, GraphSizes, keeps_shapes, plan_of
from lookhops.training.device import dense_products, dropout_key, layers_of_others, shuffled
from lookhops.training.engine import Engine
from lookhops.training.feed import Feed, Streamed
from lookhops.training.member_weights import MemberWeights, Weights
from lookhops.training.recording import Recorder, Step


def stackable(model: GraphNetwork) -> bool:
    """Whether a network's layers take a leading axis of members: all of ours do."""
    pools = all(getattr(pool, "stackable", True) for pool in model.pools)
    return pools and all(isinstance(conv, Convolution) for conv in model.convs)


class StackedEngine(Engine):
    """A stack of members, on a GPU or on the CPU.

    A batch of every member is gathered on the device by index arithmetic into buffers of fixed
    capacity (:mod:`~lookhops.training.feed`); the members are one leading axis of all weights and
    features. On a GPU a step is recorded once as a CUDA graph and then replayed; where a pooling's
    shapes depend on the data, and on the CPU, the same step runs without recording.

    The members take their steps together, so their training parts must make equally many batches.
    """

    stack: MemberWeights

    def prepare(self, models: Sequence[GraphNetwork]) -> None:
        self.model = models[0]
        if self.windows is not None:
            graphs = self.windows.graphs
            self.entries = self.windows.count_entries(self.preprocessing)
        else:
            graphs = self.graphs
            self.columns = [fitted.columns(self.whole) for fitted in self.preprocessing]
        self.sizes = GraphSizes(self.model, self.nodes.numpy(), graphs.edge_ptr)
        vocabularies = [fitted.num_neighbourhoods for fitted in self.preprocessing]
        self.stack = MemberWeights(models, self.names, vocabularies, self.begin)
        self._fill()

    def _feed(self, members: Sequence[int]) -> Feed:
        preprocessing = [self.preprocessing[member] for member in members]
        if self.windows is None:
            columns = [self.columns[member] for member in members]
            read = self.graphs, self.encoding, self.model
            return Feed(*read, columns, preprocessing, self.dtype)
        entries = None if self.entries is None else self.entries[list(members)]
        return Streamed(self.windows, self.model, preprocessing, entries, self.dtype)

    def _fill(self) -> None:
        self.members = self.stack.members
        fitted = [one for m in self.members if (one := self.fitted_each[m]) is not None]
        self.fitted = torch.stack(fitted) if fitted else None
        self.plans = {part: self._plan(part, self.members) for part in PARTS}
        self.feed = self._feed(self.members)
        self.capacity = Capacity(0, 0)
        # What recorded steps read and write stays where it is.
        self.orders = {part: self.feed.empty_order(self.plans[part]) for part in PARTS[:2]}
        shape = *self.plans["val"].shape, self.task.out_channels
        self.val_outputs = torch.zeros(shape, dtype=self.dtype, device=self.device)
        self.taken = torch.zeros(1, dtype=torch.long, device=self.device)  # steps of past rounds
        self.key = torch.zeros(len(self.members), dtype=torch.long, device=self.device)
        self.sums = torch.zeros(4, len(self.members), dtype=torch.float64, device=self.device)
        self.ones = torch.ones(len(self.members), dtype=self.dtype, device=self.device)
        self.recorder = Recorder(self.stack.optimizer, self.sums, self._recordable)
        self.val_needs = self._needs(self.plans["val"])
        #: The next epoch, its batches and what they need.
        self.ahead: tuple[int, Tensor, Capacity] | None = None

    def _plan(self, part: str, members: Sequence[int]) -> Tensor:
        parts = [self.batches(getattr(self.splits[member], part)) for member in members]
        return self._share(plan_of(parts, self.protocol))

    def _share(self, plan: Tensor) -> Tensor:
        """This worker's share of every batch; all workers' are of one size."""
        lacking = -plan.shape[-1] % self.workers.count
        return self.workers.share(torch.nn.functional.pad(plan, (0, lacking), value=-1))

    def retire(self, done: Tensor) -> None:
        """Take finished members out of the stack once they are half of it."""
        still = [member for member in self.members if not done[member]]
        if not still or len(still) > len(self.members) // 2:
            return
        self.stack.retire(still)
        self._fill()

    def _outputs(
        self,
        index: Tensor,
        capacity: Capacity,
        weights: Weights,
        feed: Feed,
        key: Tensor | None = None,
    ) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
        """A batch of each member: outputs, targets, which places hold a graph, layers' losses."""
        batch = feed.batch(index, capacity)
        output, added = self.forward(batch, weights, key)
        assert batch.whole is not None
        return output, self.target[batch.whole.number], index >= 0, added

    def _train_step(self, number: Tensor) -> None:
        self.model.train()
        index = self.orders["train"].index_select(1, number).squeeze(1)
        output, target, real, added = self._outputs(
            index, self.capacity, self.stack.now, self.feed, self.key
        )
        losses, graphs = self.loss(output, target, self.fitted, added, real)
        losses.backward(self.ones)
        self.workers.add_gradients(self.stack.now.values())
        self.stack.optimizer.step()
        self.stack.optimizer.zero_grad(set_to_none=True)
        self._add(0, losses.detach(), graphs)

    @torch.no_grad()
    def _val_step(self, number: Tensor) -> None:
        self.model.eval()
        index = self.orders["val"].index_select(1, number).squeeze(1)
        output, target, real, _ = self._outputs(index, self.capacity, self.stack.now, self.feed)
        self.val_outputs.index_copy_(1, self.taken + number, output.unsqueeze(1))
        self._add(0, *self.task.losses(output, target, self.fitted, real))
        self._add(2, *self.task.scores(output, target, self.fitted, real))

    def _add(self, row: int, mean: Tensor, weight: Tensor) -> None:
        """Add to a weighted mean over the steps: its sum, and the sum of the weights."""
        self.sums[row].addcmul_(mean, weight)
        self.sums[row + 1].add_(weight)

    @property
    def _recordable(self) -> bool:
        """Whether steps of the present capacity can be recorded."""
        fixed = keeps_shapes(self.model, self.capacity, len(self.members))
        return fixed and self.workers.recordable

    def _needs(self, plan: Tensor, feed: Feed | None = None) -> Capacity:
        """What the batches of a plan need, by default those of the present feed."""
        return self.sizes.needs(plan.numpy(), (feed or self.feed).entries)

    def _reserve(self, plan: Tensor, needed: Capacity | None = None) -> None:
        """See that every batch of a plan fits; if not, grow the capacity and record again."""
        needed = self._needs(plan) if needed is None else needed
        if not self.capacity.holds(needed):
            usual = self.capacity
            if self.protocol.batch_nodes is None:
                members, size = len(self.members), self.protocol.batch_size
                usual = usual.grown(self.sizes.likely(members, size, self.feed.entries))
            self.capacity = usual.grown(needed)
            self.recorder.forget(self._recordable)
        if self.feed.reserve(plan):
            self.recorder.forget(self._recordable)

    def _run(self, name: str, step: Step, plan: Tensor) -> Tensor:
        order, sums, begun = self.orders[name], self.sums, False
        self.taken.zero_()
        for batches in self.feed.rounds(plan):
            count = batches.shape[1]
            order[:, :count].copy_(batches, non_blocking=True)
            self.recorder.record(name, step)
            self.feed.prefetch()
            sums = self.recorder.run(name, step, count, more=begun)
            begun = True
            self.taken += count
        return sums

    def epoch(self, number: int) -> Tensor:
        if self.ahead is None or self.ahead[0] != number:
            self._plan_ahead(number)
        assert self.ahead is not None
        _, plan, needed = self.ahead
        self._reserve(plan, needed)
        self._reserve(self.plans["val"], self.val_needs)
        self.key.copy_(torch.tensor([dropout_key(self.seeds[m], number) for m in self.members]))
        first = self.seeds[self.members[0]]
        with dense_products(self.protocol.precision), layers_of_others(first, number, self.device):
            sums = self._run("train", self._train_step, plan)
        self._plan_ahead(number + 1)  # while the device is busy
        loss, weight, *_ = sums.cpu()
        # Of several workers each has its part of the losses, and counted all graphs.
        return self._spread(self._added(loss) / weight)

    def _plan_ahead(self, number: int) -> None:
        orders = [shuffled(self.splits[m].train, self.seeds[m], number) for m in self.members]
        plan = self._share(plan_of([self.batches(order) for order in orders], self.protocol))
        self.ahead = number, plan, self._needs(plan)

    def _added(self, sums: Tensor) -> Tensor:
        sums = sums.to(self.device, copy=True)
        self.workers.add(sums)
        return sums.cpu()

    def validate(self) -> tuple[Tensor, Tensor]:
        self._reserve(self.plans["val"], self.val_needs)
        with dense_products(self.protocol.precision):
            sums = self._run("val", self._val_step, self.plans["val"])
        loss, loss_weight, score, score_weight = self._added(sums)
        return self._spread(loss / loss_weight), self._spread(score / score_weight)

    def validated(self) -> Tensor:
        outputs = self.val_outputs.cpu()
        most = max(len(split.val) for split in self.splits)
        found = outputs.new_zeros(len(self.seeds), most, outputs.shape[-1])
        for member, output, plan in zip(self.members, outputs, self.plans["val"], strict=True):
            real = self._of_all("val", member, output[plan >= 0])
            found[member, : len(real)] = real
        return found

    @torch.no_grad()
    def predict(self, part: str) -> list[Tensor]:
        everybody = range(len(self.seeds))
        plan, weights = self._plan(part, everybody), self.stack.stacked(self.weights())
        feed = self._feed(everybody)
        feed.reserve(plan)
        capacity = self.capacity.grown(self._needs(plan, feed))
        self.model.eval()
        found: list[list[Tensor]] = [[] for _ in everybody]
        with dense_products(self.protocol.precision):
            for batches in feed.rounds(plan):
                for index in batches.to(self.device).unbind(1):
                    output, _, real, _ = self._outputs(index, capacity, weights, feed)
                    for member in everybody:
                        found[member].append(output[member][real[member]].cpu())
        return [self._of_all(part, m, torch.cat(outputs)) for m, outputs in enumerate(found)]

    def _of_all(self, part: str, member: int, outputs: Tensor) -> Tensor:
        """Outputs of a part from those that this worker and the others have."""
        if self.workers.alone:
            return outputs
        lengths = [len(batch) for batch in self.batches(getattr(self.splits[member], part))]
        numbers = torch.arange(sum(lengths)).split(lengths)
        share = self._share(plan_of([numbers], self.protocol))
        found = outputs.new_zeros(sum(lengths), outputs.shape[1])
        found[share[share >= 0]] = outputs
        found = found.to(self.device)
        self.workers.add(found)
        return found.cpu()

    def _spread(self, values: Tensor) -> Tensor:
        """Values of the members in the stack, in a place for every member; else NaN."""
        out = torch.full((len(self.seeds),), float("nan"), dtype=values.dtype)
        out[self.members] = values
        return out

    def restore(self, state: Mapping[str, Tensor]) -> None:
        super().restore(state)
        self._fill()
