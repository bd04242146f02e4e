"""The readout against a loop over graphs and against PyG."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.autograd import gradcheck
from torch_geometric.nn import global_max_pool, global_mean_pool

from batches import batches, join, make_batch
from lookhops.nn import GraphBatch, readout
from lookhops.ops import Adjacency
from lookhops.ops.activate import at_maximum


def naive(level: GraphBatch) -> torch.Tensor:
    """Maximum and mean of each graph's living nodes; zeros for a graph without any."""
    alive = torch.ones(len(level.x), dtype=torch.bool) if level.alive is None else level.alive
    rows = []
    for graph in range(level.num_graphs):
        own = level.x[(level.graph == graph) & alive]
        if len(own):
            rows.append(torch.cat((own.amax(0), own.mean(0))))
        else:
            rows.append(torch.zeros(2 * level.x.shape[1], dtype=level.x.dtype))
    return torch.stack(rows) if rows else torch.zeros(0, 2 * level.x.shape[1]).to(level.x)


def masked(level: GraphBatch, seed: int) -> GraphBatch:
    alive = torch.rand(len(level.x), generator=torch.Generator().manual_seed(seed)) < 0.6
    return GraphBatch(level.x, level.adjacency, level.graph, level.num_graphs, alive=alive)


@given(batches(), st.booleans(), st.integers(0, 99))
def test_readout_is_max_and_mean(batch, some_dead, seed):
    level = masked(batch.level(), seed) if some_dead else batch.level()
    x = batch.x.clone().requires_grad_()
    found = readout(level.with_x(x))
    torch.testing.assert_close(found, naive(level))
    assert found.shape == (batch.num_graphs, 8)
    found.square().sum().backward()
    expected = batch.x.clone().requires_grad_()
    (naive(level.with_x(expected)).square().sum() + 0 * expected.sum()).backward()
    torch.testing.assert_close(x.grad, expected.grad)


def test_readout_is_pyg_s():
    batch = make_batch(0)
    found = readout(batch.level())
    highest = global_max_pool(batch.x, batch.batch)
    mean = global_mean_pool(batch.x, batch.batch)
    torch.testing.assert_close(found, torch.cat((highest, mean), dim=1))


@pytest.mark.parametrize("some_dead", [False, True])
def test_gradients(some_dead):
    batch = make_batch(0, sizes=[3, 0, 1, 4], channels=2, dtype=torch.float64)
    level = masked(batch.level(), 1) if some_dead else batch.level()
    x = batch.x.clone().requires_grad_()
    assert gradcheck(lambda x: readout(level.with_x(x)), (x,))


def test_those_who_share_a_maximum_share_its_gradient():
    x = torch.tensor([[2.0], [1.0], [2.0]], requires_grad=True)
    level = GraphBatch(x, make_batch(0, sizes=[3]).level().adjacency, torch.zeros(3).long(), 1)
    readout(level)[0, 0].backward()
    assert x.grad.flatten().tolist() == [0.5, 0, 0.5]


def test_stacked_seeds():
    own = [make_batch(seed) for seed in range(3)]
    both = join(*own)
    xs = torch.stack([batch.x for batch in own])
    found = readout(GraphBatch(xs, both.level().adjacency, both.batch, both.num_graphs))
    assert found.shape == (3, 4, 8)
    for seed, batch in enumerate(own):
        torch.testing.assert_close(found[seed], readout(batch.level()))


@pytest.mark.parametrize("graphs", [0, 3])
def test_empty_graphs_read_zero(graphs):
    level = make_batch(0, sizes=[0] * graphs).level()
    found = readout(level)
    assert found.shape == (graphs, 8)
    assert not found.any()


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_other_precisions(dtype):
    batch = make_batch(0, sizes=[30, 4])
    level = batch.level()
    found = readout(level.with_x(batch.x.to(dtype)))
    assert found.dtype == dtype
    tolerance = 1e-6 if dtype == torch.float64 else 2e-2
    torch.testing.assert_close(found.float(), readout(level), rtol=tolerance, atol=tolerance)


def test_all_negative_features_keep_their_maximum():
    batch = make_batch(0)
    level = batch.level().with_x(-batch.x.abs() - 1)
    assert (readout(level)[:, :4] <= -1).all()


def test_an_infinite_maximum_has_its_gradient():
    x = torch.tensor([[torch.inf], [1.0]], requires_grad=True)
    links = Adjacency.of(torch.zeros(2, 0, dtype=torch.long), 2)
    level = GraphBatch(x, links, torch.zeros(2, dtype=torch.long), 1)
    readout(level)[0, 0].backward()
    assert x.grad.tolist() == [[1.0], [0.0]]


def test_what_is_near_a_maximum_has_a_part_of_it():
    x = torch.tensor([[2.0, 0.0], [1.9999, 0.0], [1.9998, -1.0], [1.0, -2.0]])
    highest, graph = x.amax(0, keepdim=True), torch.zeros(4, dtype=torch.long)
    assert at_maximum(x, highest, graph, 0.0).T.tolist() == [[1, 0, 0, 0], [1, 1, 0, 0]]
    near = at_maximum(x, highest, graph, 1e-4)
    torch.testing.assert_close(near[:, 0], torch.tensor([1.0, 0.5, 0.0, 0.0]), rtol=0, atol=1e-3)
    assert near[:, 1].tolist() == [1, 1, 0, 0]
