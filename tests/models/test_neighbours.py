"""The most similar training graphs and what was measured of them, in every kind of folder."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from lookhops import LookHopsError
from lookhops.core.options import Architecture, Protocol
from lookhops.graphs import Target
from lookhops.models import train_into
from lookhops.models.answers import Predictions, answer_columns
from lookhops.models.predictor import Predictor
from lookhops.sources.loading import load

GOLDEN = Path(__file__).parents[1] / "golden"
NETWORK = Architecture(hidden=4, layers=1)
SHORT = Protocol((11,), max_epochs=1)


def trained(folder, graphs, model=NETWORK):
    train_into(folder, graphs, model, SHORT, device="cpu")
    return Predictor(folder, "cpu")


@pytest.fixture(scope="module")
def molecules():
    return load("solubility", target="value")[:80]


@pytest.mark.parametrize(
    "model", [NETWORK, "gp/hops=1", "blend/hops=1/hidden=4/layers=1", "wl-oa", "mean"]
)
def test_every_learner_has_them(molecules, model, tmp_path):
    predictor = trained(tmp_path, molecules, model)
    found = predictor.neighbours(molecules, 3)
    values = dict(zip(molecules.ids, molecules.y.tolist(), strict=True))
    smiles = dict(zip(molecules.ids, molecules.columns["smiles"], strict=True))
    assert found.ids.shape == (80, 3)
    for row, name in enumerate(molecules.ids):
        for one in found.records(row):
            assert one["target"] == values[one["id"]]
            assert one["smiles"] == smiles[one["id"]]
        assert np.all(np.diff(found.similarity[row]) <= 0)
        assert name not in [said.split()[0] for said in found.said(row, 2, name)]
    answers = predictor.predict(molecules, neighbours=2)
    assert np.array_equal(answers.neighbours.ids, found.ids[:, :2])
    assert np.array_equal(answers.similarity, predictor.predict(molecules).similarity)
    again = Predictions.joined([answers.part(slice(0, 30)), answers.part(slice(30, 80))])
    assert again.record(50) == answers.record(50)


def test_targets_of_every_kind_and_blanks(molecules, tmp_path):
    """Several targets: names of classes, numbers and counts as they were, and blanks."""
    value, rings = molecules.y.clone().double(), molecules.nodes_per_graph.double()
    value[::5] = torch.nan
    kinds = torch.arange(80).remainder(2).double()
    kinds[1::4] = torch.nan
    targets = Target("logS"), Target("polar", ("no", "yes")), Target("size", kind="counts")
    several = replace(molecules, y=torch.stack((value, kinds, rings), 1), targets=targets)
    found = trained(tmp_path, several).neighbours(several, 80)
    row = dict(zip(several.ids, range(80), strict=True))
    assert found.count < 80  # all that it was trained on
    for one in found.records(0):
        number = row[one["id"]]
        own = one["targets"]
        assert own["size"] == float(rings[number])
        assert own["polar"] == (None if number % 4 == 1 else ["no", "yes"][number % 2])
        assert own["logS"] == (None if number % 5 == 0 else float(value[number]))
    answers = Predictor(tmp_path, "cpu").predict(several, neighbours=2)
    for as_text, blank in ((True, ""), (False, None)):
        names, columns = answer_columns([], [()] * 80, several, answers, 0.9, as_text)
        table = dict(zip(names, columns, strict=True))
        number = [row[name] for name in table["neighbour_2"]]
        for at, value_at in enumerate(table["neighbour_2_target_logS"]):
            if number[at] % 5 == 0:
                assert value_at == blank or np.isnan(value_at)
            else:
                assert float(value_at) == pytest.approx(float(value[number[at]]), rel=1e-5)
        assert set(table["neighbour_1_target_polar"]) <= {"", "no", "yes"}


def test_an_older_folder_says_that_it_has_none(molecules):
    predictor = Predictor(GOLDEN / "number" / "model", "cpu")
    assert not predictor.knows_neighbours
    for ask in (predictor.neighbours, lambda g: predictor.predict(g, neighbours=1)):
        with pytest.raises(LookHopsError, match="number"):
            ask(molecules)


@pytest.mark.parametrize("count", [-1, 101])
def test_a_bad_count_is_refused(molecules, count, tmp_path):
    predictor = trained(tmp_path, molecules)
    with pytest.raises(LookHopsError, match=str(count)):
        predictor.predict(molecules, neighbours=count)
