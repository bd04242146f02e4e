"""What holds for the stacked engine on any device: each member trains as it does alone."""

from dataclasses import replace

import pytest
import torch

from batches import LAYER_PAIRS
from lookhops.core.options import Protocol
from lookhops.graphs import Graphs, Target
from lookhops.graphs.features import Features
from lookhops.nn import Architecture
from lookhops.nn.registry import CONVOLUTIONS, POOLINGS
from lookhops.sources.hop_tasks import hop_task
from lookhops.sources.splits import Split, split
from lookhops.tasks import task_of
from lookhops.training.batches import Capacity
from lookhops.training.engine import EagerEngine
from lookhops.training.runs import Rates
from lookhops.training.stacked import StackedEngine
from lookhops.training.trainer import train

CPU = torch.device("cpu")
#: Everything that is random or that weighs: members must not touch each other through any of it.
WHOLE = Architecture(
    pool="lookhops",
    hidden=16,
    layers=3,
    ratio=0.7,
    edge_ratio=0.8,
    readout="max+mean+sum",
    dropout=0.3,
    fingerprint=2,
    totals=True,
    scale="standard",
    bins=3,
)
#: Losses after some epochs, where sums are taken in another order: in single precision, and in
#: double precision, which shows a single element that was dropped in one engine only.
CLOSE, EXACT = {"rtol": 0, "atol": 2e-3}, {"rtol": 0, "atol": 1e-7}


def graphs_with_noise():
    """Random features: where two nodes are alike, rounding would decide which one is kept.

    One class is twice as common as the other, so that class weights matter.
    """
    task = hop_task(2, size=180, seed=1)
    zeros, ones = ((task.y == c).nonzero().flatten() for c in (0, 1))
    task = task[torch.cat((zeros, ones[: len(zeros) // 2])).sort().values]
    noise = torch.randn(task.num_nodes, 6, generator=torch.Generator().manual_seed(0))
    return replace(task, nodes=Features(numbers=noise))


def tell_edges(graphs):
    """The same graphs with labels, numbers and weights on their edges, alike in both directions."""
    low, high = torch.stack((graphs.source, graphs.target)).sort(0).values.double()
    key = low * 0.37 + high * 1.91
    numbers = torch.stack((key.cos(), (key * 3).sin().add(1.5)), 1).float()
    return replace(
        graphs,
        edges=Features(
            numbers=numbers,
            number_names=("length", "weight"),
            labels=(key.long() % 3)[:, None].to(torch.uint8),
            label_values=(("a", "b", "c"),),
        ),
    )


@pytest.fixture(scope="session")
def noisy():
    return graphs_with_noise()


@pytest.fixture(scope="session")
def told(noisy):
    return tell_edges(noisy)


def asking(graphs, asked):
    """The same graphs with other targets, some of them blank; the first graph's are."""
    generator = torch.Generator().manual_seed(5)
    count = {"a number": 1, "twelve targets": 12, "numbers and classes": 5, "counts": 3}[asked]
    sizes = graphs.nodes_per_graph.double()[:, None]
    number = 1000 + sizes + torch.randn(len(graphs), count, generator=generator).double()
    number[torch.rand(len(graphs), count, generator=generator) < 0.4] = torch.nan
    number[0] = torch.nan
    if asked == "counts":
        targets = tuple(Target(f"t{j}", kind="counts") for j in range(count))
        return replace(graphs, y=(number - 1010).round().clamp(0), targets=targets)
    if count == 1:
        return replace(graphs, y=number[:, 0], targets=(Target("size"),))
    classes = [() if asked != "twelve targets" and j % 2 else ("a", "b") for j in range(count)]
    middle = number.nanmedian(0).values
    values = [
        torch.where(own.isnan(), own, (own > middle[j]).double()) if classes[j] else own
        for j, own in enumerate(number.unbind(1))
    ]
    targets = tuple(Target(f"t{j}", names) for j, names in enumerate(classes))
    return replace(graphs, y=torch.stack(values, 1), targets=targets)


def exactly(**options) -> Protocol:
    """A protocol in double precision, with steps that are felt."""
    return Protocol(**{"batch_size": 48, "learning_rate": 0.01, "precision": "float64", **options})


def with_rates(rates, architecture, protocol):
    """The same architecture and protocol with these rates."""
    options = {"learning_rate": rates.learning_rate, "weight_decay": rates.weight_decay}
    return replace(architecture, dropout=rates.dropout), replace(protocol, **options)


class StackedCases:
    """Tests to inherit: subclasses say on which device the stack is."""

    device: torch.device

    def stack(self, graphs, architecture, protocol, splits=None, seeds=None, rates=None):
        seeds = seeds or protocol.seeds
        splits = splits or [split(graphs, seed) for seed in seeds]
        task = task_of(graphs, protocol.class_weights)
        rest = splits, seeds, architecture, protocol, self.device, rates
        return StackedEngine(graphs, task, *rest)

    def alone(self, graphs, architecture, protocol):
        """The plain engine of each seed, on the CPU."""
        task = task_of(graphs, protocol.class_weights)
        return [
            EagerEngine(graphs, task, [split(graphs, seed)], [seed], architecture, protocol, CPU)
            for seed in protocol.seeds
        ]

    def test_each_member_has_its_own_rates(self, told):
        """Two members of a seed that differ in nothing else; one of them leaves, the others go on.

        Each is compared with the plain engine whose protocol and architecture have its rates.
        """
        rates = [
            Rates(0.01, 0.0, 0.0),
            Rates(0.03, 1e-2, 0.5),
            Rates(0.001, 0.1, 0.2),
            Rates(0.005, 0.0, 0.3),
        ]
        seeds, protocol = (11, 11, 22, 22), exactly(seeds=(11, 22))
        architecture = replace(WHOLE, edges="use")
        stack = self.stack(told, architecture, protocol, seeds=seeds, rates=rates)
        alone = [
            engine
            for seed, own in zip(seeds, rates, strict=True)
            for engine in self.alone(
                told, *with_rates(own, architecture, replace(protocol, seeds=(seed,)))
            )
        ]
        self.assert_same(stack, alone, close=EXACT)
        other = self.stack(told, architecture, protocol, seeds=seeds, rates=rates)
        other.restore(stack.state())
        other.retire(torch.tensor([False, True, True, False]))
        for epoch in (4, 5):
            want = torch.cat([engine.epoch(epoch) for engine in alone])
            torch.testing.assert_close(stack.epoch(epoch), want, **EXACT)
            left = other.epoch(epoch)
            torch.testing.assert_close(left[[0, 3]], want[[0, 3]], **EXACT)
        assert left.isnan().tolist() == [False, True, True, False]

    def test_equal_rates_of_each_are_the_same_bits_as_none(self, noisy):
        protocol = Protocol(seeds=(11, 22), batch_size=48, weight_decay=0.01)
        own = [Rates(1e-3, 0.01, WHOLE.dropout)] * 2
        one, two = (self.stack(noisy, WHOLE, protocol, rates=each) for each in (None, own))
        for epoch in range(1, 4):
            assert torch.equal(one.epoch(epoch), two.epoch(epoch))
        for found, want in zip(one.weights(), two.weights(), strict=True):
            assert all(torch.equal(found[name], want[name]) for name in want)

    def assert_same(self, stack, alone, epochs=2, close=CLOSE):
        """The same losses, validation and predictions, epoch after epoch."""
        for part in ("val", "test"):
            for found, engine in zip(stack.predict(part), alone, strict=True):
                torch.testing.assert_close(found, engine.predict(part)[0], rtol=1e-3, atol=1e-4)
        for epoch in range(1, epochs + 1):
            found = stack.epoch(epoch)
            want = torch.cat([engine.epoch(epoch) for engine in alone])
            torch.testing.assert_close(found, want.double(), **close)
            found = stack.validate()
            want = [torch.cat(each) for each in zip(*(e.validate() for e in alone), strict=True)]
            torch.testing.assert_close(found[0], want[0].double(), rtol=0, atol=3 * close["atol"])
            assert_same_hits(found[1], want[1], stack, alone)
        everybody = torch.tensor([True] * len(alone))
        stack.remember(everybody)
        for found, engine in zip(stack.predict("test"), alone, strict=True):
            engine.remember(torch.tensor([True]))
            torch.testing.assert_close(
                found, engine.predict("test")[0], rtol=0, atol=10 * close["atol"]
            )

    @pytest.mark.parametrize(("conv", "pool"), LAYER_PAIRS)
    def test_a_stack_is_each_seed_in_the_plain_engine(self, noisy, conv, pool):
        architecture = Architecture(conv=conv, pool=pool, hidden=16, layers=3, ratio=0.7)
        protocol = Protocol(seeds=(11, 22), batch_size=48)
        stack = self.stack(noisy, architecture, protocol)
        self.assert_same(stack, self.alone(noisy, architecture, protocol))

    @pytest.mark.parametrize("pool", list(POOLINGS))
    def test_with_dropout_sums_dropped_edges_and_class_weights(self, noisy, pool):
        # After a second ASAP pooling clusters coincide, and rounding would choose between them.
        architecture = replace(WHOLE, pool=pool, layers=2 if pool == "asap" else 3)
        protocol = exactly(seeds=(11, 22), class_weights=True)
        stack = self.stack(noisy, architecture, protocol)
        self.assert_same(stack, self.alone(noisy, architecture, protocol), close=EXACT)

    @pytest.mark.parametrize("conv", list(CONVOLUTIONS))
    def test_with_what_edges_carry(self, told, conv):
        architecture = replace(WHOLE, conv=conv, edges="use")
        self.assert_same_with_edges(told, architecture)

    @pytest.mark.parametrize("pool", [name for name in POOLINGS if name != "lookhops"])
    def test_with_what_edges_carry_and_every_pooling(self, told, pool):
        two = pool in ("asap", "hgpsl")  # later ones choose between clusters that coincide
        architecture = replace(WHOLE, pool=pool, edges="use", layers=2 if two else 3)
        self.assert_same_with_edges(told, architecture)

    @pytest.mark.parametrize("conv", ["licheb", "limixhop", "gin"])
    def test_with_edges_that_carry_something_else_each_way(self, told, conv):
        labels = torch.arange(told.num_edges)[:, None] % 3
        graphs = replace(told, edges=replace(told.edges, labels=labels.to(torch.uint8)))
        assert told.is_symmetric
        assert not graphs.is_symmetric
        self.assert_same_with_edges(graphs, replace(WHOLE, conv=conv, edges="use"))

    def assert_same_with_edges(self, graphs, architecture):
        protocol = exactly(seeds=(11, 22))
        stack, alone = (make(graphs, architecture, protocol) for make in (self.stack, self.alone))
        assert stack.model.edges is not None
        self.assert_same(stack, alone, close=EXACT)
        preprocessing = stack.stack.now["edges.table"].detach().abs().amax((1, 2))
        assert (preprocessing > 1e-3).any()

    @pytest.mark.parametrize("scale", ["none", "standard", "quantiles"])
    def test_each_member_has_its_own_scale_and_blanks_are_filled(self, told, scale):
        numbers = told.nodes.numbers * 3 + 2
        numbers[::17, 1] = float("nan")
        graphs = replace(told, nodes=replace(told.nodes, numbers=numbers))
        protocol = exactly(seeds=(11, 22, 33))
        architecture = replace(WHOLE, scale=scale, pool="none", layers=2, edges="use")
        stack, alone = (make(graphs, architecture, protocol) for make in (self.stack, self.alone))
        assert stack.encoding.nodes.blanks == ("number 1",)
        assert (
            len({float(own.scales.nodes.fill[1]) for own in stack.preprocessing}) > 1
            or scale != "none"
        )
        self.assert_same(stack, alone, close=EXACT)

    def test_readings_of_whole_graphs_alone(self, noisy):
        architecture = Architecture(conv="none", fingerprint=3, totals=True)
        protocol = exactly(seeds=(11, 22, 33))
        stack = self.stack(noisy, architecture, protocol)
        self.assert_same(stack, self.alone(noisy, architecture, protocol), close=EXACT)

    def test_large_graphs_beside_small_ones(self):
        """As in DD: matching takes one program a graph, whatever its size."""
        sizes = torch.tensor([5, 1500, 9, 30, 2, 700, 12, 60, 20, 4, 8, 100])
        generator = torch.Generator().manual_seed(0)
        graph = torch.repeat_interleave(torch.arange(len(sizes)), sizes)
        first = (sizes.cumsum(0) - sizes)[graph]
        source = torch.arange(len(graph)).repeat(2)
        step = (torch.rand(len(source), generator=generator) * sizes[graph].repeat(2)).long()
        target = first.repeat(2) + step
        source, target = torch.cat((source, target)), torch.cat((target, source))
        x = torch.randn(len(graph), 3, generator=generator)
        y = torch.arange(len(sizes)) % 2
        graphs = Graphs.from_edges(source, target, sizes, nodes=Features(numbers=x), y=y)
        architecture = Architecture(pool="edge", hidden=8, layers=4)
        protocol = exactly(seeds=(11, 22), batch_size=4)
        stack, alone = (make(graphs, architecture, protocol) for make in (self.stack, self.alone))
        self.assert_same(stack, alone, close=EXACT)

    @pytest.mark.parametrize("pool", ["lookhops", "edge"])
    def test_the_same_training_twice_is_the_same_bits(self, noisy, pool):
        architecture = replace(WHOLE, pool=pool, edge_ratio=None)
        protocol = Protocol(seeds=(11, 22), batch_size=48, learning_rate=0.01)
        one, two = (self.stack(noisy, architecture, protocol) for _ in range(2))
        for epoch in range(1, 6):
            assert torch.equal(one.epoch(epoch), two.epoch(epoch))
        for found, want in zip(one.weights(), two.weights(), strict=True):
            assert all(torch.equal(found[name], want[name]) for name in want)

    @pytest.mark.parametrize(
        "asked", ["a number", "twelve targets", "numbers and classes", "counts"]
    )
    def test_numbers_and_several_targets_with_blanks(self, noisy, asked):
        graphs = asking(noisy, asked)
        protocol = exactly(seeds=(11, 22, 33), max_epochs=4, class_weights=True, loss="huber")
        stacked = train(graphs, WHOLE, protocol, stacked=True, device=self.device)
        alone = train(graphs, WHOLE, protocol, stacked=False, device="cpu")
        for found, want in zip(stacked, alone, strict=True):
            assert found.history[0].keys() == want.history[0].keys()
            for row, other in zip(found.history, want.history, strict=True):
                row, other = ({**one, "seconds": 0} for one in (row, other))
                assert row == pytest.approx(other, abs=1e-6)
            torch.testing.assert_close(found.fitted, want.fitted)
            for part in ("val", "test"):
                one, two = (run.predictions[part] for run in (found, want))
                torch.testing.assert_close(one, two, rtol=1e-5, atol=1e-5)

    @pytest.mark.parametrize("precision", ["tf32", "bfloat16", "float64"])
    def test_in_every_precision(self, noisy, precision):
        protocol = Protocol(seeds=(11, 22), batch_size=48, precision=precision)
        stack = self.stack(noisy, replace(WHOLE, pool="none"), protocol)
        exact = replace(protocol, precision="float64")
        alone = self.alone(noisy, replace(WHOLE, pool="none"), exact)
        atol = {"tf32": 1e-2, "bfloat16": 5e-2, "float64": 1e-6}[precision]
        for epoch in (1, 2):
            found, want = stack.epoch(epoch), torch.cat([engine.epoch(epoch) for engine in alone])
            torch.testing.assert_close(found.double(), want.double(), rtol=0, atol=atol)

    def test_graphs_that_stay_in_main_memory_train_the_same(self, told, monkeypatch):
        monkeypatch.setattr("lookhops.training.feed.STEPS", 2)
        architecture = replace(WHOLE, edges="use", layers=2)
        resident, streamed = (
            self.stack(told, architecture, exactly(seeds=(11, 22), stream=stream))
            for stream in (False, True)
        )
        for epoch in (1, 2, 3):
            pairs = zip(
                (streamed.epoch(epoch), *streamed.validate()),
                (resident.epoch(epoch), *resident.validate()),
                strict=True,
            )
            for found, want in pairs:
                torch.testing.assert_close(found, want, equal_nan=True, **EXACT)
            for engine in (resident, streamed):
                engine.remember(torch.tensor([True, epoch < 2]))
            if epoch == 2:
                for engine in (resident, streamed):
                    engine.retire(torch.tensor([False, True]))
        for found, want in zip(streamed.predict("test"), resident.predict("test"), strict=True):
            torch.testing.assert_close(found, want, **EXACT)

    def test_batches_by_nodes(self, noisy):
        protocol = exactly(seeds=(11, 22), batch_size=100, batch_nodes=noisy.num_nodes // 6)
        architecture = replace(WHOLE, layers=2)
        stack = self.stack(noisy, architecture, protocol)
        assert stack.plans["train"].shape[1] > -(-len(stack.splits[0].train) // 100)
        self.assert_same(stack, self.alone(noisy, architecture, protocol), 2, EXACT)

    def test_a_seed_is_the_same_alone_in_any_stack_and_after_others_left(self, noisy):
        protocol = exactly(seeds=(11, 22, 33, 44), class_weights=True)
        stack, left = (self.stack(noisy, WHOLE, protocol) for _ in range(2))
        alone = self.stack(noisy, WHOLE, protocol, seeds=(33,))
        for epoch in range(1, 5):
            losses = [engine.epoch(epoch) for engine in (stack, left, alone)]
            torch.testing.assert_close(losses[0][2], losses[2][0], **EXACT)
            torch.testing.assert_close(losses[1][2], losses[2][0], **EXACT)
            left.remember(torch.tensor([True] * 4))
            if epoch == 2:
                left.retire(torch.tensor([True, True, False, True]))
                assert left.members == [2]
        assert losses[1].isnan().tolist() == [True, True, False, True]

    def test_dropout_is_another_one_in_each_epoch(self, noisy):
        """Weights that hardly move and a single batch: what differs between epochs is dropout."""
        protocol = exactly(seeds=(11, 22), batch_size=1000, learning_rate=1e-12)
        stack = self.stack(noisy, WHOLE, protocol)
        first, second, again = (stack.epoch(number) for number in (1, 2, 1))
        torch.testing.assert_close(first, again, **EXACT)
        assert ((first - second).abs() > 1e-6).all()

    def test_a_batch_that_outgrows_its_buffers_is_still_right(self, noisy):
        architecture = Architecture(hidden=16, layers=2)
        protocol = Protocol(seeds=(11, 22), batch_size=48)
        stack, alone = (make(noisy, architecture, protocol) for make in (self.stack, self.alone))
        for engine in (stack, *alone):
            engine.epoch(1)
        small = Capacity(stack.capacity.nodes // 2, stack.capacity.edges // 2)
        stack.capacity = small
        stack.recorder.forget(stack._recordable)
        found, want = stack.epoch(2), torch.cat([engine.epoch(2) for engine in alone])
        assert stack.capacity.holds(small)
        torch.testing.assert_close(found.float(), want, **CLOSE)

    def test_members_that_stopped_leave_and_a_state_goes_on(self, noisy):
        protocol = exactly(seeds=(11, 22, 33, 44))
        first, second = (self.stack(noisy, WHOLE, protocol) for _ in range(2))
        first.epoch(1)
        first.remember(torch.tensor([True] * 4))
        before = first.predict("test")
        first.retire(torch.tensor([True, False, False, True]))
        assert first.members == [1, 2]
        for found, want in zip(first.predict("test"), before, strict=True):
            torch.testing.assert_close(found, want, rtol=1e-4, atol=1e-5)
        second.restore(first.state())
        assert second.members == [1, 2]
        for a, b in zip(first.weights(), second.weights(), strict=True):
            assert all(torch.equal(a[key], b[key]) for key in a)
        for epoch in (2, 3):
            found, want = second.epoch(epoch), first.epoch(epoch)
            torch.testing.assert_close(found, want, equal_nan=True, **EXACT)

    @pytest.mark.parametrize("to_stack", [True, False])
    def test_either_engine_goes_on_from_the_others_state(self, noisy, to_stack):
        protocol = exactly(seeds=(22,))
        stack, [alone] = self.stack(noisy, WHOLE, protocol), self.alone(noisy, WHOLE, protocol)
        one, other = (alone, stack) if to_stack else (stack, alone)
        one.epoch(1)
        one.remember(torch.tensor([True]))
        one.epoch(2)
        other.restore(one.state())
        torch.testing.assert_close(other.epoch(3), one.epoch(3), **EXACT)
        torch.testing.assert_close(other.predict("val")[0], one.predict("val")[0], **EXACT)

    def test_a_prediction_that_fails_leaves_the_engine_as_it_was(self, noisy, monkeypatch):
        protocol = exactly(seeds=(11, 22, 33, 44))
        stack, same = (self.stack(noisy, WHOLE, protocol) for _ in range(2))
        for engine in (stack, same):
            engine.epoch(1)
            engine.retire(torch.tensor([True, False, True, True]))
        with monkeypatch.context() as patch:
            patch.setattr(StackedEngine, "forward", lambda *_: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                stack.predict("test")
        assert stack.members == [1]
        torch.testing.assert_close(stack.epoch(2), same.epoch(2), equal_nan=True, **EXACT)

    def test_splits_of_different_sizes_train_as_they_do_alone(self, noisy):
        """Three batches an epoch beside one: who has fewer takes fewer steps."""
        order = torch.randperm(len(noisy), generator=torch.Generator().manual_seed(3))
        rest = order[100:]
        splits = [Split(order[:n], rest[:15], rest[15 : 15 + m]) for n, m in ((100, 9), (40, 20))]
        splits.append(splits[0])
        protocol = exactly(seeds=(11, 22, 33), batch_size=40, max_epochs=5)
        options = {"splits": splits, "device": self.device}
        stacked = train(noisy, WHOLE, protocol, stacked=True, **options)
        alone = train(noisy, WHOLE, protocol, splits=splits, stacked=False, device="cpu")
        assert [run.seed for run in stacked] == [11, 22, 33]
        for found, want in zip(stacked, alone, strict=True):
            assert found.split is want.split
            assert [len(found.predictions[part]) for part in ("val", "test")] == [
                len(found.split.val),
                len(found.split.test),
            ]
            for key in ("train_loss", "val_loss"):
                assert [row[key] for row in found.history] == pytest.approx(
                    [row[key] for row in want.history], abs=1e-7
                )


def assert_same_hits(found, want, stack, alone):
    """The same accuracy; a graph on the line between two classes may fall on either side."""
    for i, engine in enumerate(alone):
        output, _ = engine._outputs(engine.split.val, {})
        top = output.softmax(-1).topk(2).values
        unsure = int(((top[:, 0] - top[:, 1]) < 1e-2).sum())
        assert abs(float(found[i] - want[i])) * len(output) <= unsure + 1e-6
    assert len(found) == len(stack.seeds)

    def test_members_on_the_same_splits_train_as_they_do_alone(self, noisy):
        protocol = exactly(seeds=(11, 22), members=2, max_epochs=3)
        options = {"device": self.device, "splits": [split(noisy, s) for s in (11, 22)]}
        found = train(noisy, WHOLE, protocol, stacked=True, **options)
        alone = train(noisy, WHOLE, protocol, stacked=False, **options)
        for one, other in zip(found, alone, strict=True):
            torch.testing.assert_close(one.predictions, other.predictions, rtol=0, atol=1e-6)
            for mine, own in zip(one.members, other.members, strict=True):
                losses = ([row["val_loss"] for row in run.history] for run in (mine, own))
                assert next(losses) == pytest.approx(next(losses), abs=1e-6)
