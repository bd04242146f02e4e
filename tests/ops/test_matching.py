"""The matching by rounds is the greedy one, edge by edge; near-ties among circles of edges."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lookhops.ops.contraction import match_tensors
from lookhops.ops.ranking import nearness

DTYPES = {"single": torch.float32, "double": torch.float64}


@pytest.mark.parametrize("dtype", DTYPES.values(), ids=DTYPES)
@given(st.integers(1, 12), st.integers(0, 60), st.sampled_from([0.0, 1e4]), st.integers(0, 2**16))
def test_rounds_take_what_one_edge_after_the_other_takes(dtype, nodes, edges, step, seed):
    rng = torch.Generator().manual_seed(seed)
    ends = torch.randint(0, nodes, (2, edges), generator=rng)  # loops and parallel edges among them
    steps = torch.randint(0, 6, (edges,), generator=rng)
    score = (1 + step * nearness(dtype) * steps.double()).to(dtype)  # equal, or far apart
    score[torch.rand(edges, generator=rng) < 0.05] = torch.inf
    order = torch.randperm(edges, generator=rng)
    used, expected = set(), []
    for edge in sorted(range(edges), key=lambda e: (-score[e].item(), order[e].item())):
        if not used & {*ends[:, edge].tolist()}:
            used |= {*ends[:, edge].tolist()}
            expected.append(edge)
    found = match_tensors(score, order, *ends, nodes, nearness(dtype))
    assert sorted(found.tolist()) == sorted(expected)


@given(st.integers(2, 9), st.sampled_from([0.4, 0.7, 1.0, 1e4]), st.integers(0, 2**16))
def test_graphs_are_matched_together_as_they_are_alone(nodes, step, seed):
    """Circles among them in which no edge is the best at both ends."""
    rng, near = torch.Generator().manual_seed(seed), nearness(torch.float32)
    circle = torch.stack((torch.arange(nodes), torch.arange(nodes).roll(-1)))
    ends = torch.cat((circle, torch.randint(nodes, 2 * nodes, (2, nodes), generator=rng)), 1)
    score = 1 + step * near * torch.randint(0, 6, (2 * nodes,), generator=rng)
    order = torch.randperm(2 * nodes, generator=rng)
    together = match_tensors(score, order, *ends, 2 * nodes, near).tolist()
    alone = []
    for part in (slice(nodes), slice(nodes, None)):
        own = score[part], order[part], *ends[:, part]
        alone += (match_tensors(*own, 2 * nodes, near) + (part.start or 0)).tolist()
    assert sorted(together) == sorted(alone)
