"""The trainer: the protocol's promises, and sentences for what cannot be trained."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy

from lookhops.core.errors import LookHopsError
from lookhops.core.options import RECOMMENDED, parse_seeds
from lookhops.graphs import Graphs, Target
from lookhops.graphs.features import Features
from lookhops.nn import Architecture, GraphNetwork
from lookhops.sources.loading import load
from lookhops.sources.splits import Split, split
from lookhops.training import PAPER_SEEDS, Protocol, train, trainer
from lookhops.training.device import choose_device
from lookhops.training.engine import EagerEngine
from lookhops.training.member_weights import entries
from lookhops.training.runs import NotFinite
from lookhops.training.stacked import StackedEngine

SMALL = Architecture(hidden=8, layers=2)


def quick(**changes) -> Protocol:
    options = {"seeds": (11,), "max_epochs": 6, "batch_size": 16, "learning_rate": 0.01}
    return Protocol(**{**options, **changes})


def test_the_defaults_are_the_papers():
    p = Protocol()
    assert p.seeds == tuple(range(11, 111, 11)) == PAPER_SEEDS
    assert (p.batch_size, p.learning_rate, p.weight_decay) == (256, 1e-3, 0)
    assert (p.max_epochs, p.patience, p.fractions) == (500, 30, (0.8, 0.1, 0.1))


def test_same_numbers_as_a_plain_loop(tasks):
    """The whole protocol in a few lines of plain PyTorch."""
    protocol = quick(max_epochs=4)
    [run] = train(tasks, SMALL, protocol, device="cpu")
    part = split(tasks, 11)
    torch.manual_seed(11)
    model = GraphNetwork(tasks.num_features, 2, hidden=8, layers=2)
    adam = torch.optim.Adam(model.parameters(), lr=0.01)
    val = tasks[part.val]
    losses = []
    for epoch in range(1, 5):
        shuffle = torch.Generator().manual_seed(11 * 1_000_003 + epoch)
        for index in torch.randperm(len(part.train), generator=shuffle).split(16):
            batch = tasks[part.train[index]]
            adam.zero_grad()
            cross_entropy(model(batch), batch.y).backward()
            adam.step()
        with torch.no_grad():
            losses.append(float(cross_entropy(model(val), val.y)))
    assert [row["val_loss"] for row in run.history] == pytest.approx(losses, rel=1e-5)
    assert run.best_epoch == 1 + min(range(4), key=losses.__getitem__)


def test_the_time_of_an_epoch_is_shared_by_those_that_train_in_it(tasks, monkeypatch):
    """By a clock that ticks once a look, every epoch of a stack takes a second."""
    clock = itertools.count()
    monkeypatch.setattr(trainer.time, "perf_counter", lambda: next(clock))
    protocol = quick(seeds=(11, 22, 33), max_epochs=8, patience=1, learning_rate=0.1)
    runs = train(tasks, SMALL, protocol, device="cpu", stacked=True)
    lengths = [len(run.history) for run in runs]
    assert min(lengths) < max(lengths)
    spent = sum(row["seconds"] for run in runs for row in run.history)
    assert spent == pytest.approx(max(lengths))


@pytest.mark.parametrize("stacked", [False, True])
def test_members_have_other_weights_on_the_same_split(tasks, stacked):
    """The first is the run without members, bit for bit; each is the same in any company."""
    options = {"device": "cpu", "stacked": stacked}
    alone = train(tasks, SMALL, quick(max_epochs=3), **options)[0]
    two = train(tasks, SMALL, quick(max_epochs=3, members=2, seeds=(11, 22)), **options)
    [three] = train(tasks, SMALL, quick(max_epochs=3, members=3), **options)
    first, second, _ = three.members
    assert [one.key for one in three.members] == ["11", "11-1", "11-2"]
    assert all(one.split is first.split for one in three.members)
    for name in ("val", "test"):
        assert torch.equal(alone.predictions[name], first.predictions[name]) or stacked
        torch.testing.assert_close(alone.predictions[name], first.predictions[name])
        torch.testing.assert_close(
            two[0].members[1].predictions[name], second.predictions[name], rtol=1e-4, atol=1e-4
        )
        each = [one.predictions[name].softmax(1) for one in three.members]
        assert not torch.allclose(each[1], each[2], atol=1e-4)
        mean = three.predictions[name].softmax(1)
        torch.testing.assert_close(mean, torch.stack(each).mean(0))


def test_blank_graphs_are_in_no_part(tasks):
    y = tasks.y.clone()
    y[::3] = -1
    [run] = train(replace(tasks, y=y), SMALL, quick(), device="cpu")
    parts = torch.cat((run.split.train, run.split.val, run.split.test))
    assert sorted(parts.tolist()) == (y >= 0).nonzero().flatten().tolist()
    assert len(run.predictions["test"]) == len(run.split.test)


def test_a_number_is_learnt_and_answered_in_its_units(tasks):
    """The size of a graph in thousands: the totals of a graph tell it."""
    sizes = 1000.0 * tasks.nodes_per_graph.double()
    graphs = replace(tasks, y=sizes, targets=(Target("size"),))
    network = Architecture(conv="none", totals=True, fingerprint=0)
    for loss in ("mse", "mae", "huber"):
        protocol = quick(max_epochs=60, patience=60, learning_rate=0.05, loss=loss)
        [run] = train(graphs, network, protocol, device="cpu")
        error = (run.predictions["test"][:, 0] - sizes[run.split.test]).abs().mean()
        assert error < sizes.std() / 4
        assert run.history[-1]["val_mae"] < float(sizes.std())


def test_the_best_weights_are_the_ones_that_predict(tasks):
    [run] = train(tasks, SMALL, quick(max_epochs=12, learning_rate=0.1), device="cpu")
    losses = [row["val_loss"] for row in run.history]
    assert run.best_loss == min(losses)
    assert losses[run.best_epoch - 1] == min(losses)
    model = GraphNetwork(tasks.num_features, 2, hidden=8, layers=2)
    model.load_state_dict(run.weights)
    for part in ("val", "test"):
        graphs = tasks[getattr(run.split, part)]
        with torch.no_grad():
            assert torch.allclose(model(graphs), run.predictions[part], atol=1e-6)
    assert float(cross_entropy(run.predictions["val"], tasks.y[run.split.val])) == pytest.approx(
        run.best_loss, rel=1e-5
    )


def test_stops_after_patience(tasks):
    [run] = train(tasks, SMALL, quick(max_epochs=300, patience=3, learning_rate=0.3), device="cpu")
    assert len(run.history) == run.best_epoch + 3 < 300


def test_same_bits_whatever_was_trained_before(tasks):
    protocol = quick(seeds=(33,), max_epochs=3)
    [first] = train(tasks, SMALL, protocol, device="cpu")
    torch.manual_seed(12345)
    torch.rand(7)
    others = train(
        tasks, Architecture(hidden=12, pool="lookhops"), quick(max_epochs=1), device="cpu"
    )
    assert others
    again = train(tasks, SMALL, replace(protocol, seeds=(11, 33)), device="cpu")[1]
    assert all(torch.equal(first.weights[key], again.weights[key]) for key in first.weights)
    for part in ("val", "test"):
        assert torch.equal(first.predictions[part], again.predictions[part])
    timeless = [
        [{key: row[key] for key in row if key != "seconds"} for row in run.history]
        for run in (first, again)
    ]
    assert timeless[0] == timeless[1]


def test_training_leaves_the_callers_random_numbers_alone(tasks):
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    train(tasks, SMALL, quick(max_epochs=1), device="cpu")
    assert torch.equal(torch.rand(3), expected)


@pytest.mark.parametrize("precision", ["float64", "bfloat16"])
@pytest.mark.parametrize("pool", ["none", "lookhops"])
def test_precisions_learn_alike(tasks, precision, pool):
    architecture = replace(SMALL, pool=pool)
    losses = [
        train(tasks, architecture, quick(max_epochs=3, precision=p), device="cpu")[0].best_loss
        for p in ("float32", precision)
    ]
    assert losses[1] == pytest.approx(losses[0], rel=0.05 if precision == "bfloat16" else 1e-3)


def test_learns_a_hop_task():
    graphs = load("hops-1", size=300)
    protocol = Protocol(seeds=(11,), max_epochs=60, batch_size=32, learning_rate=0.01)
    [run] = train(graphs, Architecture(hidden=16, layers=3), protocol, device="cpu")
    hits = run.predictions["test"].argmax(1) == graphs.y[run.split.test]
    assert hits.float().mean() > 0.9


# -------------------------------------------------------------------- what cannot be trained


def test_a_single_class_is_refused(tasks):
    one = tasks[(tasks.y == 0).nonzero().flatten()]
    with pytest.raises(LookHopsError, match="one class"):
        train(one, SMALL, quick(), device="cpu")


def test_no_classes_are_refused(tasks):
    with pytest.raises(LookHopsError, match="no classes"):
        train(replace(tasks, y=None), SMALL, quick(), device="cpu")


def test_a_class_absent_from_training_is_named(tasks):
    zeros, ones = ((tasks.y == c).nonzero().flatten() for c in (0, 1))
    part = Split(zeros[:20], ones[:5], ones[5:10])
    with pytest.raises(LookHopsError, match=r"'same'.*seed 11"):
        train(tasks, SMALL, quick(), splits=[part], device="cpu")


def test_too_few_graphs_are_refused(tasks):
    few = tasks[torch.tensor([0, 1, 2, 3])]
    with pytest.raises(LookHopsError, match="too few"):
        train(few, SMALL, quick(), device="cpu")


def test_splits_must_be_as_many_as_seeds(tasks):
    with pytest.raises(LookHopsError, match=r"2 .*3 "):
        train(tasks, SMALL, quick(seeds=(1, 2, 3)), splits=[split(tasks, 0)] * 2, device="cpu")


@pytest.mark.parametrize("name", ["nonsense", "meta"])
def test_a_device_that_is_not_there(name):
    with pytest.raises(LookHopsError, match=name):
        choose_device(name)


def test_not_a_number_stops_with_the_last_good_weights(tasks, monkeypatch):
    kept = {}
    epoch_of = EagerEngine.epoch

    def poisoned(engine, number):
        loss = epoch_of(engine, number)
        if engine.seeds == (22,) and number == 3:
            return loss * float("nan")
        return loss

    monkeypatch.setattr(EagerEngine, "epoch", poisoned)

    def watch(progress):
        seed = progress.runs[0].seed
        kept[seed] = entries(progress.state(), f"{seed}", "kept")

    with pytest.raises(NotFinite, match=r"seed 22.*epoch 3") as caught:
        train(tasks, SMALL, quick(seeds=(11, 22, 33)), device="cpu", on_epoch=watch)
    first, second = caught.value.runs
    assert (first.seed, second.seed) == (11, 22)
    assert first.predictions
    assert not second.predictions
    assert all(torch.equal(second.weights[key], kept[22][key]) for key in second.weights)


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"seeds": ()}, "seed"),
        ({"seeds": (-1,)}, "[Ss]eed"),
        ({"seeds": (1, 1)}, "Seeds"),
        ({"batch_size": 0}, "batch_size"),
        ({"patience": 0}, "patience"),
        ({"learning_rate": 0.0}, "learning rate"),
        ({"weight_decay": -1.0}, "weight decay"),
        ({"precision": "float8"}, "precision"),
    ],
)
def test_protocols_that_make_no_sense(options, what):
    with pytest.raises(LookHopsError, match=what):
        Protocol(**options)


def test_seeds_from_text():
    assert parse_seeds("3") == (11, 22, 33)
    assert parse_seeds("7,9") == (7, 9)
    assert parse_seeds("1001,") == (1001,)
    with pytest.raises(LookHopsError, match="1001,"):
        parse_seeds("1001")
    for wrong in ("0", "a,b"):
        with pytest.raises(LookHopsError):
            parse_seeds(wrong)


def rings(size: int) -> Graphs:
    """Rings of 16 nodes: a small number tells who stands beside whom, a large one tells nothing."""
    rng = np.random.default_rng(0)
    high = np.where(np.arange(16) < 8, 1.0, -1.0)
    telling = np.stack([rng.permutation(high) if i % 2 else np.roll(high, i) for i in range(size)])
    telling = 0.01 * (telling + 0.3 * rng.normal(size=telling.shape))
    other = 1000 + 1000 * rng.normal(size=telling.shape)
    node = torch.arange(16 * size).view(size, 16)
    after = node.roll(-1, 1)
    return Graphs.from_edges(
        torch.cat((node, after)).flatten(),
        torch.cat((after, node)).flatten(),
        torch.full((size,), 16),
        nodes=Features(
            numbers=torch.from_numpy(np.stack((telling, other), 2).reshape(-1, 2)).float()
        ),
        y=torch.arange(size) % 2,
    )


def test_a_telling_number_of_small_scale_is_read_beside_a_large_one():
    graphs = rings(240)
    small = replace(RECOMMENDED, hidden=16, layers=2, fingerprint=None, dropout=0.0)
    protocol = Protocol((1001,), batch_size=16, max_epochs=10, learning_rate=0.01)
    right = {}
    for scale in ("none", RECOMMENDED.scale):
        [run] = train(graphs, replace(small, scale=scale), protocol, device="cpu")
        hits = run.predictions["test"].argmax(1) == graphs.y[run.split.test]
        right[scale] = float(hits.double().mean())
    assert right["none"] < 0.8
    assert right["standard"] >= 0.95


def test_a_stack_that_does_not_fit_is_halved(tasks, monkeypatch):
    """Members of one seed too: each trains the same in any company."""
    protocol = Protocol((7,), members=5, max_epochs=2, batch_size=16)
    [want] = train(tasks, SMALL, protocol, stacked=True)
    sizes = []

    class Small(StackedEngine):
        def epoch(self, number):
            sizes.append(len(self.seeds))
            if len(self.seeds) > 2 and number == 2:
                raise torch.OutOfMemoryError
            return super().epoch(number)

    monkeypatch.setattr("lookhops.training.trainer.StackedEngine", Small)
    [found] = train(tasks, SMALL, protocol, stacked=True)
    assert sizes == [5, 5, 2, 2, 3, 3, 1, 1, 2, 2]
    assert [one.together for one in found.members] == [2, 2, 1, 2, 2]
    assert [one.member for one in found.members] == [0, 1, 2, 3, 4]
    for part, output in want.predictions.items():
        torch.testing.assert_close(found.predictions[part], output, atol=1e-5, rtol=0)
    monkeypatch.setattr(Small, "epoch", lambda *_: (_ for _ in ()).throw(torch.OutOfMemoryError))
    with pytest.raises(torch.OutOfMemoryError):
        train(tasks, SMALL, protocol, stacked=True)
