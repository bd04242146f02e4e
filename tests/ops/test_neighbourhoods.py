"""Neighbourhoods and the links between them in fixed shapes, against those of as many as needed."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from batches import Batch, batches, make_batch
from lookhops.nn import GraphBatch, GraphNetwork
from lookhops.ops import Adjacency, Pattern, SparseMatrix
from lookhops.ops.batch import Extent
from lookhops.ops.clusters import links_between
from lookhops.ops.neighbourhoods import Neighbourhoods
from lookhops.ops.pattern import mirror

CLOSE = {"rtol": 1e-9, "atol": 1e-9}


def roomy(batch: Batch, padding: int = 2, edges: int = 3) -> GraphBatch:
    """The batch in fixed shape: dead nodes at the end, padding edges, and how large graphs are."""
    nodes, sizes = len(batch.x), torch.tensor(batch.sizes)
    slots = nodes + padding
    own = Adjacency.of(batch.edge_index, slots, batch.edge_weight)
    last = torch.full((edges,), slots - 1, dtype=torch.int32)
    pattern = Pattern(own.pattern.row_ptr, torch.cat((own.source, last)))
    weight = None if own.weight is None else torch.cat((own.weight, torch.ones(edges)))
    end = sizes.cumsum(0)
    return GraphBatch(
        torch.cat((batch.x, batch.x.new_zeros(padding, batch.x.shape[1]))),
        Adjacency(pattern, weight, symmetric=goes_both_ways(batch)),
        torch.cat((batch.batch, torch.full((padding,), batch.num_graphs - 1))),
        batch.num_graphs,
        torch.arange(slots) < nodes,
        segments=torch.stack((end - sizes, end)),
        extent=Extent(
            batch.num_graphs, nodes, int((sizes**2).sum()), int(sizes.max().clamp(min=1))
        ),
    )


def goes_both_ways(batch: Batch) -> bool:
    source, target = batch.edge_index * torch.tensor([[len(batch.x)], [1]])
    there, back = source + target, target * len(batch.x) + source // max(len(batch.x), 1)
    weight = torch.ones(len(there)) if batch.edge_weight is None else batch.edge_weight
    each = [sorted(zip(key.tolist(), weight.tolist(), strict=True)) for key in (there, back)]
    return each[0] == each[1]


@given(batches(min_graphs=1), st.sampled_from([0.3, 0.5, 0.8, 1.0]))
def test_outputs_and_gradients_are_those_of_as_many_links_as_needed(batch, ratio):
    torch.manual_seed(0)
    sizes = {"hidden": 5, "layers": 3, "ratio": ratio}
    model = GraphNetwork(4, 2, conv="licheb", pool="asap", **sizes).double()
    level = roomy(batch)
    results = []
    for given_level in (level, replace(level, extent=None)):
        model.zero_grad()
        output, decisions = model.classify(given_level, masked=True)
        output.sum().backward()
        grads = [p.grad for p in model.parameters() if p.grad is not None]
        results.append((output, [pooled.node for pooled in decisions], grads))
    for found, expected in zip(*results, strict=True):
        torch.testing.assert_close(found, expected, **CLOSE)
    compacted, _ = model.classify(batch.level())
    torch.testing.assert_close(results[0][0], compacted, **CLOSE)


@pytest.mark.parametrize("weighted", [True, False])
def test_factors_become_means_of_what_links_stand_for(weighted):
    batch = make_batch(5, (6, 1, 9), weighted=weighted, dtype=torch.float64)
    found = []
    for level in (roomy(batch), replace(roomy(batch), extent=None)):
        key = level.adjacency.source.double() + level.adjacency.target
        factor = (1 + key.cos() / 2).requires_grad_()
        near = Neighbourhoods(replace(level, adjacency=level.adjacency.times(factor)))
        share = (near.pattern.row * 7.0 + near.pattern.column).double().sin().abs()
        keep = level.alive & (torch.arange(len(level.alive)) % 3 > 0)
        links = near.links(SparseMatrix(near.pattern, share), keep, 0.7)
        count = int(links.pattern.row_ptr[-1])
        value = links.edge_values(torch.float64)
        (value[:count] * torch.arange(count)).sum().backward()
        assert value.isfinite().all()
        found.append((links.edge_index[:, :count], value[:count].detach(), factor.grad))
    assert found[0][0].numel() > 20
    assert found[0][2].abs().sum() > 1
    torch.testing.assert_close(*found, **CLOSE)


@given(batches(min_graphs=1), st.integers(0, 2**16))
def test_links_are_those_of_as_many_as_needed(batch, seed):
    level = roomy(batch)
    near = Neighbourhoods(level)
    keep = torch.rand(len(level.alive), generator=torch.Generator().manual_seed(seed)) < 0.6
    keep &= level.alive
    ones = torch.ones(near.pattern.column.numel(), dtype=torch.float64)
    found = near.links(SparseMatrix(near.pattern, ones), keep, 1.0).pattern
    plain = Neighbourhoods(replace(level, extent=None))
    expected = links_between(SparseMatrix(plain.pattern), None, keep, level).pattern
    count = expected.column.numel()
    assert torch.equal(found.row_ptr, expected.row_ptr)
    assert torch.equal(found.column[:count], expected.column)
    assert torch.equal(found.row[:count], expected.row)
    assert (found.column[count:] == len(keep) - 1).all()
    assert (found.row[count:] == len(keep) - 1).all()
    if found.mirrored:
        order = mirror(found).long()
        assert torch.equal(found.row[order], found.column)
        assert torch.equal(found.column[order], found.row)


@given(
    st.lists(st.lists(st.integers(0, 40), min_size=3, max_size=3), min_size=1, max_size=4),
    st.sampled_from([0.1, 0.5, 0.7, 1.0]),
)
def test_links_never_outgrow_their_room(plan, ratio):
    sizes = torch.tensor(plan)
    most = (int(sizes.sum(1).max()), int((sizes**2).sum(1).max()))
    extent = Extent(3, *most, int(sizes.max()))
    for _ in range(4):
        sizes = (sizes * ratio - 1e-7).ceil().long()
        assert int((sizes * (sizes - 1)).sum(1).max()) <= extent.links(ratio)
        extent = extent.kept(ratio)
        assert int(sizes.sum(1).max()) <= extent.nodes
        assert int((sizes**2).sum(1).max()) <= extent.squares
