"""Ranking by counting against ranking by sorting."""

import pytest
import torch

from lookhops.nn.level import Level, keep_top


@pytest.mark.parametrize("ratio", [0.1, 0.5, 0.6, 0.7, 0.9, 1.0])
@pytest.mark.parametrize("masked", [True, False])
@pytest.mark.parametrize("ties", [True, False])
def test_the_same_nodes_stay(ratio, masked, ties):
    torch.manual_seed(0)
    sizes = torch.tensor([5, 0, 1, 10, 700, 5748, 20])
    graph = torch.repeat_interleave(torch.arange(len(sizes)), sizes)
    score = torch.rand(len(graph))
    if ties:
        score = (score * 4).round()
    alive = torch.rand(len(graph)) < 0.8 if masked else None

    def kept(device):
        where = None if alive is None else alive.to(device)
        level = Level(score[:, None].to(device), None, graph.to(device), len(sizes), where)
        return keep_top(level, score.to(device), ratio).cpu()

    assert torch.equal(kept("cuda"), kept("cpu"))
