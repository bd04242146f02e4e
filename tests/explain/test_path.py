"""The halves of graphs' nodes, and shares that are completed to a known sum."""

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from lookhops.explain.path import _completed, halves
from strategies import graph_sets, renumbered


@given(graph_sets(), st.integers(0, 2**16))
def test_halves_follow_the_nodes_however_they_are_numbered(graphs, seed):
    order = torch.from_numpy(np.random.default_rng(seed).permutation(graphs.num_nodes))
    graph = graphs.batch.long()
    order = order[graph[order].argsort(stable=True)]  # old number of each new node
    assert torch.equal(halves(renumbered(graphs, order)), halves(graphs)[order])


def test_what_shares_lack_goes_to_them_by_their_size():
    shares = torch.tensor([1.0, -3, 0, 0, 0, 5], dtype=torch.float64)
    graph = torch.tensor([0, 0, 0, 1, 1, 2])
    change = torch.tensor([2.0, 4, 5], dtype=torch.float64)
    found = _completed(shares, torch.ones_like(shares), graph, change)
    want = torch.tensor([2.0, 0, 0, 2, 2, 5], dtype=torch.float64)
    torch.testing.assert_close(found, want, atol=1e-6, rtol=0)
