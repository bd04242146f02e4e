"""The normalised operators and the smaller graphs, against dense matrices and against PyG."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch_geometric.nn.conv.gcn_conv import gcn_norm
from torch_geometric.utils import get_laplacian, subgraph, to_dense_adj

from batches import Batch, batches, dense, dense_chebyshev, dense_mixhop, make_batch
from lookhops import Graphs, LookHopsError
from lookhops.ops import Adjacency, SparseMatrix


def full(matrix: SparseMatrix) -> torch.Tensor:
    """The matrix itself, as what it makes of the unit vectors."""
    return matrix @ torch.eye(matrix.pattern.size, dtype=torch.float64)


def adjacency(batch: Batch) -> Adjacency:
    return Adjacency.of(batch.edge_index, len(batch.x), batch.edge_weight)


@given(batches())
def test_operators_are_the_dense_formulas(batch):
    links = adjacency(batch)
    torch.testing.assert_close(full(links.links(torch.float64)), dense(batch))
    torch.testing.assert_close(full(links.chebyshev(torch.float64)), dense_chebyshev(batch))
    torch.testing.assert_close(full(links.mixhop(torch.float64)), dense_mixhop(batch))


@given(batches(), st.integers(0, 3))
def test_edges_keep_what_belongs_to_them(batch, seed):
    links = adjacency(batch)
    assert torch.equal(links.edge_index, batch.edge_index[:, links.order])
    assert links.target.tolist() == sorted(links.target.tolist())
    if batch.edge_weight is not None:
        assert torch.equal(links.weight, batch.edge_weight[links.order])
    shuffled = torch.randperm(
        batch.edge_index.shape[1], generator=torch.Generator().manual_seed(seed)
    )
    again = Adjacency.of(
        batch.edge_index[:, shuffled],
        len(batch.x),
        None if batch.edge_weight is None else batch.edge_weight[shuffled],
    )
    torch.testing.assert_close(full(again.links(torch.float64)), full(links.links(torch.float64)))


@pytest.mark.parametrize("weighted", [False, True])
def test_chebyshev_is_pyg_s_scaled_laplacian(weighted):
    batch = make_batch(0, weighted=weighted, loops=True, directed=True, dtype=torch.float64)
    index, value = get_laplacian(batch.edge_index, batch.edge_weight, "sym", torch.float64, 17)
    expected = to_dense_adj(index, edge_attr=value, max_num_nodes=17)[0].mT - torch.eye(17)
    torch.testing.assert_close(full(adjacency(batch).chebyshev(torch.float64)), expected)


@pytest.mark.parametrize("weighted", [False, True])
def test_mixhop_is_pyg_s_gcn_norm(weighted):
    batch = make_batch(1, weighted=weighted, directed=True, dtype=torch.float64)
    loop = torch.tensor([[3, 9], [3, 9]])  # two nodes have a loop of their own
    edge_index = torch.cat((batch.edge_index, loop), dim=1)
    weight = None
    if weighted:
        weight = torch.cat((batch.edge_weight, torch.tensor([0.5, 2.0], dtype=torch.float64)))
    index, value = gcn_norm(edge_index, weight, 17, dtype=torch.float64)
    expected = to_dense_adj(index, edge_attr=value, max_num_nodes=17)[0].mT
    links = Adjacency.of(edge_index, 17, weight)
    torch.testing.assert_close(full(links.mixhop(torch.float64)), expected)


def test_operators_are_made_once_and_in_no_less_than_float32():
    links = adjacency(make_batch(0))
    assert links.chebyshev(torch.float32) is links.chebyshev(torch.bfloat16)
    assert links.chebyshev(torch.bfloat16).value.dtype == torch.float32
    assert links.chebyshev(torch.float64).value.dtype == torch.float64


@pytest.mark.parametrize("kind", ["chebyshev", "mixhop"])
def test_learnt_weights_get_their_gradient(kind):
    batch = make_batch(0, weighted=True, loops=True, dtype=torch.float64)
    weight = batch.edge_weight.clone().requires_grad_()
    links = Adjacency.of(batch.edge_index, 17, weight)
    x = torch.randn(17, 2, dtype=torch.float64)
    with torch.no_grad():  # a look without gradients must not be what training gets later
        getattr(links, kind)(torch.float64) @ x
    (getattr(links, kind)(torch.float64) @ x).square().sum().backward()
    assert weight.grad.abs().sum() > 0

    def through(weight: torch.Tensor) -> torch.Tensor:
        links = Adjacency.of(batch.edge_index, 17, weight)
        return getattr(links, kind)(torch.float64) @ x

    assert torch.autograd.gradcheck(through, (weight,))


def test_what_inference_normalised_serves_training():
    batch = make_batch(0, loops=True, weighted=True)
    links = adjacency(batch)
    x = batch.x.clone().requires_grad_()
    with torch.inference_mode():
        for operator in (links.chebyshev(x.dtype), links.mixhop(x.dtype)):
            assert (operator @ x).shape == x.shape
        assert links.pair.shape == (batch.edge_index.shape[1],)
    for operator in (links.chebyshev(x.dtype), links.mixhop(x.dtype)):
        (operator @ x).sum().backward()


def test_packed_graphs_need_no_sorting():
    batch = make_batch(4, loops=True, dtype=torch.float64)
    graphs = Graphs.from_edges(*batch.edge_index, torch.tensor(batch.sizes))
    links = Adjacency.from_graphs(graphs)
    assert links.symmetric
    assert links.source is graphs.source
    torch.testing.assert_close(full(links.chebyshev(torch.float64)), dense_chebyshev(batch))
    torch.testing.assert_close(full(links.mixhop(torch.float64)), dense_mixhop(batch))
    one_way = make_batch(4, directed=True)
    graphs = Graphs.from_edges(*one_way.edge_index, torch.tensor(one_way.sizes))
    assert not Adjacency.from_graphs(graphs).symmetric


@given(batches())
def test_a_pair_is_what_joins_the_same_two_nodes(batch):
    links = adjacency(batch)
    ends = [tuple(sorted(pair)) for pair in links.edge_index.T.tolist()]
    assert links.pair.tolist() == [ends.index(pair) for pair in ends]


@given(batches(), st.integers(0, 2**16))
def test_masked_and_compacted_are_the_graph_of_the_kept_nodes(batch, seed):
    links = adjacency(batch)
    generator = torch.Generator().manual_seed(seed)
    node = torch.rand(len(batch.x), generator=generator) < 0.6
    edge = node[links.source.long()] & node[links.target.long()]
    edge &= (torch.rand(links.num_edges, generator=generator) < 0.7)[links.pair]
    kept, weight = subgraph(
        node,
        links.edge_index[:, edge],
        None if links.weight is None else links.weight[edge],
        relabel_nodes=True,
        num_nodes=len(batch.x),
    )
    smaller = Batch(batch.x[node], kept, batch.batch[node], batch.num_graphs, weight)
    numbers = node.nonzero().flatten(), edge.nonzero().flatten()
    compacted, masked = links.compacted(node, edge, *numbers), links.masked(edge)
    assert torch.equal(compacted.edge_index, kept)
    assert masked.num_edges == links.num_edges
    for kind, formula in (("chebyshev", dense_chebyshev), ("mixhop", dense_mixhop)):
        expected = formula(smaller)
        torch.testing.assert_close(full(getattr(compacted, kind)(torch.float64)), expected)
        operator = full(getattr(masked, kind)(torch.float64))
        torch.testing.assert_close(operator[node][:, node], expected)
        assert not operator[node][:, ~node].any()
    # And once more, from the graph that is already smaller.
    again = links.masked(edge).masked(torch.zeros_like(edge))
    assert not full(again.chebyshev(torch.float64)).any()


def test_refusals_are_sentences():
    x = 5
    good = torch.tensor([[0, 1], [1, 4]])
    for edge_index, said in (
        (good.T.repeat(2, 1), r"\(2, e\).*\(4, 2\)"),
        (good[0], r"\(2, e\).*\(2,\)"),
        (good.double(), "torch.float64"),
        (good.bool(), "torch.bool"),
        (good.to(torch.uint8), "torch.uint8"),
        (good + 1, "node 5.*0 to 4"),
        (good - 1, "node -1"),
        (good.tolist(), "list"),
        (torch.eye(2).to_sparse(), "torch.sparse_coo"),
    ):
        with pytest.raises(LookHopsError, match=said):
            Adjacency.of(edge_index, x)
    with pytest.raises(LookHopsError, match="edge weights"):
        Adjacency.of(good, x, torch.ones(3))
    with pytest.raises(LookHopsError, match="Adjacency"):
        Adjacency.of(Adjacency.of(good, x), x, torch.ones(2))
