"""What a model keeps of the graphs that it has seen."""

import numpy as np
import pytest

from lookhops.core.errors import LookHopsError
from lookhops.core.options import Architecture, Protocol
from lookhops.models import train_into
from lookhops.models.predictor import Predictor
from lookhops.models.reference import Reference
from lookhops.sources.loading import load
from lookhops.sources.splits import split
from lookhops.tasks import task_of


@pytest.fixture(scope="module")
def graphs():
    return load("solubility")[:200]


@pytest.fixture(scope="module")
def reference(graphs):
    values = [np.random.default_rng(0).random((20, 2))]
    return Reference.of(graphs, task_of(graphs), [split(graphs, 11)], {11: values})


def test_graphs_are_found_in_their_part(graphs, reference):
    parts = reference.part_of(graphs)
    own = split(graphs, 11)
    assert (parts[own.train] == "train").all()
    # A molecule may stand in the table twice.
    assert set(parts[own.val]) <= {"val", "train"}
    assert (parts[own.test] == "").mean() > 0.9


def test_the_limit_is_learnt_from_the_validation_part(graphs, reference):
    own = split(graphs, 11)
    near = reference.index.nearest(graphs.select(own.val))
    assert (near >= reference.limit).all()
    assert near.min() == pytest.approx(reference.limit)  # of twenty graphs the lowest


def test_it_comes_back_from_its_tensors(graphs, reference):
    again = Reference.from_tensors(reference.tensors, task_of(graphs), [11])
    assert again.limit == reference.limit
    assert np.array_equal(again.index.nearest(graphs), reference.index.nearest(graphs))
    assert np.array_equal(again.part_of(graphs), reference.part_of(graphs))
    for one, two in zip(again.scores_of(11), reference.scores_of(11), strict=True):
        assert np.array_equal(one, two)


def test_classes_that_the_task_has_not_are_refused(graphs, reference):
    wrong = {**reference.tensors, "targets": reference.tensors["targets"] + 3}
    with pytest.raises(LookHopsError, match="targets"):
        Reference.from_tensors(wrong, task_of(graphs), [11])


@pytest.mark.parametrize("edges", ["use", "ignore", None])
def test_training_graphs_are_like_themselves(edges, tmp_path):
    graphs = load("transfers")[:40]
    small = Architecture(hidden=4, layers=1, edges=edges)
    train_into(tmp_path, graphs, small, Protocol((1,), max_epochs=1), device="cpu")
    own = split(graphs, 1).train
    similarity = Predictor(tmp_path, "cpu").predict(graphs[own]).similarity
    assert np.allclose(similarity, 1)
