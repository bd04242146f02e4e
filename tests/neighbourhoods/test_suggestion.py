"""``look`` as a whole: the published numbers, what it refuses, what it returns."""

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from random_sets import random_graphs

import lookhops
from lookhops import Graphs, LookHopsError
from lookhops.graphs.features import Features, default_values
from lookhops.neighbourhoods import Decay, HopInformation
from lookhops.sources.hop_tasks import hop_task
from strategies import graph_sets

# IG(2) to IG(9), computed directly in double precision with SciPy.
GAINS = {
    "PROTEINS": (3.8511, 1.07, 0.3454, 0.1315, 0.0603, 0.0306, 0.0175, 0.01),
    "DD": (7.0547, 1.5698, 0.7453, 0.4308, 0.2739, 0.1748, 0.1135, 0.0741),
    "NCI1": (7.463, 0.9752, 0.4677, 0.1911, 0.1312, 0.0635, 0.0507, 0.024),
    "NCI109": (5.5072, 1.0011, 0.4762, 0.1943, 0.1315, 0.0632, 0.0514, 0.0239),
    "Mutagenicity": (6.51, 0.7811, 0.5091, 0.142, 0.1311, 0.0397, 0.0376, 0.0134),
}
BALL_GAINS = {"PROTEINS": (3.9726, 0.9428, 0.2887, 0.1145, 0.053, 0.0276, 0.0155, 0.0095)}
# The paper's table: a, b, R², MSE.
FITS = {
    "PROTEINS": (46.8505, 1.2501, 0.9995, 0.0007),
    "DD": (107.0625, 1.3622, 0.9915, 0.0422),
    "NCI1": (356.5393, 1.9339, 0.9965, 0.0200),
    "NCI109": (130.8210, 1.5853, 0.9952, 0.0149),
    "Mutagenicity": (335.1961, 1.9743, 0.9943, 0.0246),
}
# How far a and b may be from the paper's. On Mutagenicity the gains above and the paper's a cannot
# both be met: fitting those gains themselves gives an a that is 2.2% above it.
FIT_TOLERANCE = {"Mutagenicity": (0.025, 0.005)}


def close(found: np.ndarray, expected: tuple[float, ...]) -> bool:
    """Within 0.1%, or half a unit of the last decimal given."""
    return bool(np.all(np.abs(found - expected) <= np.maximum(1e-3 * np.array(expected), 5e-5)))


@pytest.mark.data
@pytest.mark.parametrize("name", GAINS)
def test_published_gains_and_fits(name: str, data_dir: Path):
    found = lookhops.look(lookhops.load(name, data_dir=data_dir), bootstrap=0)
    assert close(found.gain, GAINS[name]), found.gain
    a, b, r2, mse = FITS[name]
    a_tolerance, b_tolerance = FIT_TOLERANCE.get(name, (0.005, 0.005))
    assert found.decay.a == pytest.approx(a, rel=a_tolerance)
    assert found.decay.b == pytest.approx(b, rel=b_tolerance)
    assert found.decay.r2 == pytest.approx(r2, abs=2e-4)
    assert found.decay.mse == pytest.approx(mse, abs=2e-4)
    assert found.suggested_k == (3 if name in ("PROTEINS", "DD") else 2)


@pytest.mark.data
def test_ball(data_dir: Path):
    graphs = lookhops.load("PROTEINS", data_dir=data_dir)
    found = lookhops.look(graphs, neighbourhood="ball", bootstrap=0)
    assert close(found.gain, BALL_GAINS["PROTEINS"]), found.gain


@pytest.mark.data
def test_what_the_paper_says_of_proteins(data_dir: Path):
    found = lookhops.look(lookhops.load("PROTEINS", data_dir=data_dir), bootstrap=40)
    assert found.lost(3) == pytest.approx(0.0235, abs=1e-4)
    assert found.sentence().startswith("k = 3 keeps 97.7% of the information; each further hop")
    low, high = found.gain_interval.T
    assert np.all((low < found.gain) & (found.gain < high))
    assert found.b_interval[0] < found.decay.b < found.b_interval[1]
    assert found.suggested_k_interval == (3, 3)


# -------------------------------------------------------------------- what it may and must not see


def test_classes_are_not_looked_at():
    graphs = random_graphs(1)
    shuffled = replace(graphs, y=graphs.y[torch.randperm(len(graphs))])
    assert np.array_equal(
        lookhops.look(graphs, bootstrap=0).gain, lookhops.look(shuffled, bootstrap=0).gain
    )


def test_each_class_on_its_own():
    graphs = random_graphs(2)
    found = lookhops.look(graphs, max_k=4, per_class=True, bootstrap=20)
    assert list(found.per_class) == ["a", "b"]
    assert sum(one.graphs for one in found.per_class.values()) == len(graphs)
    assert sum(one.nodes for one in found.per_class.values()) == graphs.num_nodes
    assert found.per_class["a"].name == "random, class a"
    # The densities of the features are those of all graphs: doubling a class changes both.
    one_class = replace(graphs, y=torch.zeros_like(graphs.y))
    whole = lookhops.look(one_class, max_k=4, per_class=True, bootstrap=20)
    assert list(whole.per_class) == ["a"]
    assert np.array_equal(whole.per_class["a"].gain, found.gain)
    assert np.array_equal(whole.per_class["a"].gain_interval, found.gain_interval)


def test_a_seed_gives_the_same_intervals_again():
    graphs = random_graphs(3, features="all")
    first, again, other = (lookhops.look(graphs, 4, seed=s, bootstrap=30) for s in (1, 1, 2))
    assert np.array_equal(first.gain_interval, again.gain_interval)
    assert not np.array_equal(first.gain_interval, other.gain_interval)


def test_more_graphs_make_narrower_intervals():
    few, many = (lookhops.look(hop_task(2, size), 5, bootstrap=100) for size in (50, 800))
    width = [np.diff(found.gain_interval).mean() for found in (few, many)]
    assert width[1] < width[0] / 2


def test_constant_features_are_left_out_and_counted():
    graphs = random_graphs(4, features="all")
    found = lookhops.look(graphs, 4, bootstrap=0)
    assert found.constant_channels == 3  # an attribute, and two labels that never occur
    assert found.channels.size == graphs.num_features - 3
    assert found.by_channel.shape == (3, found.channels.size)
    assert 2 not in found.channels


def test_one_graph_has_no_intervals():
    found = lookhops.look(random_graphs(5, graphs=1, most_nodes=60).select([0]), 4)
    assert found.gain_interval is None
    assert found.b_interval is None
    assert found.suggested_k_interval is None


def test_isolated_nodes_and_empty_graphs():
    graphs = random_graphs(6)
    nodes = torch.cat((graphs.nodes_per_graph, torch.tensor([0, 3, 0])))
    labels = torch.cat((graphs.nodes.labels, torch.tensor([[0], [1], [2]], dtype=torch.uint8)))
    more = Graphs.from_edges(
        graphs.source.long(),
        graphs.target,
        nodes,
        nodes=Features(labels=labels, label_values=default_values(graphs.nodes.label_sizes)),
    )
    found = lookhops.look(more, 4, bootstrap=20)
    assert np.isfinite(found.gain).all()
    assert np.isfinite(found.gain_interval).all()


@pytest.mark.filterwarnings("error", "ignore:.*their degrees are looked at")
@given(graph_sets())
def test_anything_gives_numbers_or_a_sentence(graphs: Graphs):
    try:
        found = lookhops.look(graphs, 4, bootstrap=20)
    except LookHopsError:
        return
    assert np.isfinite(found.gain).all()
    assert json.loads(json.dumps(found.to_dict(), allow_nan=False))["k"] == [2, 3, 4]
    assert found.sentence()


# -------------------------------------------------------------------- what it refuses


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"max_k": 2}, "max_k"),
        ({"epsilon": 0.0}, "epsilon"),
        ({"epsilon": 5}, "epsilon"),
        ({"neighbourhood": "cube"}, "cube"),
        ({"bootstrap": 3}, "not 3"),
        ({"bootstrap": -1}, "not -1"),
        ({"seed": -1}, "seed"),
        ({"block_size": 0}, "not 0"),
    ],
)
def test_options_that_make_no_sense(options: dict, named: str):
    with pytest.raises(LookHopsError, match=named):
        lookhops.look(random_graphs(7), **options)


def test_features_that_say_nothing():
    """Degrees are looked at in their place; nodes of rings are alike in that too."""
    graphs = random_graphs(8)
    degree = graphs.row_ptr.diff().float()[:, None]
    expected = lookhops.look(replace(graphs, nodes=Features(numbers=degree)), bootstrap=0)
    bare = replace(graphs, nodes=replace(graphs.nodes, labels=None))
    same = replace(graphs.nodes, labels=torch.zeros_like(graphs.nodes.labels))
    for alike in (bare, replace(graphs, nodes=same)):
        with pytest.warns(UserWarning, match="random"):
            found = lookhops.look(alike, bootstrap=0)
        np.testing.assert_array_equal(found.gain, expected.gain)
    ring = Graphs.from_edges(
        torch.tensor([0, 1, 2]), torch.tensor([1, 2, 0]), torch.tensor([3]), name="ring"
    )
    with pytest.raises(LookHopsError, match="ring"):
        lookhops.look(ring)
    with pytest.raises(LookHopsError, match="ring"):
        lookhops.look(replace(ring, nodes=replace(ring.nodes, numbers=torch.ones(3, 1))))
    with pytest.raises(LookHopsError, match="random"):
        lookhops.look(graphs.select([]))


def test_numbers_that_are_none():
    graphs = random_graphs(9, features="attributes")
    blank = graphs.nodes.numbers.clone()
    blank[graphs.node_ptr[3], 1] = math.nan
    filled = blank.clone()
    filled[graphs.node_ptr[3], 1] = blank[:, 1].double().nanmean()
    found, expected = (
        lookhops.look(replace(graphs, nodes=replace(graphs.nodes, numbers=own)), bootstrap=0)
        for own in (blank, filled)
    )
    np.testing.assert_allclose(found.gain, expected.gain)
    blank[graphs.node_ptr[3], 1] = math.inf
    with pytest.raises(LookHopsError, match=r"attribute 1 .*graph 3.*inf"):
        lookhops.look(replace(graphs, nodes=replace(graphs.nodes, numbers=blank)))


def test_neighbourhoods_that_all_agree():
    pairs = Graphs.from_edges(
        torch.tensor([0, 1, 2, 3]),
        torch.tensor([1, 0, 3, 2]),
        torch.tensor([2, 2]),
        nodes=Features(labels=torch.tensor([[0], [1], [1], [1]])),
        name="pairs",
    )
    with pytest.raises(LookHopsError, match=r"pairs.*k = 2"):
        lookhops.look(pairs)


def test_no_walk_that_long():
    # Edges lead from each of five layers to the next: nothing is seen at k = 5 and more.
    rng = np.random.default_rng(0)
    layer = rng.integers(0, 4, 300)
    source, target = 15 * rng.integers(0, 20, 300) + 3 * layer + rng.integers(0, 3, (2, 300))
    graphs = Graphs.from_edges(
        torch.from_numpy(source),
        torch.from_numpy(target + 3),
        torch.full((20,), 15),
        nodes=Features(labels=torch.from_numpy(rng.integers(0, 3, (300, 1)))),
        name="layers",
    )
    with pytest.raises(LookHopsError, match=r"layers.*k = 5.*--max-k 4"):
        lookhops.look(graphs)
    assert np.isfinite(lookhops.look(graphs, max_k=4, bootstrap=0).gain).all()


def test_classes_that_are_not_known():
    with pytest.raises(LookHopsError, match="random"):
        lookhops.look(replace(random_graphs(1), y=None), 4, per_class=True, bootstrap=0)


# -------------------------------------------------------------------- what it returns


@pytest.fixture(scope="module")
def found() -> HopInformation:
    return lookhops.look(hop_task(2, 60), 6, bootstrap=30, per_class=True)


def test_as_a_table(found: HopInformation):
    table = found.to_frame()
    assert list(table.columns) == ["k", "gain", "low", "high", "fitted", "lost", "lost_measured"]
    assert table["k"].tolist() == [2, 3, 4, 5, 6]
    np.testing.assert_allclose(table["lost"], np.exp(-found.decay.b * table["k"]))
    assert replace(found, resampled_gain=found.resampled_gain[:0]).to_frame()["low"].isna().all()


def test_as_json(found: HopInformation):
    told = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert told["gain"] == found.gain.tolist()
    assert told["suggested_k"] == found.suggested_k
    assert told["resamples"] == 30
    assert set(told["per_class"]) == {"different", "same"}


def test_progress_is_told():
    told: list[tuple[str, float]] = []
    lookhops.look(
        random_graphs(1, features="all"), 4, progress=lambda what, share: told.append((what, share))
    )
    assert {what for what, _ in told} == {"neighbourhoods", "densities"}
    assert all(0 < share <= 1 for _, share in told)
    assert told[-1][1] == 1


def test_figures(found: HopInformation, tmp_path: Path):
    for one in (found, replace(found, per_class={})):
        figure = one.plot()
        gains, lost = figure.axes
        assert gains.get_xlabel() == "hops k"
        assert lost.get_xlabel() == "hops k, and what lies beyond"
        figure.savefig(tmp_path / "gains.png")
        assert (tmp_path / "gains.png").stat().st_size > 10_000
        assert len(gains.lines) == 2 * max(1, len(one.per_class))


def test_sentences(found: HopInformation):
    assert "no k can be suggested" in told(found, b=-0.1)
    assert "measure further" in told(found, b=0.3)
    assert told(found, b=1.2501).startswith(
        "k = 3 keeps 97.6% of the information; each further hop adds less: one more 1.7%, "
        "another 0.5%. k = 2 would lose 8.2%, more than the 5.0% allowed."
    )
    assert told(found, b=4.0).startswith("k = 1 keeps 98.2%")
    assert "R² = 0.40" in told(found, b=1.0, r2=0.4)
    sure = replace(found, resampled_b=np.full(30, 1.0), decay=Decay(1, 1.0, 1, 0))
    assert sure.sentence().endswith("Resampling the graphs 30 times gave the same k.")
    unsure = replace(sure, resampled_b=np.linspace(0.5, 1.2, 30))
    assert unsure.sentence().endswith("gave k = 3 to 6 (95% of the resamples).")
    lost = replace(sure, resampled_b=np.linspace(-0.5, 1.2, 30))
    assert lost.suggested_k_interval == (3, None)
    assert lost.sentence().endswith("gave k = 3 to no decay (95% of the resamples).")


def told(found: HopInformation, b: float, r2: float = 1.0) -> str:
    return replace(found, decay=Decay(10.0, b, r2, 0.0)).sentence()
