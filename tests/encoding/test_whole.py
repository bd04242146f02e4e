"""What a model is told of whole graphs: learnt from the training part alone."""

import torch

from lookhops.datasets import load
from lookhops.encoding.whole import LIMIT, WholeEncoding, WholeGraphs


def test_nothing_is_learnt_outside_the_training_part(tasks):
    train = torch.arange(0, 40)
    one = WholeEncoding.fit(WholeGraphs.of(tasks, 2, True), train)
    other = WholeEncoding.fit(WholeGraphs.of(tasks[:40], 2, True))
    assert torch.equal(one.vocabulary.codes, other.vocabulary.codes)
    torch.testing.assert_close(one.mean, other.mean)
    torch.testing.assert_close(one.factor, other.factor)


def test_a_graph_is_told_the_same_alone_and_among_others(tasks):
    encoding = WholeEncoding.fit(WholeGraphs.of(tasks, 2, True), torch.arange(0, 40))
    together = encoding.columns(WholeGraphs.of(tasks, 2, True))
    for number in (0, 41, 79):
        alone = encoding.columns(WholeGraphs.of(tasks[number], 2, True))
        start, end = together.rows.offsets[number : number + 2]
        assert sorted(alone.rows.indices.tolist()) == sorted(
            together.rows.indices[start:end].tolist()
        )
        torch.testing.assert_close(alone.totals[0], together.totals[number])


def test_totals_are_standardised_and_rare_ones_left_out():
    graphs = load("solubility")
    whole = WholeGraphs.of(graphs, None, True)
    train = torch.arange(0, 1000)
    encoding = WholeEncoding.fit(whole, train)
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
    encoding = WholeEncoding.fit(WholeGraphs.of(tasks, 3, True))
    again = WholeEncoding.from_tensors(encoding.tensors())
    assert again.sizes == encoding.sizes
    assert torch.equal(again.vocabulary.codes, encoding.vocabulary.codes)
    assert torch.equal(again.factor, encoding.factor)
    assert WholeEncoding.from_tensors({}).sizes == {"num_neighbourhoods": 0, "num_totals": 0}
