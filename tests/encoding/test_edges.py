"""What a model is told of edges: weights, numbers and labels; what `ignore` leaves out."""

import json
from dataclasses import replace
from math import isfinite

import pytest
import torch

from lookhops import Graphs, LookHopsError
from lookhops.core.options import Architecture, Protocol
from lookhops.encoding import Encoding, ReadOtherwise
from lookhops.encoding.preprocessing import PreparedGraphs, Preprocessing
from lookhops.graphs.features import Features
from lookhops.graphs.indexing import pair_keys
from lookhops.training.trainer import train

WHOLE = Architecture(fingerprint=2, totals=True)


def roads(length: list[float], weight: list[float], kinds: list[str]) -> Graphs:
    """A triangle whose edges have a length, a weight and a kind."""
    known = sorted(set(kinds))
    return Graphs.from_edges(
        torch.tensor([0, 1, 2]),
        torch.tensor([1, 2, 0]),
        torch.tensor([3]),
        edges=Features(
            numbers=torch.tensor([weight, length]).t(),
            number_names=("weight", "length"),
            labels=torch.tensor([[known.index(kind)] for kind in kinds]),
            label_names=("kind",),
            label_values=[known],
        ),
        name="roads",
    )


GRAPHS = roads([0.5, 1.5, 2.5], [1.0, 2.0, 3.0], ["street", "lane", "street"])


def test_the_weight_is_no_feature():
    encoding = Encoding.fit(GRAPHS)
    assert (encoding.sizes["num_edge_numbers"], encoding.sizes["num_edge_labels"]) == (1, 2)
    order = GRAPHS.edges.numbers[:, 0].long() - 1  # edges stand by their targets
    lengths = torch.tensor([0.5, 1.5, 2.5])[order]
    street = torch.tensor([1.0, 0.0, 1.0])[order]
    expected = torch.stack((lengths, 1 - street, street), 1)
    assert torch.equal(encoding.edges.encode(GRAPHS.edges), expected)
    some = torch.tensor([2, 0])
    assert torch.equal(encoding.edges.encode(GRAPHS.edges, some), expected[some])
    assert torch.equal(encoding.edges.weights(GRAPHS.edges, some), GRAPHS.edges.numbers[some, 0])
    bare = GRAPHS.without_edge_features()
    assert Encoding.fit(bare).edges.weights(bare.edges) is None
    assert Encoding.fit(GRAPHS, edges=False).sizes == Encoding.fit(bare).sizes
    assert bare.num_edge_features == 0


def test_kinds_that_were_not_seen_are_told_as_none():
    encoding = Encoding.fit(GRAPHS)
    other = roads([1.0, 1.0, 1.0], [1.0, 1.0, 1.0], ["track", "lane", "track"])
    with pytest.warns(UserWarning, match=r"2 edges.*'kind'"):
        read = encoding.read(other)
    found = encoding.edges.encode(read.edges)
    assert found.shape == (3, 3)
    assert sorted(found[:, 1:].sum(1).tolist()) == [0.0, 0.0, 1.0]


def test_weights_below_zero_are_refused_where_they_are_used():
    graphs = roads([1.0, 1.0, 1.0], [1.0, -2.0, 1.0], ["lane", "lane", "lane"])
    with pytest.raises(LookHopsError, match=r"graph '0'.*-2"):
        PreparedGraphs.of(graphs, replace(WHOLE, edges="use"), Encoding.fit(graphs))
    blank = roads([1.0, 1.0, 1.0], [1.0, float("nan"), 1.0], ["lane", "lane", "lane"])
    with pytest.raises(LookHopsError, match=r"graph '0'.*weight"):
        PreparedGraphs.of(blank, replace(WHOLE, edges="use"), Encoding.fit(blank))
    PreparedGraphs.of(graphs, WHOLE, Encoding.fit(graphs))
    PreparedGraphs.of(graphs, replace(WHOLE, edges="ignore"), Encoding.fit(graphs, edges=False))


def test_fingerprint_and_totals_honour_the_option():
    """Used unless they are ignored; ignored, they are those of graphs without edge features."""
    bare = GRAPHS.without_edge_features()
    plain = PreparedGraphs.of(bare, WHOLE, Encoding.fit(bare))
    for edges in (None, "use", "ignore"):
        architecture = replace(WHOLE, edges=edges)
        encoding = Encoding.fit(GRAPHS, architecture.reads_edges)
        found = PreparedGraphs.of(GRAPHS, architecture, encoding)
        ignored = edges == "ignore"
        assert torch.equal(found.codes, plain.codes) == ignored
        assert (found.totals.shape == plain.totals.shape) == ignored
    assert not Architecture().reads_edges
    assert Architecture(edges="use").reads_edges
    assert not replace(WHOLE, edges="ignore").reads_edges


def test_blanks_are_told_as_the_mean_and_by_a_column_that_says_so():
    blank = float("nan")
    graphs = roads([0.5, blank, 2.5], [1.0, 2.0, 3.0], ["street", "lane", "street"])
    encoding = Encoding.fit(graphs)
    assert encoding.edges.blanks == ("length",)
    assert (encoding.sizes["num_edge_numbers"], encoding.sizes["num_edge_labels"]) == (2, 2)
    architecture = replace(WHOLE, edges="use", scale="standard")
    preprocessing = Preprocessing.fit(
        PreparedGraphs.of(graphs, architecture, encoding), architecture
    )
    told = encoding.edges.encode(graphs.edges, scale=preprocessing.scales.edges)
    order = graphs.edges.numbers[:, 0].long() - 1  # edges stand by their targets
    torch.testing.assert_close(told[:, 0], torch.tensor([-1.0, 0.0, 1.0])[order])
    assert torch.equal(told[:, 1], torch.tensor([0.0, 1.0, 0.0])[order])
    assert torch.equal(told[:, 2:], Encoding.fit(GRAPHS).edges.encode(GRAPHS.edges)[:, 1:])
    assert Encoding.from_dict(json.loads(json.dumps(encoding.to_dict()))) == encoding
    with pytest.warns(ReadOtherwise, match=r"roads: 1 edge.*'length'"):
        Encoding.fit(GRAPHS).read(graphs)


@pytest.mark.parametrize("stacked", [False, True])
def test_a_training_may_have_edges_with_blanks(tasks, stacked):
    length = torch.rand(tasks.num_edges, 1, generator=torch.Generator().manual_seed(0))
    length[::3] = float("nan")
    there = pair_keys(tasks.source, tasks.target, tasks.num_nodes)
    pair = there.minimum(pair_keys(tasks.target, tasks.source, tasks.num_nodes))
    length = length[pair.unique(return_inverse=True)[1]]  # the same in both directions
    graphs = replace(tasks, edges=replace(tasks.edges, numbers=length, number_names=("length",)))
    assert graphs.is_symmetric
    small = Architecture(hidden=8, layers=2, edges="use", scale="standard")
    [run] = train(graphs, small, Protocol((1,), max_epochs=2, batch_size=16), stacked=stacked)
    assert all(isfinite(row["train_loss"] + row["val_loss"]) for row in run.history)
    assert run.weights["edges.inner.weight"].shape[-1] == 2  # the length, and whether it is blank
