"""Counts in unary, vocabularies, sparse rows and the kernels that they give."""

from collections import Counter
from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lookhops import Graphs, LookHopsError
from lookhops.learners.kernels import GraphRows, Kernels
from lookhops.neighbourhoods import SparseRows, Vocabulary, gram_by_hop, identities, unary_codes
from lookhops.neighbourhoods.counts import pair_codes
from naive_wl import naive_colours
from strategies import graph_sets

HOPS = 2


def naive_counts(graphs: Graphs) -> list[list[Counter]]:
    """For every hop, how often each colour is in each graph."""
    batch = graphs.batch.tolist()
    found = []
    for colours in naive_colours(graphs, HOPS):
        of_graphs = [Counter() for _ in range(len(graphs))]
        for graph, colour in zip(batch, colours, strict=True):
            of_graphs[graph][colour] += 1
        found.append(of_graphs)
    return found


def codes_of(graphs: Graphs, hops: int = HOPS) -> torch.Tensor:
    return unary_codes(graphs, identities(graphs, hops))


@given(graph_sets())
def test_unary_inner_products_are_sums_of_minima(graphs):
    subtree, assignment = (
        gram_by_hop(graphs, HOPS, kind) for kind in ("subtree", "optimal-assignment")
    )
    for hop, counts in enumerate(naive_counts(graphs)):
        for i, a in enumerate(counts):
            for j, b in enumerate(counts):
                assert subtree[hop, i, j] == sum(a[c] * b[c] for c in a)
                assert assignment[hop, i, j] == sum(min(a[c], b[c]) for c in a)


@given(graph_sets(min_graphs=1), st.integers(1, 3), st.data())
def test_a_vocabulary_knows_the_training_part_alone(graphs, min_graphs, data):
    numbers = st.integers(0, len(graphs) - 1)
    train = torch.tensor(data.draw(st.lists(numbers, min_size=1, unique=True)))
    codes = codes_of(graphs)
    vocabulary = Vocabulary.choose(graphs, codes, train, min_graphs)
    inside = [set(codes[graphs.batch == i].flatten().tolist()) for i in train.tolist()]
    frequency = Counter(code for one in inside for code in one)
    assert vocabulary.codes.tolist() == sorted(c for c, f in frequency.items() if f >= min_graphs)
    for code, hop in zip(vocabulary.codes.tolist(), vocabulary.hops.tolist(), strict=True):
        assert code in codes[:, hop].tolist()


@given(graph_sets(min_graphs=1), st.data())
def test_rows_belong_to_their_graphs(graphs, data):
    """Whatever the batch: the rows of a selection are the selected rows."""
    codes = codes_of(graphs)
    vocabulary = Vocabulary.choose(graphs, codes, min_graphs=1)
    rows = vocabulary.rows(graphs, codes)
    dense = rows.to_scipy().toarray()
    for number in range(len(graphs)):
        own = codes[graphs.batch == number].flatten()
        expected = torch.isin(vocabulary.codes, own).numpy()
        assert np.array_equal(dense[number] > 0, expected)
    numbers = st.integers(0, len(graphs) - 1)
    chosen = torch.tensor(data.draw(st.lists(numbers, min_size=1)))
    some = graphs.select(chosen)
    for same in (rows.select(chosen), vocabulary.rows(some, codes_of(some))):
        assert np.array_equal(same.to_scipy().toarray(), dense[chosen.numpy()])


def test_scipys_matrix_has_memory_of_its_own():
    """Adding up what repeats happens in place there."""
    rows = SparseRows(torch.tensor([2, 1, 1, 0]), torch.tensor([0, 3, 4]), 3)
    assert rows.to_scipy().toarray().tolist() == [[0, 2, 1], [1, 0, 0]]
    assert rows.indices.tolist() == [2, 1, 1, 0]
    assert rows.offsets.tolist() == [0, 3, 4]


def test_weights_give_unit_length():
    graphs = Graphs.from_networkx([nx.path_graph(5), nx.cycle_graph(4)])
    ends = torch.tensor([0, 5, 5, 9], dtype=torch.int32)  # the second has no nodes
    graphs = replace(graphs, node_ptr=ends, columns={})
    codes = codes_of(graphs)
    matrix = Vocabulary.choose(graphs, codes, min_graphs=1).rows(graphs, codes).to_scipy(True)
    assert np.allclose((matrix**2).sum(1), [1, 0, 1])


def test_the_largest_vocabulary_keeps_the_commonest_features():
    graphs = Graphs.from_networkx([nx.path_graph(n) for n in (2, 3, 4, 5)])
    codes = codes_of(graphs, 0)
    chosen = Vocabulary.choose(graphs, codes, min_graphs=1, max_features=3)
    # The first two nodes are in all four graphs, the third in three.
    longest = codes[graphs.batch == 3].flatten()
    assert set(chosen.codes.tolist()) == set(longest[:3].tolist())
    assert torch.equal(chosen.codes, chosen.codes.sort().values)
    ties = Vocabulary.choose(graphs, codes, min_graphs=1, max_features=1)
    assert ties.codes.item() == longest[:2].min().item()


def test_names_say_how_far_a_feature_looks():
    graphs = Graphs.from_networkx([nx.path_graph(3)] * 2)
    codes = codes_of(graphs)
    vocabulary = Vocabulary.choose(graphs, codes)
    names = vocabulary.names()
    assert len(set(names)) == len(vocabulary) == 9
    assert sorted(name[:5] for name in names) == ["hop0_"] * 3 + ["hop1_"] * 3 + ["hop2_"] * 3


def test_what_cannot_be_is_refused():
    graphs = Graphs.from_networkx([nx.path_graph(3)])
    codes = codes_of(graphs)
    with pytest.raises(LookHopsError, match="min_graphs"):
        Vocabulary.choose(graphs, codes, min_graphs=0)
    with pytest.raises(LookHopsError, match="max_features"):
        Vocabulary.choose(graphs, codes, max_features=0)
    with pytest.raises(LookHopsError, match=r"subtree, optimal-assignment.*'oa'"):
        gram_by_hop(graphs, 1, "oa")


@pytest.mark.data
def test_nci1_has_as_many_features_as_was_counted(data_dir):
    from lookhops.sources.loading import load

    graphs = load("NCI1", data_dir=data_dir, cache=False)
    assert len(Vocabulary.choose(graphs, codes_of(graphs, 5))) == 46_484


@given(
    st.sets(st.integers(-(2**63), 2**63 - 1) | st.integers(-20, 20), min_size=1, max_size=60),
    st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(-20, 20), max_size=20),
)
def test_places_are_those_of_a_dictionary(known, others):
    """Also where many codes begin alike, which hashes do not."""
    codes = torch.tensor(sorted(known))
    want = {code: place for place, code in enumerate(codes.tolist())}
    asked = [*known, *others]
    vocabulary = Vocabulary(codes, torch.zeros_like(codes))
    place, there = vocabulary.places(torch.tensor(asked).view(-1, 1))
    assert there.flatten().tolist() == [code in want for code in asked]
    found = zip(asked, place.flatten().tolist(), there.flatten().tolist(), strict=True)
    assert all(at == want[code] for code, at, known_here in found if known_here)


# -------------------------------------------------------------------- pairs of nodes

MOST = 3


def pairs_of(graphs, number):
    """How often a graph has two labels so many hops apart."""
    start, stop = graphs.node_ptr[number].item(), graphs.node_ptr[number + 1].item()
    label = identities(graphs, 0)[:, 0].tolist()
    joined = nx.Graph(zip(graphs.source.tolist(), graphs.target.tolist(), strict=True))
    joined.add_nodes_from(range(start, stop))
    found = Counter()
    for i in range(start, stop):
        for j, distance in nx.single_source_shortest_path_length(joined, i, MOST).items():
            if i < j:
                found[tuple(sorted((label[i], label[j]))), distance] += 1
    return found


@settings(max_examples=40, deadline=None)
@given(graph_sets(min_graphs=1))
def test_pairs_are_counted_and_compared_as_their_definition_says(graphs):
    counts = [pairs_of(graphs, number) for number in range(len(graphs))]
    _, ptr = pair_codes(graphs, identities(graphs, 0)[:, 0], MOST)
    assert ptr.diff().tolist() == [sum(own.values()) for own in counts]
    rows = GraphRows.of(graphs, 1, {}, pairs=MOST)
    kernels = Kernels(rows, {})
    assert kernels.names[-1] == "pairs"
    expected = np.ones((len(graphs), len(graphs)))
    for a, first in enumerate(counts):
        for b, second in enumerate(counts):
            if either := (first | second).total():
                expected[a, b] = (first & second).total() / either
    np.testing.assert_allclose(kernels.full(rows)[-1].numpy(), expected, atol=1e-12)
    index = torch.arange(len(graphs)).flip(0)
    np.testing.assert_allclose(
        kernels.full(rows.select(index))[-1].numpy(), expected[::-1], atol=1e-12
    )
