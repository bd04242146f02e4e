"""HopFingerprint: scikit-learn's conventions, with graphs in place of rows."""

import pickle

import networkx as nx
import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.utils import estimator_checks

from lookhops import Graphs, HopFingerprint, LookHopsError
from lookhops.graphs.features import Features
from lookhops.neighbourhoods import gram_by_hop
from lookhops.sources.loading import load


class OfRows(HopFingerprint):
    """A row of numbers is a graph of one node with these features: for scikit-learn's checks."""

    def _rows(self, X, reset):
        from sklearn.utils.validation import validate_data

        rows = validate_data(self, X, reset=reset, dtype=np.float32)
        none = torch.zeros(0, dtype=torch.long)
        ones = torch.ones(len(rows), dtype=torch.long)
        return Graphs.from_edges(none, none, ones, nodes=Features(numbers=torch.from_numpy(rows)))

    def fit(self, X, y=None):
        return super().fit(self._rows(X, reset=True), y)

    def transform(self, X):
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(self)
        return super().transform(self._rows(X, reset=False))

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = True
        tags.input_tags.string = False
        return tags


@pytest.mark.filterwarnings("ignore")
@estimator_checks.parametrize_with_checks([OfRows(h=1, bins=4, min_graphs=1)])
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)


def rings_and_paths() -> tuple[list[nx.Graph], list[str]]:
    made = [(nx.cycle_graph if i % 2 else nx.path_graph)(4 + i % 5) for i in range(24)]
    return made, ["ring" if i % 2 else "path" for i in range(24)]


def test_any_classifier_in_a_pipeline():
    graphs, y = rings_and_paths()
    pipeline = make_pipeline(HopFingerprint(h=1), LogisticRegression())
    assert pipeline.fit(graphs, y).score(graphs, y) == 1
    assert pipeline.predict([nx.cycle_graph(20)]).tolist() == ["ring"]
    search = GridSearchCV(pipeline, {"hopfingerprint__h": [0, 1]}, cv=2, error_score="raise")
    assert search.fit(graphs, y).best_params_["hopfingerprint__h"] == 1


def test_one_hop_decides_the_task_of_one_hop(tasks):
    at = [
        cross_val_score(
            make_pipeline(HopFingerprint(h=h), LogisticRegression(C=10)), tasks, tasks.y.numpy()
        ).mean()
        for h in (0, 1)
    ]
    assert at[0] < 0.75 < at[1]


def test_rows_are_the_same_in_any_company_and_kind(tasks):
    model = HopFingerprint(h=2).fit(tasks)
    rows = model.transform(tasks)
    assert (model.transform(tasks[3]) != rows[[3]]).nnz == 0
    assert np.allclose((rows**2).sum(1), 1)
    again = HopFingerprint(h=2).fit(tasks.to_pyg())
    assert (again.transform(tasks.to_pyg()) != rows).nnz == 0


def test_inner_products_are_the_optimal_assignment_kernel(tasks):
    rows = HopFingerprint(h=2, min_graphs=1, normalize=False).fit_transform(tasks)
    assert np.array_equal((rows @ rows.T).toarray(), gram_by_hop(tasks, 2).sum(0))


def test_numbers_count_when_they_are_binned():
    graphs = []
    for i in range(20):
        graph = nx.path_graph(3)
        nx.set_node_attributes(graph, 10.0 * (i % 2) + 0.1 * i, "size")
        graphs.append(graph)
    assert len({tuple(row) for row in HopFingerprint().fit_transform(graphs).toarray()}) == 1
    binned = HopFingerprint(bins=2).fit(graphs)
    rows = binned.transform(graphs).toarray()
    assert (rows == rows[0]).all(1).tolist() == [i % 2 == 0 for i in range(20)]


def test_names_clone_and_pickle(tasks):
    model = HopFingerprint(h=1, max_features=10)
    assert clone(model).get_params() == model.get_params()
    fitted = model.fit(tasks)
    assert fitted is model
    names = fitted.get_feature_names_out()
    assert len(set(names)) == 10
    assert all(name.startswith(("hop0_", "hop1_")) for name in names)
    again = pickle.loads(pickle.dumps(fitted))
    assert (again.transform(tasks) != fitted.transform(tasks)).nnz == 0


def test_what_does_not_fit_is_refused(tasks):
    with pytest.raises(NotFittedError):
        HopFingerprint().transform(tasks)
    model = HopFingerprint(h=1).fit(tasks)
    with pytest.raises(LookHopsError, match="'molecules-2'"):
        model.transform(load("solubility")[:3])
    for wrong, name in (({"h": -1}, "hops"), ({"bins": -1}, "bins")):
        with pytest.raises(LookHopsError, match=name):
            HopFingerprint(**wrong).fit(tasks)
