"""What a member learnt to be told: from its training part alone, saved and read again."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from lookhops import Graphs
from lookhops.core.options import RECOMMENDED, Architecture
from lookhops.encoding import Encoding, ReadOtherwise
from lookhops.encoding.preprocessing import PreparedGraphs, Preprocessing

BLANK = float("nan")
WHOLE = Architecture(fingerprint=1, totals=True, scale="standard", bins=3)


@pytest.fixture(scope="module")
def numbers(tasks: Graphs) -> Graphs:
    """Hop tasks with two numbers at the nodes, one of them sometimes blank, and one at edges."""
    rng = np.random.default_rng(0)
    drawn = torch.from_numpy(rng.normal((0, 100), (1, 50), (tasks.num_nodes, 2))).float()
    drawn[::7, 1] = BLANK
    weights = torch.from_numpy(rng.normal(5, 2, (tasks.num_edges, 1))).float()
    return replace(
        tasks,
        nodes=replace(tasks.nodes, numbers=drawn, number_names=("age", "size")),
        edges=replace(tasks.edges, numbers=weights, number_names=("weight",)),
    )


def learnt_from(graphs: Graphs, train: torch.Tensor | None = None) -> Preprocessing:
    return Preprocessing.fit(PreparedGraphs.of(graphs, WHOLE, Encoding.fit(graphs)), WHOLE, train)


def test_nothing_is_learnt_outside_the_training_part(numbers):
    one, other = learnt_from(numbers, torch.arange(40)), learnt_from(numbers[:40])
    assert one.tensors().keys() == other.tensors().keys()
    for key, value in one.tensors().items():
        assert torch.equal(value, other.tensors()[key]), key


def test_what_is_kept_is_read_back(numbers):
    preprocessing = learnt_from(numbers)
    again = Preprocessing.from_tensors(preprocessing.tensors())
    assert again.tensors().keys() == preprocessing.tensors().keys()
    assert torch.equal(
        again.scales.nodes(numbers.nodes.numbers), preprocessing.scales.nodes(numbers.nodes.numbers)
    )
    assert torch.equal(again.bins(numbers.nodes.numbers), preprocessing.bins(numbers.nodes.numbers))
    assert Preprocessing.from_tensors({}).scales.nodes is None


def test_blanks_are_told_as_the_mean_and_by_a_column_that_says_so(numbers):
    encoding, preprocessing = Encoding.fit(numbers), learnt_from(numbers)
    assert encoding.nodes.blanks == ("size",)
    assert encoding.width == 2 + 1 + 4
    told = encoding.encode_nodes(numbers, scale=preprocessing.scales.nodes)
    blank = numbers.nodes.numbers[:, 1].isnan()
    assert torch.equal(told[:, 2], blank.float())
    assert told[blank, 1].abs().max() < 1e-6
    assert torch.equal(told[:, 3:], numbers.x[:, 2:])
    known = told[~blank, 1]
    torch.testing.assert_close(known.mean(), torch.tensor(0.0), atol=1e-5, rtol=0)
    torch.testing.assert_close(known.std(correction=0), torch.tensor(1.0))


def test_a_blank_where_training_had_none_is_said(numbers):
    full = replace(
        numbers, nodes=replace(numbers.nodes, numbers=numbers.nodes.numbers.nan_to_num(0.0))
    )
    encoding = Encoding.fit(full)
    with pytest.warns(ReadOtherwise, match=r"204 nodes.*'size'"):
        read = encoding.read(numbers)
    told = encoding.encode_nodes(read, scale=learnt_from(full).scales.nodes)
    assert told.shape[1] == encoding.width == 6
    assert told.isfinite().all()


def test_totals_leave_blanks_out(numbers):
    nobody = numbers.nodes.numbers.clone()
    nobody[numbers.batch == 3, 1] = BLANK
    graphs = replace(numbers, nodes=replace(numbers.nodes, numbers=nobody))
    whole = PreparedGraphs.of(graphs, WHOLE, Encoding.fit(graphs))
    assert int(whole.totals.isnan().sum()) == 1
    own = graphs.nodes.numbers[graphs.batch == 5, 1].double()
    column = int(whole.totals.isnan().any(0).nonzero())
    torch.testing.assert_close(whole.totals[5, column], own.nanmean())
    told = learnt_from(graphs).columns(whole).totals
    assert told.isfinite().all()
    assert told[3, column] == 0


def test_bins_tell_numbers_apart_in_neighbourhoods(numbers):
    whole = PreparedGraphs.of(numbers, WHOLE, Encoding.fit(numbers))
    preprocessing = learnt_from(numbers)
    codes = whole.codes_with(preprocessing.bins)
    rows = torch.cat((numbers.nodes.labels.long(), preprocessing.bins(numbers.nodes.numbers)), 1)
    assert codes[:, 0].unique().numel() > whole.codes[:, 0].unique().numel()
    assert len(preprocessing.vocabulary) > 0
    assert rows.unique(dim=0).shape[0] <= 4 * 3 * 4


def test_without_numbers_nothing_depends_on_scale_or_bins(tasks):
    plain = replace(RECOMMENDED, scale="none", bins=0)
    other = replace(RECOMMENDED, scale="quantiles", bins=4)
    whole = PreparedGraphs.of(tasks, plain, Encoding.fit(tasks))
    one, two = (Preprocessing.fit(whole, kind).tensors() for kind in (plain, other))
    assert one.keys() == two.keys()
    assert all(torch.equal(value, two[key]) for key, value in one.items())
