"""What is computed of large sets block by block, or from a choice of graphs, is the same."""

import torch
from hypothesis import given

from lookhops.neighbourhoods import SimilarityIndex, content_hashes
from strategies import graph_sets


@given(graph_sets(min_graphs=2))
def test_hashes_block_by_block(graphs):
    assert torch.equal(content_hashes(graphs, at_once=9), content_hashes(graphs))


@given(graph_sets(min_graphs=2))
def test_an_index_of_a_choice(graphs):
    chosen = torch.arange(0, len(graphs), 2)
    found, want = SimilarityIndex.of(graphs, chosen), SimilarityIndex.of(graphs.select(chosen))
    assert torch.equal(found.codes, want.codes)
    assert torch.equal(found.offsets, want.offsets)
