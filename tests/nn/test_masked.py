"""Every convolution with every pooling: masked or compacted, in a batch or alone, stacked."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from torch import Tensor, nn
from torch.func import functional_call

from batches import LAYER_PAIRS, batches, join, make_batch, split
from lookhops import LookHopsError
from lookhops.nn import ASAP, SAG, Edge, GraphBatch, GraphNetwork, TopK
from lookhops.nn.registry import CONVOLUTIONS

CHANNELS = 4
CLOSE = {"rtol": 1e-5, "atol": 1e-5}
POOLS = {
    "topk": lambda: TopK(CHANNELS, 0.6),
    "sag": lambda: SAG(CHANNELS, 0.6),
    "edge": lambda: Edge(CHANNELS),
    "asap": lambda: ASAP(CHANNELS, 0.6),
}


def matrix(edge_index: Tensor, size: int, weight: Tensor | None = None) -> Tensor:
    """Edges as a dense matrix; repeated ones add up."""
    value = torch.ones(edge_index.shape[1]).double() if weight is None else weight
    zeros = torch.zeros(size, size, dtype=value.dtype)
    return zeros.index_put(tuple(edge_index), value, accumulate=True)


def make_model(conv: str, pool: str, **options) -> GraphNetwork:
    torch.manual_seed(0)
    sizes = {"hidden": 6, "layers": 3, "ratio": 0.6, **options}
    return GraphNetwork(CHANNELS, 2, conv=conv, pool=pool, **sizes).double()


@pytest.mark.parametrize(("conv", "pool"), LAYER_PAIRS)
@settings(max_examples=6)
@given(batch=batches(min_graphs=1))
def test_masked_is_compacted_and_batch_mates_change_nothing(conv, pool, batch):
    model = make_model(conv, pool)
    x = batch.x.clone().requires_grad_()
    batch = replace(batch, x=x)
    compacted, decisions = model.classify(batch.level())
    masked, _ = model.classify(batch.level(), masked=True)
    torch.testing.assert_close(masked, compacted, **CLOSE)
    alone = [model.classify(part.level())[0] for part in split(batch)]
    torch.testing.assert_close(torch.cat(alone), compacted, **CLOSE)
    assert len(decisions) == (0 if pool == "none" else 2)
    for result in (masked, compacted):
        x.grad = None
        model.zero_grad()
        result.sum().backward()
        assert result.isfinite().all()
        assert x.grad.isfinite().all()
        assert all(p.grad is None or p.grad.isfinite().all() for p in model.parameters())


@pytest.mark.parametrize("conv", CONVOLUTIONS)
@pytest.mark.parametrize("pool", ["edge", "asap", "hgpsl", "diffpool"])
def test_masked_has_the_gradients_of_compacted(conv, pool):
    batch = make_batch(8, (6, 1, 9), CHANNELS, dtype=torch.float64)
    model = make_model(conv, pool)
    grads = []
    for masked in (False, True):
        model.zero_grad()
        model.classify(batch.level(), masked)[0][:, 0].sum().backward()
        grads.append([p.grad for p in model.parameters() if p.grad is not None])
    for a, b in zip(*grads, strict=True):
        torch.testing.assert_close(a, b, **CLOSE)


@pytest.mark.parametrize("name", POOLS)
def test_masked_keeps_shapes_and_slots(name):
    batch = make_batch(9, (6, 1, 9), CHANNELS, dtype=torch.float64)
    pool = POOLS[name]().double()
    level, pooled = pool.pool(batch.level(), masked=True)
    compact, same = pool.pool(batch.level())
    assert torch.equal(pooled.node, same.node)
    assert torch.equal(pooled.edge, same.edge)
    assert level.x.shape == batch.x.shape
    assert torch.equal(level.alive, pooled.node)
    torch.testing.assert_close(level.x[level.alive], compact.x)
    assert (level.x[~level.alive] == 0).all()
    alive = level.adjacency.edge_index
    if level.edge_alive is not None:
        assert level.adjacency.num_edges == batch.edge_index.shape[1]
        assert int(level.edge_alive.sum()) == compact.adjacency.num_edges
        assert torch.equal(level.adjacency.weight != 0, level.edge_alive)
        alive = alive[:, level.edge_alive]
    number = pooled.node.cumsum(0) - 1
    size = len(compact.x)
    assert torch.equal(matrix(number[alive], size), matrix(compact.adjacency.edge_index, size))


@pytest.mark.parametrize("name", POOLS)
def test_a_stack_of_seeds_is_each_seed(name):
    batch = make_batch(10, (6, 1, 9), CHANNELS, dtype=torch.float64)
    seeds = [POOLS[name]().double() for _ in range(2)]
    parameters = [dict(pool.named_parameters()) for pool in seeds]
    stack = {key: torch.stack([p[key] for p in parameters]) for key in parameters[0]}
    x = torch.stack((batch.x, batch.x.flip(0)))
    both = join(batch, batch).level()
    level = GraphBatch(x, both.adjacency, both.graph, both.num_graphs)

    class Masked(nn.Module):
        def __init__(self, pool: nn.Module) -> None:
            super().__init__()
            self.pool = pool

        def forward(self, level: GraphBatch):
            return self.pool.pool(level, masked=True)

    stack = {f"pool.{key}": value for key, value in stack.items()}
    found, pooled = functional_call(Masked(seeds[0]), stack, (level,))
    for number, (pool, part) in enumerate(zip(seeds, x, strict=True)):
        expected, own = pool.pool(replace(batch, x=part).level(), masked=True)
        own_nodes = slice(number * len(part), (number + 1) * len(part))
        torch.testing.assert_close(found.x[number], expected.x)
        assert torch.equal(pooled.node[own_nodes], own.node)
        torch.testing.assert_close(pooled.score[own_nodes], own.score)
    with pytest.raises(LookHopsError, match="masked=True"):
        seeds[0].pool(level)
