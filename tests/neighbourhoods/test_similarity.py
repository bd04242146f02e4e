"""The most similar graph of a set, against a naive count."""

from collections import Counter

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lookhops.graphs import Graphs
from lookhops.neighbourhoods import SimilarityIndex, identities, similarity, unary_codes
from lookhops.sources.loading import load
from strategies import graph_sets


def naive(graphs: Graphs, others: Graphs) -> list[list[float]]:
    """Tanimoto's similarity to each of the others, from counts in dictionaries."""

    def counts(of: Graphs) -> list[Counter]:
        return [Counter(identities(one, 2).flatten().tolist()) for one in of]

    def tanimoto(a: Counter, b: Counter) -> float:
        return (a & b).total() / max((a | b).total(), 1)

    return [[tanimoto(a, b) for b in counts(others)] for a in counts(graphs)]


@given(graph_sets(min_graphs=2), st.integers(1, 4))
def test_the_nearest_is_that_of_a_naive_count(graphs, part):
    others = graphs[: min(part, len(graphs) - 1)]
    index = SimilarityIndex.of(others)
    every = naive(graphs, others)
    assert index.nearest(graphs) == pytest.approx([max(own) for own in every], abs=1e-6)
    found, number = index.most_similar(graphs, 3)
    for own, alike, which in zip(every, found, number, strict=True):
        order = sorted(range(len(own)), key=lambda i: (-np.float32(own[i]), i))[:3]
        assert which.tolist() == order
        assert alike == pytest.approx([own[i] for i in order], abs=1e-6)
    further = unary_codes(graphs, identities(graphs, 4))
    assert np.array_equal(index.nearest(graphs, further), index.nearest(graphs))


def test_a_graph_of_the_set_is_its_own_nearest(monkeypatch):
    graphs = load("solubility")[:60]
    index = SimilarityIndex.of(graphs[:40])
    found = index.nearest(graphs)
    assert (found[:40] == 1).all()
    assert (found[40:] < 1).any()
    for name in ("CHUNK", "CPU_CHUNK"):
        monkeypatch.setattr(similarity, name, 100)  # a few graphs at a time
    alike, number = index.most_similar(graphs, 5)
    assert np.array_equal(alike[:, 0], found)
    assert np.array_equal(index.most_similar(graphs[7:9], 5)[1], number[7:9])
    assert np.array_equal(index.nearest(graphs), found)
    assert index.nearest(graphs[:0]).shape == (0,)
    assert [own.shape for own in index.most_similar(graphs[:0], 2)] == [(0, 2)] * 2


def test_a_large_set_is_sampled(monkeypatch):
    graphs = load("solubility")[:60]
    monkeypatch.setattr(similarity, "MOST_CODES", 600)
    index = SimilarityIndex.of(graphs)
    assert 1 <= len(index) < 60
    assert index.codes.numel() <= 600
    assert np.array_equal(SimilarityIndex.of(graphs).codes, index.codes)


@given(graph_sets(min_graphs=2))
def test_an_index_of_a_choice(graphs):
    chosen = torch.arange(0, len(graphs), 2)
    found, want = SimilarityIndex.of(graphs, chosen), SimilarityIndex.of(graphs.select(chosen))
    assert torch.equal(found.codes, want.codes)
    assert torch.equal(found.offsets, want.offsets)
