"""Dropout: what is dropped belongs to the key, the layer and the place, and to nothing else."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from batches import join, make_batch
from lookhops.nn import GraphBatch, GraphNetwork
from lookhops.ops.dropout import dropout, kept

WORD = 1 << 64


def splitmix(bits: int) -> int:
    """The finaliser of SplitMix64, in Python's own integers."""
    bits = (bits ^ bits >> 30) * 0xBF58476D1CE4E5B9 % WORD
    bits = (bits ^ bits >> 27) * 0x94D049BB133111EB % WORD
    return bits ^ bits >> 31


def draw(key: int, layer: int, place: int, channel: int) -> int:
    """The 16 bits of one element; their highest is turned, as a signed number reads it."""
    gamma = 0x9E3779B97F4A7C15
    node = splitmix((splitmix((key + layer * gamma) % WORD) + place) % WORD)
    bits = splitmix((node + (channel // 4 + 1) * gamma) % WORD)
    return (bits >> 16 * (channel % 4)) % (1 << 16) ^ (1 << 15)


@given(st.integers(-(2**63), 2**63 - 1), st.integers(0, 9), st.integers(0, 2**40))
def test_the_mask_is_the_hash(key, layer, place):
    x = torch.ones(2, 7)
    places = torch.tensor([place, 3])
    found = kept(x, torch.tensor(key), layer, places, 20_000)
    expected = [[draw(key, layer, p, c) >= 20_000 for c in range(7)] for p in places.tolist()]
    assert found.tolist() == expected


def test_the_numbers_are_these():
    """A change of the hash would change every run that was reported with dropout."""
    x = torch.ones(3, 8)
    found = kept(x, torch.tensor(11_000_033), 1, torch.tensor([0, 1, 4_000_000]), 1 << 15)
    assert found.int().tolist() == [
        [0, 1, 0, 0, 0, 1, 1, 1],
        [0, 1, 1, 1, 0, 0, 1, 1],
        [0, 0, 1, 1, 1, 0, 0, 1],
    ]


@pytest.mark.parametrize("p", [0.2, 0.5, 0.9])
def test_the_share_and_the_mean(p):
    x = torch.ones(4000, 128, dtype=torch.float64)
    y = dropout(x, p, torch.tensor(5), 0, torch.arange(4000))
    dropped = (y == 0).double()
    assert dropped.mean() == pytest.approx(p, abs=0.003)
    assert y.mean() == pytest.approx(1, abs=0.02)
    assert dropped.mean(0).sub(p).abs().max() < 0.05
    assert dropped.mean(1).sub(p).abs().max() < 0.25
    near = (dropped - p)[:, :-1] * (dropped - p)[:, 1:]
    assert near.mean().abs() < 0.003  # neighbouring channels are independent


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_a_share_of_each_member_is_what_it_is_alone(dtype):
    x = torch.randn(4, 20, 10, dtype=dtype, requires_grad=True)
    key, place = torch.tensor([11, 22, 33, 33]), torch.randint(0, 1000, (4, 20))
    shares = [0.0, 0.3, 0.55, 1 - 1e-9]
    together = dropout(x, torch.tensor(shares, dtype=torch.float64), key, 2, place)
    [grad] = torch.autograd.grad(together.square().sum(), x)
    for i, share in enumerate(shares):
        own = x[i].detach().requires_grad_()
        alone = dropout(own, share, key[i], 2, place[i])
        assert torch.equal(together[i], alone)
        assert torch.equal(grad[i], torch.autograd.grad(alone.square().sum(), own)[0])


def test_keys_layers_and_places_differ():
    x, place = torch.ones(50, 16), torch.arange(50)
    masks = [
        dropout(x, 0.5, torch.tensor(key), layer, place + shift)
        for key, layer, shift in [(1, 0, 0), (2, 0, 0), (1, 1, 0), (1, 0, 50)]
    ]
    for i, one in enumerate(masks):
        for other in masks[:i]:
            assert ((one == 0) == (other == 0)).double().mean() == pytest.approx(0.5, abs=0.1)


def test_a_member_is_the_same_alone_and_in_any_stack():
    x, key = torch.randn(3, 20, 10), torch.tensor([11, 22, 33])
    place = torch.randint(0, 1000, (3, 20))
    together = dropout(x, 0.3, key, 2, place.flatten())
    for i in range(3):
        assert torch.equal(together[i], dropout(x[i], 0.3, key[i], 2, place[i]))
    assert torch.equal(together[[2, 0]], dropout(x[[2, 0]], 0.3, key[[2, 0]], 2, place[[2, 0]]))


def test_no_share_and_nearly_all():
    x, place = torch.randn(5, 3), torch.arange(5)
    assert dropout(x, 0.0, torch.tensor(1), 0, place) is x
    assert dropout(x, 1 - 1e-9, torch.tensor(1), 0, place).isfinite().all()
    assert dropout(x[:0], 0.5, torch.tensor(1), 0, place[:0]).shape == (0, 3)


def test_gradients_in_both_orders():
    x = torch.randn(4, 6, dtype=torch.float64, requires_grad=True)

    def drop(x):
        return dropout(x, 0.4, torch.tensor(3), 1, torch.arange(4))

    assert torch.autograd.gradcheck(drop, x)
    assert torch.autograd.gradgradcheck(drop, x)


# -------------------------------------------------------------------- in the network


def network(pool: str, **options) -> GraphNetwork:
    torch.manual_seed(0)
    sizes = {"hidden": 16, "layers": 3, "ratio": 0.6, "dropout": 0.3}
    return GraphNetwork(4, 2, conv="licheb", pool=pool, **{**sizes, **options}).double()


@pytest.mark.parametrize("pool", ["none", "topk", "sag", "edge", "asap", "lookhops"])
def test_masked_is_compacted_with_dropout(pool):
    batch = make_batch(1, sizes=[9, 5, 12], edges_per_node=2, dtype=torch.float64)
    model, key = network(pool), torch.tensor(77)
    compacted, _ = model.classify(batch.level(), key=key)
    masked, _ = model.classify(batch.level(), masked=True, key=key)
    torch.testing.assert_close(masked, compacted)
    other, _ = model.classify(batch.level(), key=key + 1)
    assert not torch.allclose(other, compacted)


@pytest.mark.parametrize("pool", ["none", "edge", "asap", "lookhops"])
@pytest.mark.parametrize("masked", [False, True])
def test_batch_mates_do_not_change_a_draw(pool, masked):
    one, mate = (make_batch(seed, sizes=[9, 5], dtype=torch.float64) for seed in (1, 2))
    model, key = network(pool), torch.tensor(77)
    place = torch.arange(len(one.x)) + 1000
    alone, _ = model.classify(replace(one.level(), place=place), masked, key)
    both = replace(join(mate, one).level(), place=torch.cat((torch.arange(len(mate.x)), place)))
    together, _ = model.classify(both, masked, key)
    torch.testing.assert_close(together[2:], alone)


def test_the_default_key_follows_from_the_default_generator():
    batch = make_batch(1, sizes=[9, 5], dtype=torch.float64)
    model = network("lookhops")
    found = []
    for seed in (4, 4, 5):
        torch.manual_seed(seed)
        found.append(model(batch.level()))
    assert torch.equal(found[0], found[1])
    assert not torch.allclose(found[0], found[2])


def test_places_are_numbered_in_every_slice():
    batch = make_batch(1, sizes=[4, 3])
    both = join(batch, batch)
    level = GraphBatch(torch.stack((batch.x, batch.x)), both.level().adjacency, both.batch, 4)
    assert level.places.tolist() == [list(range(7))] * 2
