"""LookHopsClassifier: scikit-learn's conventions, with graphs in place of rows."""

import pickle

import networkx as nx
import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import estimator_checks

from lookhops import Graphs
from lookhops.datasets import load
from lookhops.encoding import ReadOtherwise
from lookhops.errors import LookHopsError
from lookhops.models.estimator import LookHopsClassifier

QUICK = {"hidden": 8, "layers": 2, "max_epochs": 2, "device": "cpu"}


def quick(**changes) -> LookHopsClassifier:
    return LookHopsClassifier(**{**QUICK, **changes})


class OfRows(LookHopsClassifier):
    """A row of numbers is a graph of one node with these features: for scikit-learn's checks."""

    def _rows(self, X, reset):
        from sklearn.utils.validation import validate_data

        rows = validate_data(self, X, reset=reset, dtype=np.float32)
        none = torch.zeros(0, dtype=torch.long)
        ones = torch.ones(len(rows), dtype=torch.long)
        return Graphs.from_edges(none, none, ones, attributes=torch.from_numpy(rows))

    def fit(self, X, y=None):
        if y is None:
            raise ValueError("requires y to be passed, but the target y is None")
        graphs = self._rows(X, reset=True)
        from sklearn.utils import assert_all_finite

        assert_all_finite(np.asarray(y))
        return super().fit(graphs, y)

    def predict_proba(self, X):
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(self)
        return super().predict_proba(self._rows(X, reset=False))

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = True
        tags.input_tags.string = False
        return tags


def rows() -> OfRows:
    network = {"pool": "none", "dropout": 0.0, "hidden": 16, "layers": 2}
    return OfRows(**network, max_epochs=15, learning_rate=0.05, device="cpu")


FLOAT32 = "probabilities of single precision differ in the eighth digit between batches"


@pytest.mark.filterwarnings("ignore")
@estimator_checks.parametrize_with_checks(
    [rows()], expected_failed_checks=lambda _: {"check_methods_subset_invariance": FLOAT32}
)
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)


# -------------------------------------------------------------------- kinds of graphs


def networkx_graphs(names=("red", "blue")):
    """Rings are of class 'ring', paths of class 'path'; colours and a number at the nodes."""
    graphs, y = [], []
    for i in range(24):
        ring = i % 2
        graph = (nx.cycle_graph if ring else nx.path_graph)(4 + i % 5)
        for node in graph:
            graph.nodes[node].update(colour=names[node % 2], size=float(node))
        graphs.append(graph)
        y.append("ring" if ring else "path")
    return graphs, y


def test_networkx_with_text_features_mean_the_same_later():
    graphs, y = networkx_graphs()
    model = quick(max_epochs=60, learning_rate=0.01).fit(graphs, y)
    assert model.n_features_in_ == 3
    assert model.score(graphs, y) == 1
    alone = model.predict_proba(graphs[:1])
    assert np.allclose(alone, model.predict_proba(graphs)[:1], atol=1e-6)
    blue = nx.path_graph(3)
    nx.set_node_attributes(blue, "blue", "colour")
    nx.set_node_attributes(blue, 1.0, "size")
    assert model.predict([blue]).shape == (1,)
    nx.set_node_attributes(blue, "green", "colour")
    with pytest.warns(ReadOtherwise, match=r"3 nodes with a 'colour' .* not seen: green \(3\)"):
        model.predict([blue])
    ring = nx.cycle_graph(3)
    nx.set_node_attributes(ring, "red", "colour")
    with pytest.raises(LookHopsError, match="nodes have no 'size'"):
        model.predict([ring])


def test_all_kinds_of_the_same_graphs_agree(tasks):
    y = tasks.y.numpy()
    expected = quick().fit(tasks, y).predict_proba(tasks)
    for same in (tasks.to_pyg(), list(tasks)):
        assert np.allclose(quick().fit(same, y).predict_proba(same), expected, atol=1e-5)


def test_smiles_and_any_labels():
    smiles = ["CCO", "CCCO", "CCCCO", "CC(C)O", "CCN", "CCCN", "CCCCN", "CC(C)N"] * 3
    y = ["alcohol"] * 4 + ["amine"] * 4
    model = quick(max_epochs=15, dropout=0.00, learning_rate=0.02).fit(smiles, y * 3)
    assert model.classes_.tolist() == ["alcohol", "amine"]
    assert model.predict(["CCCCCO", "CCCCCN"]).tolist() == ["alcohol", "amine"]
    assert model.score(smiles, y * 3) == 1
    p = model.predict_proba(smiles)
    assert p.shape == (24, 2)
    assert np.allclose(p.sum(1), 1)


def test_labels_that_the_graphs_carry(tasks):
    model = quick().fit(tasks)
    assert model.classes_.tolist() == ["different", "same"]
    own = model.classes_[tasks.y.numpy()]
    assert model.score(tasks) == model.score(tasks, own) == (model.predict(tasks) == own).mean()
    assert quick().fit(tasks.to_pyg()).classes_.tolist() == [0, 1]
    graphs, y = networkx_graphs()
    with pytest.raises(LookHopsError, match="carry no classes"):
        quick().fit(graphs)
    for graph, label in zip(graphs, y, strict=True):
        graph.graph["y"] = label
    assert quick().fit(graphs).classes_.tolist() == ["path", "ring"]


def test_what_is_not_graphs_is_refused(tasks):
    for wrong in ("CCO", 5, [1, 2], np.ones((3, 2))):
        with pytest.raises(LookHopsError, match="Graphs are given as"):
            quick().fit(wrong, [0, 1])
    with pytest.raises(LookHopsError, match="There are 80 graphs but 2 labels"):
        quick().fit(tasks, [0, 1])
    with pytest.raises(LookHopsError, match="one class"):
        quick().fit(tasks, np.zeros(80, dtype=int))
    model = quick().fit(tasks)
    with pytest.raises(LookHopsError, match="fitted on graphs, and this is smiles"):
        model.predict(["CCO"])
    with pytest.raises(LookHopsError, match="made by 'molecules-2'"):
        model.predict(load("solubility")[:3])
    with pytest.raises(NotFittedError):
        quick().predict(tasks)


# -------------------------------------------------------------------- conventions


def test_parameters_clone_and_pickle(tasks):
    model = quick(k=3, pool="lookhops")
    assert model.get_params()["k"] == 3
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    copy.set_params(k=1)
    assert copy.k == 1
    fitted = model.fit(tasks)
    assert fitted is model
    again = pickle.loads(pickle.dumps(fitted))
    assert np.array_equal(again.predict_proba(tasks), fitted.predict_proba(tasks))


def test_the_same_seed_gives_the_same_model(tasks):
    one, two, other = (quick(random_state=s).fit(tasks).predict_proba(tasks) for s in (3, 3, 4))
    assert np.array_equal(one, two)
    assert not np.array_equal(one, other)


@pytest.mark.parametrize("kind", ["graphs", "pyg", "smiles"])
def test_cross_validation(kind, tasks):
    molecules = load("solubility")[:60]
    X = {"graphs": tasks, "pyg": tasks.to_pyg(), "smiles": list(molecules.columns["smiles"])}[kind]
    y = (molecules if kind == "smiles" else tasks).y.numpy()
    scores = cross_val_score(quick(), X, y, cv=2, error_score="raise")
    assert scores.shape == (2,)


def test_grid_search_in_a_pipeline(tasks):
    pipeline = make_pipeline(FunctionTransformer(), quick())
    grid = {"lookhopsclassifier__k": [1, 2]}
    search = GridSearchCV(pipeline, grid, cv=2, error_score="raise").fit(tasks, tasks.y.numpy())
    assert search.best_params_["lookhopsclassifier__k"] in (1, 2)
    assert search.predict(tasks).shape == (80,)


def test_rare_classes_stay_in_training():
    smiles = ["CCO", "CCN", "CCC", "CCCC", "CCCCC", "CCF"]
    model = quick().fit(smiles, ["a", "b", "c", "c", "c", "d"])
    assert model.classes_.tolist() == ["a", "b", "c", "d"]


def test_members_are_averaged():
    graphs = load("hops-1", size=60)
    options = {"hidden": 8, "layers": 2, "max_epochs": 2, "device": "cpu"}
    fitted = LookHopsClassifier(members=2, **options).fit(graphs)
    alone = LookHopsClassifier(**options).fit(graphs)
    assert len(fitted.models_) == 2
    for mine, own in zip(fitted.model_.parameters(), alone.model_.parameters(), strict=True):
        assert torch.equal(mine, own)
    assert not np.allclose(fitted.predict_proba(graphs), alone.predict_proba(graphs), atol=1e-4)
