"""What is computed of large sets block by block, or from a choice of graphs, is the same."""

import torch
from hypothesis import given

from lookhops.neighbourhoods import SimilarityIndex, content, content_hashes
from strategies import graph_sets


@given(graph_sets(min_graphs=2))
def test_hashes_block_by_block(graphs):
    whole = content_hashes(graphs)
    before, content.AT_ONCE = content.AT_ONCE, 9
    try:
        assert torch.equal(content_hashes(graphs), whole)
    finally:
        content.AT_ONCE = before


@given(graph_sets(min_graphs=2))
def test_an_index_of_a_choice(graphs):
    chosen = torch.arange(0, len(graphs), 2)
    found, want = SimilarityIndex.of(graphs, chosen), SimilarityIndex.of(graphs.select(chosen))
    assert torch.equal(found.codes, want.codes)
    assert torch.equal(found.offsets, want.offsets)
