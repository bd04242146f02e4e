"""What a model is told of edges: weights, numbers and labels; what `ignore` leaves out."""

from dataclasses import replace

import pytest
import torch

from lookhops import Graphs, LookHopsError
from lookhops.encoding import Encoding
from lookhops.encoding.whole import WholeGraphs
from lookhops.nn import Architecture

WHOLE = Architecture(fingerprint=2, totals=True)


def roads(length: list[float], weight: list[float], kinds: list[str]) -> Graphs:
    """A triangle whose edges have a length, a weight and a kind."""
    known = sorted(set(kinds))
    return Graphs.from_edges(
        torch.tensor([0, 1, 2]),
        torch.tensor([1, 2, 0]),
        torch.tensor([3]),
        edge_attributes=torch.tensor([weight, length]).t(),
        edge_attribute_names=("weight", "length"),
        edge_labels=torch.tensor([[known.index(kind)] for kind in kinds]),
        edge_label_names=("kind",),
        edge_label_values=[known],
        name="roads",
    )


GRAPHS = roads([0.5, 1.5, 2.5], [1.0, 2.0, 3.0], ["street", "lane", "street"])


def test_the_weight_is_no_feature():
    encoding = Encoding.fit(GRAPHS)
    assert encoding.sizes == {"num_edge_numbers": 1, "num_edge_labels": 2}
    order = GRAPHS.edge_attributes[:, 0].long() - 1  # edges stand by their targets
    lengths = torch.tensor([0.5, 1.5, 2.5])[order]
    street = torch.tensor([1.0, 0.0, 1.0])[order]
    expected = torch.stack((lengths, 1 - street, street), 1)
    assert torch.equal(encoding.edge_columns(GRAPHS), expected)
    some = torch.tensor([2, 0])
    assert torch.equal(encoding.edge_columns(GRAPHS, some), expected[some])
    assert torch.equal(encoding.edge_weight(GRAPHS, some), GRAPHS.edge_attributes[some, 0])
    bare = GRAPHS.without_edge_features()
    assert Encoding.fit(bare).edge_weight(bare) is None
    assert Encoding.fit(GRAPHS, edges=False).sizes == Encoding.fit(bare).sizes
    assert bare.num_edge_features == 0


def test_kinds_that_were_not_seen_are_told_as_none():
    encoding = Encoding.fit(GRAPHS)
    other = roads([1.0, 1.0, 1.0], [1.0, 1.0, 1.0], ["track", "lane", "track"])
    with pytest.warns(UserWarning, match="2 edges with a 'kind' that the model has not seen"):
        read = encoding.read(other)
    found = encoding.edge_columns(read)
    assert found.shape == (3, 3)
    assert sorted(found[:, 1:].sum(1).tolist()) == [0.0, 0.0, 1.0]


def test_weights_below_zero_are_refused_where_they_are_used():
    graphs = roads([1.0, 1.0, 1.0], [1.0, -2.0, 1.0], ["lane", "lane", "lane"])
    with pytest.raises(LookHopsError, match="roads: an edge has the weight -2; a weight is"):
        WholeGraphs.of(graphs, replace(WHOLE, edges="use"), Encoding.fit(graphs))
    WholeGraphs.of(graphs, WHOLE, Encoding.fit(graphs))
    WholeGraphs.of(graphs, replace(WHOLE, edges="ignore"), Encoding.fit(graphs, edges=False))


def test_fingerprint_and_totals_honour_the_option():
    """Used unless they are ignored; ignored, they are those of graphs without edge features."""
    bare = GRAPHS.without_edge_features()
    plain = WholeGraphs.of(bare, WHOLE, Encoding.fit(bare))
    for edges in (None, "use", "ignore"):
        architecture = replace(WHOLE, edges=edges)
        encoding = Encoding.fit(GRAPHS, architecture.reads_edges)
        found = WholeGraphs.of(GRAPHS, architecture, encoding)
        ignored = edges == "ignore"
        assert torch.equal(found.codes, plain.codes) == ignored
        assert (found.totals.shape == plain.totals.shape) == ignored
    assert not Architecture().reads_edges
    assert Architecture(edges="use").reads_edges
    assert not replace(WHOLE, edges="ignore").reads_edges
