"""What a model is told of whole graphs: learnt from the training part alone."""

from dataclasses import replace

import pytest
import torch

from lookhops import Graphs
from lookhops.core.options import Architecture
from lookhops.encoding import Encoding, ReadOtherwise
from lookhops.encoding.preprocessing import LIMIT, PreparedGraphs, Preprocessing
from lookhops.neighbourhoods.totals import DEGREES
from lookhops.sources.loading import load

PLAIN = Architecture()


def whole_of(graphs: Graphs, hops: int | None) -> PreparedGraphs:
    return PreparedGraphs.of(
        graphs, Architecture(fingerprint=hops, totals=True), Encoding.fit(graphs)
    )


def test_nothing_is_learnt_outside_the_training_part(tasks):
    train = torch.arange(0, 40)
    one = Preprocessing.fit(whole_of(tasks, 2), PLAIN, train)
    other = Preprocessing.fit(whole_of(tasks[:40], 2), PLAIN)
    assert torch.equal(one.vocabulary.codes, other.vocabulary.codes)
    torch.testing.assert_close(one.mean, other.mean)
    torch.testing.assert_close(one.factor, other.factor)


def test_a_graph_is_told_the_same_alone_and_among_others(tasks):
    encoding = Preprocessing.fit(whole_of(tasks, 2), PLAIN, torch.arange(0, 40))
    together = encoding.columns(whole_of(tasks, 2))
    for number in (0, 41, 79):
        alone = encoding.columns(whole_of(tasks[number], 2))
        start, end = together.rows.offsets[number : number + 2]
        assert sorted(alone.rows.indices.tolist()) == sorted(
            together.rows.indices[start:end].tolist()
        )
        torch.testing.assert_close(alone.totals[0], together.totals[number])


def test_totals_are_standardised_and_rare_ones_left_out():
    graphs = load("solubility")
    whole = whole_of(graphs, None)
    train = torch.arange(0, 1000)
    encoding = Preprocessing.fit(whole, PLAIN, train)
    told = encoding.columns(whole).totals[train].double()
    used = encoding.factor > 0
    plain = (whole.totals[train] - whole.totals[train].mean(0)) / whole.totals[train].std(
        0, correction=0
    )
    torch.testing.assert_close(
        told[:, used], plain[:, used].clamp(-LIMIT, LIMIT), rtol=1e-5, atol=1e-5
    )
    assert (told[:, ~used] == 0).all()
    seldom = (whole.totals[train] != whole.totals[train].median(0).values).sum(0) < 20
    assert seldom.any()
    assert not (used & seldom).any()


def test_what_is_kept_is_read_back(tasks):
    encoding = Preprocessing.fit(whole_of(tasks, 3), PLAIN)
    again = Preprocessing.from_tensors(encoding.tensors())
    assert again.num_neighbourhoods == encoding.num_neighbourhoods
    assert again.num_totals == encoding.num_totals
    assert torch.equal(again.vocabulary.codes, encoding.vocabulary.codes)
    assert torch.equal(again.factor, encoding.factor)
    nothing = Preprocessing.from_tensors({})
    assert (nothing.num_neighbourhoods, nothing.num_totals) == (0, 0)


def test_a_label_that_was_not_seen_is_in_no_total_and_no_known_neighbourhood(tasks):
    encoding, learnt = Encoding.fit(tasks), Preprocessing.fit(whole_of(tasks, 2), PLAIN)
    values = ("plain", "marked", "red", "green")  # blue is green here
    strange = replace(tasks, nodes=replace(tasks.nodes, label_values=(values,)))
    with pytest.warns(ReadOtherwise, match="green"):
        read = encoding.read(strange)
    whole = PreparedGraphs.of(read, Architecture(fingerprint=2, totals=True), encoding)
    plain = whole_of(tasks, 2)
    blue = tasks.nodes.labels.flatten() == 3
    assert not torch.equal(whole.codes[blue], plain.codes[blue])
    assert torch.equal(whole.codes[~blue, 0], plain.codes[~blue, 0])
    told, expected = learnt.columns(whole), learnt.columns(plain)
    assert told.totals.shape == expected.totals.shape
    assert told.rows.indices.numel() < expected.rows.indices.numel()
    assert whole.totals[:, 2 + 2 * DEGREES + 3].eq(0).all()  # counts of blue
