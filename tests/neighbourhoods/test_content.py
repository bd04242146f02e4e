"""Hashes of whole graphs: the numbering of nodes does not matter, everything else does."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from lookhops import Graphs
from lookhops.graphs.features import Features
from lookhops.neighbourhoods import content_hashes
from lookhops.sources.molecules import from_smiles
from strategies import graph_sets


def renumbered(graphs: Graphs, seed: int) -> Graphs:
    """Each graph by itself, its nodes in another order."""
    parts = []
    for graph in graphs:
        order = torch.randperm(graph.num_nodes, generator=torch.Generator().manual_seed(seed))
        new = torch.empty_like(order)
        new[order] = torch.arange(len(order))
        ends = new[graph.source.long()], new[graph.target.long()]
        features = {"nodes": graph.nodes.take(order), "edges": graph.edges}
        parts.append(Graphs.from_edges(*ends, graph.nodes_per_graph, **features))
    return parts


@given(graph_sets(min_graphs=1), st.integers(0, 1000))
def test_the_numbering_does_not_matter(graphs, seed):
    expected = content_hashes(graphs).tolist()
    assert [content_hashes(one).item() for one in renumbered(graphs, seed)] == expected


def test_one_molecule_however_it_is_written():
    hashes = content_hashes(from_smiles(["CCO", "OCC", "C(O)C", "COC", "CCN", "CC=O"]))
    assert len(set(hashes[:3].tolist())) == 1
    assert len(set(hashes.tolist())) == 4


@given(graph_sets(min_graphs=1))
def test_every_feature_counts(graphs):
    hashes = content_hashes(graphs)
    for owner in ("nodes", "edges"):
        for name, values in graphs.features[owner].tensors.items():
            if values.numel():
                changed = values.clone()
                changed[0] += 1
                other = graphs.with_tensors({f"{owner}.{name}": changed})
                assert not torch.equal(content_hashes(other), hashes)


def test_the_two_zeros_are_one():
    ends, one = torch.zeros(0, dtype=torch.long), torch.tensor([1])
    zeros = [
        Graphs.from_edges(ends, ends, one, nodes=Features(numbers=torch.tensor([[z]])))
        for z in (0.0, -0.0)
    ]
    assert content_hashes(zeros[0]) == content_hashes(zeros[1])
