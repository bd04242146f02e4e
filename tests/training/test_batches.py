"""Batches by graphs and by nodes."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from lookhops.core.options import Protocol
from lookhops.training.batches import batches, number_of_batches, plan_of

sizes = st.lists(st.integers(0, 60), min_size=1, max_size=80)


@given(sizes, st.integers(1, 9), st.integers(1, 50), st.randoms(use_true_random=False))
def test_by_nodes_every_graph_is_once_in_a_batch_that_fits(nodes, size, budget, random):
    protocol = Protocol(batch_size=size, batch_nodes=budget)
    order = list(range(len(nodes)))
    random.shuffle(order)
    nodes, order = torch.tensor(nodes), torch.tensor(order)
    found = batches(order, nodes, protocol)
    assert torch.cat(found).equal(order)
    assert len(found) == number_of_batches(order.sort().values, nodes, protocol)
    for batch in found:
        assert 1 <= len(batch) <= size + 1
        # All but the last graph fit; one above the budget counts as all of it.
        assert nodes[batch].clamp(max=budget)[:-1].sum() <= budget
    plan = plan_of([found, found[:1]], protocol)
    assert plan.shape == (2, len(found), size + 1)
    assert plan[0][plan[0] >= 0].equal(order)
    assert plan[1][plan[1] >= 0].equal(found[0])


def test_by_graphs_they_are_cut_as_they_come():
    protocol, order = Protocol(batch_size=3), torch.tensor([4, 0, 2, 1, 3, 6, 5])
    found = batches(order, torch.ones(7), protocol)
    assert [batch.tolist() for batch in found] == [[4, 0, 2], [1, 3, 6], [5]]
    assert number_of_batches(order, torch.ones(7), protocol) == 3
    assert plan_of([found], protocol).tolist() == [[[4, 0, 2], [1, 3, 6], [5, -1, -1]]]


def test_an_empty_part_is_one_batch_of_nothing():
    protocol, none = Protocol(batch_size=3), torch.zeros(0, dtype=torch.long)
    assert plan_of([batches(none, torch.ones(1), protocol)], protocol).tolist() == [[[-1] * 3]]
