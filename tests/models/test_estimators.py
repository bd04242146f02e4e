"""The estimators: scikit-learn's conventions, with graphs in place of rows."""

import pickle
from dataclasses import replace

import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from sklearn import config_context
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import estimator_checks
from torch_geometric.data import Batch, HeteroData

from lookhops import Graphs, Target
from lookhops.core.errors import LookHopsError
from lookhops.encoding import ReadOtherwise
from lookhops.graphs.features import Features
from lookhops.models.estimators import LookHopsClassifier, LookHopsMultitask, LookHopsRegressor
from lookhops.sources.loading import load
from molecule_sets import MEASURED, measured

QUICK = {"hidden": 8, "layers": 2, "max_epochs": 2, "device": "cpu"}


def quick(**changes) -> LookHopsClassifier:
    return LookHopsClassifier(**{**QUICK, **changes})


class OfRows:
    """A row of numbers is a graph of one node with these features: for scikit-learn's checks."""

    def _rows(self, X, reset):
        from sklearn.utils.validation import validate_data

        rows = validate_data(self, X, reset=reset, dtype=np.float32)
        none = torch.zeros(0, dtype=torch.long)
        ones = torch.ones(len(rows), dtype=torch.long)
        return Graphs.from_edges(none, none, ones, nodes=Features(numbers=torch.from_numpy(rows)))

    def fit(self, X, y=None):
        if y is None:
            raise ValueError("requires y to be passed, but the target y is None")
        graphs = self._rows(X, reset=True)
        from sklearn.utils import assert_all_finite

        assert_all_finite(np.asarray(y))
        return super().fit(graphs, y)

    def _answers(self, X, features=None, coverage=None):
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(self)
        return super()._answers(self._rows(X, reset=False), features, coverage)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = True
        tags.input_tags.string = False
        return tags


class ClassifierOfRows(OfRows, LookHopsClassifier):
    pass


class RegressorOfRows(OfRows, LookHopsRegressor):
    pass


#: 60 graphs at once and one at a time differ by 1e-6 on some CPUs, where 1e-7 is asked.
FLOAT32 = "answers of single precision differ in the seventh digit between batches"
ROWS = {"pool": "none", "dropout": 0.0, "hidden": 16, "layers": 2, "device": "cpu"}


@pytest.mark.filterwarnings("ignore")
@estimator_checks.parametrize_with_checks(
    [
        ClassifierOfRows(**ROWS, max_epochs=15, learning_rate=0.05),
        RegressorOfRows(**ROWS, max_epochs=15, learning_rate=0.05),
    ],
    expected_failed_checks=lambda estimator: (
        {"check_methods_subset_invariance": FLOAT32} if is_classifier(estimator) else {}
    ),
)
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)


def test_answers_are_the_same_in_any_batch():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    model = ClassifierOfRows(**ROWS, max_epochs=5).fit(X, (X[:, 0] > 0).astype(int))
    alone = np.concatenate([model.predict_proba(X[i : i + 1]) for i in range(60)])
    np.testing.assert_allclose(model.predict_proba(X), alone, rtol=1e-5, atol=1e-6)


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
    with pytest.warns(ReadOtherwise, match=r"'colour'.*green \(3\)"):
        model.predict([blue])
    ring = nx.cycle_graph(3)
    nx.set_node_attributes(ring, "red", "colour")
    with pytest.raises(LookHopsError, match=r"nodes.*'size'"):
        model.predict([ring])


def test_all_kinds_of_the_same_graphs_agree(tasks):
    y = tasks.y.numpy()
    expected = quick().fit(tasks, y).predict_proba(tasks)
    for same in (tasks.to_pyg(), list(tasks)):
        assert np.allclose(quick().fit(same, y).predict_proba(same), expected, atol=1e-5)


def test_one_graph_is_a_list_of_one(tasks):
    graphs, y = networkx_graphs()
    model = quick().fit(graphs, y)
    np.testing.assert_array_equal(model.predict_proba(graphs[3]), model.predict_proba(graphs[3:4]))
    data = tasks.to_pyg()
    model = quick().fit(data)
    alone, several = model.predict_proba(data[3]), model.predict_proba(Batch.from_data_list(data))
    np.testing.assert_array_equal(alone, model.predict_proba(data[3:4]))
    np.testing.assert_array_equal(several, model.predict_proba(data))
    assert model.score(data[3]) == model.score(data[3:4])
    for several_types in (HeteroData(), [HeteroData()], Batch.from_data_list([HeteroData()])):
        with pytest.raises(LookHopsError, match=r"Graph 0.*HeteroData.*to_homogeneous"):
            model.predict(several_types)
    with pytest.raises(LookHopsError, match="Batch"):
        model.predict(Batch(x=data[3].x, edge_index=data[3].edge_index))


def test_names_of_nodes_are_no_smiles():
    model = quick().fit(["CCO", "CCN", "CCC", "CCCC"], ["yes", "yes", "no", "no"])
    with pytest.raises(LookHopsError):
        model.predict(nx.Graph([("CCO", "CC")]))


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


def test_what_was_fitted_on_one_kind_reads_another(tasks):
    model = quick().fit(tasks)
    np.testing.assert_allclose(model.predict_proba(tasks.to_pyg()), model.predict_proba(tasks))
    graphs, y = networkx_graphs()
    packed = Graphs.from_networkx(graphs)
    model = quick().fit(packed, y)
    np.testing.assert_allclose(model.predict_proba(graphs), model.predict_proba(packed))
    molecules = load("solubility")[:24]
    model = quick().fit(molecules)
    frame = pd.DataFrame({"smiles": molecules.columns["smiles"]})
    np.testing.assert_allclose(model.predict_proba(frame), model.predict_proba(molecules))
    scores = cross_val_score(quick(), frame, molecules.y.numpy(), cv=2, error_score="raise")
    assert np.isfinite(scores).all()


def test_labels_that_the_graphs_carry(tasks):
    model = quick().fit(tasks)
    assert model.classes_.tolist() == ["different", "same"]
    own = model.classes_[tasks.y.numpy()]
    assert model.score(tasks) == model.score(tasks, own) == (model.predict(tasks) == own).mean()
    assert quick().fit(tasks.to_pyg()).classes_.tolist() == [0, 1]
    graphs, y = networkx_graphs()
    with pytest.raises(LookHopsError, match="classes"):
        quick().fit(graphs)
    for graph, label in zip(graphs, y, strict=True):
        graph.graph["y"] = label
    assert quick().fit(graphs).classes_.tolist() == ["path", "ring"]


def test_what_the_graphs_carry_goes_to_the_estimator_that_learns_it(mixed):
    graphs, y = mixed
    size, large = y["size"].to_numpy().copy(), y["large"].to_numpy(dtype=float)
    number = replace(graphs, y=torch.from_numpy(size), targets=(Target("size"),))
    both = (Target("size"), Target("large", ("no", "yes")))
    both = replace(graphs, y=torch.from_numpy(np.stack([size, large], 1)), targets=both)
    for own, estimator in ((number, "LookHopsRegressor"), (both, "LookHopsMultitask")):
        with pytest.raises(LookHopsError, match=f"'size'.*{estimator}"):
            quick().fit(own)
    with pytest.raises(LookHopsError, match=r"'large'.*LookHopsMultitask"):
        LookHopsRegressor(**QUICK).fit(both)
    model = LookHopsMultitask(**QUICK).fit(both)
    assert model.classes_["size"] is None
    assert model.classes_["large"].tolist() == ["no", "yes"]
    assert model.score(both) == model.score(
        both, {"size": size, "large": model.classes_["large"][large.astype(int)]}
    )
    with pytest.raises(LookHopsError, match=" y "):
        LookHopsMultitask(**QUICK).fit(replace(graphs, y=None))
    two = (Target("a", ("x", "y")), Target("large", ("no", "yes")))
    two = replace(graphs, y=torch.from_numpy(np.stack([large, large], 1)), targets=two)
    assert [own.tolist() for own in quick().fit(two).classes_] == [["x", "y"], ["no", "yes"]]


def test_what_pyg_graphs_carry(tasks):
    data = tasks[:40].to_pyg()
    sizes = np.array([d.num_nodes for d in data])
    for y in (sizes, sizes.astype(np.float32), -sizes):  # whole numbers, as a regressor reads them
        for d, value in zip(data, y, strict=True):
            d.y = torch.tensor([value])
        model = LookHopsRegressor(**QUICK).fit(data)
        expected = LookHopsRegressor(**QUICK).fit(data, y.astype(float))
        np.testing.assert_array_equal(model.predict(data), expected.predict(data))
    for d, value in zip(data, sizes, strict=True):
        d.y = torch.tensor([[value + 0.5, float(value > np.median(sizes))]])
    model = LookHopsMultitask(**QUICK).fit(data)
    assert model.classes_["target 0"] is None
    assert model.classes_["target 1"].tolist() == [0, 1]
    assert np.isfinite(model.score(data))
    with pytest.raises(LookHopsError, match=r"'target 0'.*LookHopsMultitask"):
        quick().fit(data)


def test_rows_of_pyg_that_are_not_one_hot_have_an_answer(tasks):
    data = tasks.to_pyg()
    model = quick().fit(data)
    data[0].x[0], data[1].x[0] = 0, 1
    with pytest.warns(ReadOtherwise, match=r"2 nodes.*\(1\).*\(1\)"):
        assert np.isfinite(model.predict_proba(data)).all()
    with pytest.warns(ReadOtherwise):  # the other part has one-hot rows alone
        scores = cross_val_score(quick(), data, tasks.y.numpy(), cv=2, error_score="raise")
    assert np.isfinite(scores).all()
    for d in data:
        d.edge_attr = torch.rand(d.num_edges, 2)
    with pytest.warns(ReadOtherwise, match=r"'number 0', 'number 1'.*edges"):
        assert model.predict(data[2:]).shape == (78,)


def test_what_is_not_graphs_is_refused(tasks):
    for wrong in ("CCO", 5, [1, 2], np.ones((3, 2))):
        with pytest.raises(LookHopsError, match="Graphs"):
            quick().fit(wrong, [0, 1])
    with pytest.raises(LookHopsError, match=r"80 graphs.* 2 "):
        quick().fit(tasks, [0, 1])
    with pytest.raises(LookHopsError, match="class"):
        quick().fit(tasks, np.zeros(80, dtype=int))
    model = quick().fit(tasks)
    with pytest.raises(LookHopsError, match="'molecules-2'"):
        model.predict(["CCO"])
    with pytest.raises(LookHopsError, match=r"PyG.*SMILES"):
        quick().fit(tasks.to_pyg()).predict(["CCO"])
    with pytest.raises(LookHopsError, match="'molecules-2'"):
        model.predict(load("solubility")[:3])
    with pytest.raises(NotFittedError):
        quick().predict(tasks)


# -------------------------------------------------------------------- features of whole graphs


def measurements(count=240):
    """Molecules in a frame, whose class is their structure times their temperature."""
    frame = pd.DataFrame(measured(count), columns=MEASURED)
    return frame.assign(temperature=pd.to_numeric(frame["temperature"]))


LEARNING = {**QUICK, "hidden": 16, "fingerprint": 1, "max_epochs": 60, "batch_size": 32}
LEARNING["learning_rate"] = 0.01
X_COLUMNS = ["temperature", "solvent"]


def test_columns_beside_the_molecules_are_features():
    frame = measurements()
    y, X = frame["class"], frame[["smiles", *X_COLUMNS]]
    model = LookHopsClassifier(**LEARNING).fit(X, y)
    assert model.score(X, y) > 0.95
    expected = model.predict_proba(X)
    turned = pl.from_pandas(X).select("solvent", "smiles", "temperature")
    np.testing.assert_allclose(model.predict_proba(turned), expected)
    np.testing.assert_allclose(model.predict_proba(X[:1]), expected[:1], atol=1e-5)
    beside = {name: X[name].tolist() for name in X_COLUMNS}
    np.testing.assert_allclose(model.predict_proba(X["smiles"], beside), expected)
    again = LookHopsClassifier(**LEARNING).fit(X["smiles"], y, features=X[X_COLUMNS])
    np.testing.assert_allclose(again.predict_proba(X), expected)
    assert again.score(X["smiles"], y, features=beside) == model.score(X, y)
    assert LookHopsClassifier(**LEARNING).fit(X["smiles"], y).score(X["smiles"], y) < 0.75


def test_columns_go_through_cross_validation():
    frame = measurements()
    y, X = frame["class"], frame[["smiles", *X_COLUMNS]]
    scores = cross_val_score(LookHopsClassifier(**LEARNING), X, y, cv=3, error_score="raise")
    assert scores.mean() > 0.85
    with config_context(enable_metadata_routing=True):
        routed = clone(LookHopsClassifier(**LEARNING)).set_fit_request(features=True)
        routed.set_score_request(features=True)
        rest = {"cv": 3, "error_score": "raise", "params": {"features": X[X_COLUMNS]}}
        np.testing.assert_allclose(cross_val_score(routed, list(X["smiles"]), y, **rest), scores)


@pytest.mark.parametrize("estimator", [LookHopsRegressor, LookHopsMultitask])
def test_every_estimator_takes_features(estimator):
    frame = measurements(40)
    y, columns = np.arange(40) / 3, frame[X_COLUMNS]
    model = estimator(**QUICK).fit(frame["smiles"], y, features=columns)
    for ask in (model.predict, model.predict_interval):
        found = ask(frame["smiles"], features=columns)
        assert len(found) == 40 or len(found["y0"]) == 40
    assert np.isfinite(model.score(frame["smiles"], y, features=columns))


def test_what_pyg_and_networkx_graphs_carry_are_features_by_name(tasks):
    data, graphs = tasks.to_pyg(), tasks.to_networkx()
    for number, (one, other) in enumerate(zip(data, graphs, strict=True)):
        one.dose = other.graph["dose"] = number % 7 / 3
    dose = {"dose": [one.dose for one in data]}
    expected = quick().fit(tasks, features=dose)
    expected = expected.predict_proba(tasks, dose)
    with_column = replace(tasks, columns={"dose": np.array(dose["dose"])})
    for X in (data, with_column):
        model = quick().fit(X, features="dose")
        np.testing.assert_allclose(model.predict_proba(X), expected, atol=1e-5)
    model = quick().fit(graphs, features=["dose"])
    assert model._encoding.feature_names == ("dose",)
    del graphs[3].graph["dose"], data[3].dose
    for X, fitted in ((graphs, model), (data, quick().fit(tasks.to_pyg(), features=dose))):
        with pytest.raises(LookHopsError, match="'dose'"):
            fitted.predict(X)


def test_features_that_cannot_be_read_are_said():
    frame = measurements(40)
    smiles, y, columns = frame["smiles"], frame["class"], frame[X_COLUMNS]
    model = quick().fit(smiles, y, features=columns)
    for given, said in (
        (None, "'temperature', 'solvent'"),
        (columns[["solvent"]], "'temperature'"),
        (columns[:3], "40 .* 3 .*'temperature'"),
        (columns.assign(temperature="warm"), "graph 1: 'warm'.*'temperature'"),
        (columns.assign(temperature=np.inf), "graph 1: 'inf'.*'temperature'"),
        (5, "int"),
    ):
        with pytest.raises(LookHopsError, match=said):
            model.predict(smiles, features=given)
    for given, said in (
        (columns.assign(day=pd.Timestamp("2026-01-01")), "'day'.*dates"),
        (columns.assign(temperature=np.inf), "'temperature'"),
        ("dose", "'dose'"),
    ):
        with pytest.raises(LookHopsError, match=said):
            quick().fit(smiles, y, features=given)
    with pytest.raises(LookHopsError, match=r"temperature, solvent.*'smiles'"):
        quick().fit(columns, y)
    with pytest.raises(LookHopsError, match="wl-oa"):
        LookHopsClassifier(model="wl-oa").fit(smiles, y, features=columns)


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


# -------------------------------------------------------------------- blanks, numbers, several


@pytest.mark.parametrize(
    "blank", [None, float("nan"), pd.NA, ""], ids=["none", "nan", "pandas", "empty"]
)
def test_a_blank_label_is_no_class(tasks, blank):
    y = np.array(["different", "same"], dtype=object)[tasks.y.numpy()]
    with_blanks = y.copy()
    with_blanks[::4] = blank
    for given in (with_blanks, with_blanks.tolist(), pd.Series(with_blanks)):
        model = quick().fit(tasks, given)
        assert model.classes_.tolist() == ["different", "same"]
        known = np.arange(80) % 4 > 0
        assert model.score(tasks, given) == (model.predict(tasks) == y)[known].mean()
    numbers = pd.Series(tasks.y.numpy(), dtype="Int64")
    numbers[3] = pd.NA
    assert quick().fit(tasks, numbers).classes_.tolist() == [0, 1]


def test_several_targets_at_once(tasks):
    y = pd.DataFrame({"a": tasks.y.numpy(), "size": np.where(np.arange(80) % 3, "small", "large")})
    y.loc[::5, "size"] = None
    model = quick(class_weights=True).fit(tasks, y)
    assert [own.tolist() for own in model.classes_] == [[0, 1], ["large", "small"]]
    each = model.predict_proba(tasks)
    assert [p.shape for p in each] == [(80, 2), (80, 2)]
    assert np.allclose(each[1].sum(1), 1)
    answers = model.predict(tasks)
    assert answers.shape == (80, 2)
    known = y["size"].notna().to_numpy()
    shares = [(answers[:, 0].astype(int) == y["a"]).mean()]
    shares.append((answers[known, 1] == y["size"][known]).mean())
    assert model.score(tasks, y) == pytest.approx(np.mean(shares))


def test_targets_of_different_numbers_of_classes_keep_their_order(tasks):
    y = pd.DataFrame({"three": np.arange(80) % 3, "two": np.arange(80) % 2})
    model = quick().fit(tasks, y)
    assert [p.shape[1] for p in model.predict_proba(tasks)] == [3, 2]
    assert [found.shape[1] for found in model.predict_set(tasks)] == [3, 2]
    assert set(model.predict(tasks)[:, 1]) <= {0, 1}


def test_numbers_with_blanks_alone_and_side_by_side(tasks):
    sizes = 100.0 + tasks.nodes_per_graph.numpy()
    options = {**QUICK, "conv": "none", "fingerprint": 0, "max_epochs": 80, "learning_rate": 0.05}
    blank = sizes.copy()
    blank[::4] = np.nan
    model = LookHopsRegressor(**options, loss="huber").fit(tasks, blank)
    assert model.predict(tasks).shape == (80,)
    assert model.score(tasks, sizes) > 0.8
    known = ~np.isnan(blank)
    assert model.score(tasks, blank) == pytest.approx(model.score(tasks[known], sizes[known]))
    both = LookHopsRegressor(**options).fit(tasks, np.stack([blank, -2 * sizes], axis=1))
    assert both.predict(tasks).shape == (80, 2)
    assert both.score(tasks, np.stack([sizes, -2 * sizes], axis=1)) > 0.8
    own = replace(tasks, y=torch.from_numpy(sizes), targets=(Target("size"),))
    assert LookHopsRegressor(**options).fit(own).score(own) > 0.8
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.predict(tasks), model.predict(tasks))


def test_what_are_no_numbers_is_said(tasks):
    model = LookHopsRegressor(**QUICK)
    with pytest.raises(LookHopsError, match=r"'class'.*LookHopsClassifier"):
        model.fit(tasks)
    with pytest.raises(LookHopsError, match=" y "):
        model.fit(replace(tasks, y=None))
    with pytest.raises(LookHopsError, match="'a'"):
        model.fit(tasks, ["a"] * 80)
    with pytest.raises(LookHopsError, match=r"80 graphs.* 2 "):
        model.fit(tasks, [0.5, 1.5])
    with pytest.raises(LookHopsError, match="n_samples=1"):
        model.fit(tasks, [0.5] + [None] * 79)


# -------------------------------------------------------------------- how sure, and of many kinds

MIXED = {**QUICK, "conv": "none", "fingerprint": 0, "max_epochs": 60, "learning_rate": 0.05}


@pytest.fixture(scope="module")
def mixed():
    """Graphs whose size is to be told as a number, with blanks, and as one of two classes."""
    graphs = load("hops-1", size=120)
    nodes = graphs.nodes_per_graph.numpy()
    size = np.where(np.arange(120) % 5, nodes + np.arange(120) / 1000, np.nan)
    return graphs, pd.DataFrame({"size": size, "large": nodes > np.median(nodes)})


def test_sets_and_intervals_hold_what_they_promise(mixed):
    """Against the definition: so many of the held-out graphs, and a little more, are held."""
    graphs, y = mixed
    options = {**MIXED, "max_epochs": 5, "validation_fraction": 0.5}
    model = LookHopsClassifier(**options).fit(graphs, y["large"])
    sets = model.predict_set(graphs, coverage=0.8)
    p = model.predict_proba(graphs)
    likeliest = p == p.max(1, keepdims=True)
    for number in range(2):  # of each class
        own = np.sort([far for far, true in model._scores[0] if true == number])
        limit = own[int(np.ceil(0.8 * (len(own) + 1))) - 1]
        held = (1 - p[:, number] <= limit + 1e-12) | likeliest[:, number]
        np.testing.assert_array_equal(sets[:, number], held)
    assert model.predict_set(graphs, coverage=0.99).all()
    numbers = LookHopsRegressor(**options).fit(graphs, y["size"])
    low, high = numbers.predict_interval(graphs, coverage=0.8).T
    known = numbers._scores[0]
    half = np.sort(known)[int(np.ceil(0.8 * (len(known) + 1))) - 1]
    np.testing.assert_allclose(high - numbers.predict(graphs), half)
    np.testing.assert_allclose(numbers.predict(graphs) - low, half)
    both = LookHopsRegressor(**options).fit(graphs, y[["size", "large"]].astype(float))
    assert both.predict_interval(graphs).shape == (120, 2, 2)
    few = LookHopsRegressor(**MIXED, validation_fraction=0.05).fit(graphs, y["size"])
    assert np.isinf(few.predict_interval(graphs[:2])).all()
    with pytest.raises(LookHopsError, match=r"coverage.*90"):
        model.predict_set(graphs, coverage=90)


def test_classes_and_numbers_in_one_estimator(mixed):
    graphs, y = mixed
    model = LookHopsMultitask(**MIXED).fit(graphs, y)
    assert model.classes_["size"] is None
    assert model.classes_["large"].tolist() == [False, True]
    answers = model.predict(graphs)
    assert answers["large"].dtype == bool
    known = y["size"].notna()
    r2 = 1 - ((answers["size"] - y["size"])[known] ** 2).sum() / (
        ((y["size"] - y["size"].mean())[known] ** 2).sum()
    )
    accuracy = (answers["large"] == y["large"]).mean()
    assert model.score(graphs, y) == pytest.approx((r2 + accuracy) / 2)
    assert model.score(graphs, y) > 0.8
    assert model.predict_proba(graphs)["large"].shape == (120, 2)
    assert model.predict_set(graphs)["large"].shape == (120, 2)
    assert model.predict_interval(graphs)["size"].shape == (120, 2)
    columns = {name: y[name].tolist() for name in y}
    for given in (columns, pl.DataFrame(columns)):
        again = clone(model).fit(graphs, given)
        pd.testing.assert_frame_equal(again.predict(graphs), answers)
    pd.testing.assert_frame_equal(pickle.loads(pickle.dumps(model)).predict(graphs), answers)
    numbers = LookHopsMultitask(**QUICK, task="y0=numbers").fit(graphs, y.to_numpy(dtype=float))
    assert numbers.classes_["y0"] is None
    assert numbers.classes_["y1"].tolist() == [0, 1]
    for given, changes, named in (
        ({"size": [1.0]}, {}, "120 .* 1 .*'size'"),
        (y, {"task": "sise=numbers"}, "'sise'"),
        ({}, {}, "y "),
    ):
        with pytest.raises(LookHopsError, match=named):
            LookHopsMultitask(**QUICK, **changes).fit(graphs, given)
    with pytest.raises(LookHopsError, match="'large'"):
        model.score(graphs, y[["size"]])


@pytest.mark.filterwarnings("ignore:invalid value encountered in cast")  # of inf
def test_few_fractions_are_classes_with_their_values(tasks):
    y = pd.DataFrame({"a": np.arange(80) % 5 + 0.5, "b": np.arange(80) / 7})
    model = LookHopsMultitask(**QUICK).fit(tasks, y)
    assert model.classes_["a"].tolist() == [0.5, 1.5, 2.5, 3.5, 4.5]
    assert model.classes_["b"] is None
    answers = model.predict(tasks)
    assert set(answers["a"]) <= set(y["a"])
    alone = LookHopsMultitask(**QUICK).fit(tasks, y[["a"]])
    assert alone.score(tasks, y) == (alone.predict(tasks)["a"] == y["a"]).mean()
    with pytest.raises(LookHopsError, match=r"0\.5.*LookHopsRegressor"):
        quick().fit(tasks, y["a"].tolist())
    with pytest.raises(LookHopsError, match=r"inf.*LookHopsRegressor"):
        quick().fit(tasks, [1.0, np.inf] * 40)


@pytest.mark.parametrize("kind", [LookHopsClassifier, LookHopsRegressor])
def test_a_graph_is_answered_the_same_in_any_company(tasks, kind):
    """scikit-learn's own check of this asks for the eighth digit; single precision has seven."""
    y = tasks.y.numpy() if kind is LookHopsClassifier else tasks.nodes_per_graph.numpy() / 3
    model = kind(**{**QUICK, "pool": "none"}).fit(tasks, y)
    answer = model.predict_proba if kind is LookHopsClassifier else model.predict
    whole = answer(tasks)
    alone = np.concatenate([answer(tasks[[i]]) for i in range(20)])
    np.testing.assert_allclose(alone, whole[:20], rtol=2e-6, atol=2e-6)
    order = np.random.default_rng(0).permutation(80)
    np.testing.assert_allclose(answer(tasks[order]), whole[order], rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize("name", ["wl-oa", "morgan-ridge", "licheb/k=1/hidden=4/layers=1"])
def test_other_models_by_their_names(name):
    smiles = ["C" * n + end for n in range(1, 13) for end in ("O", "N")]
    labels = [text[-1] for text in smiles]
    training = {"max_epochs": 2} if "licheb" in name else {}
    fitted = LookHopsClassifier(model=name, validation_fraction=0.3, **training)
    fitted = pickle.loads(pickle.dumps(fitted.fit(smiles, labels)))
    p = fitted.predict_proba(smiles)
    np.testing.assert_allclose(p.sum(1), 1, rtol=1e-6)
    if not training:
        assert fitted.score(smiles, labels) > 0.9
        assert fitted.n_iter_ == 0
    assert fitted.predict_set(smiles).shape == (len(smiles), 2)
    numbers = LookHopsRegressor(model=name, **training).fit(smiles, [len(s) for s in smiles])
    assert numbers.predict(smiles).shape == (len(smiles),)
    with pytest.raises(LookHopsError, match="hidden"):
        LookHopsClassifier(model=name, hidden=8).fit(smiles, labels)
    with pytest.raises(LookHopsError, match="wl-oa"):
        LookHopsClassifier(model="wl-ao").fit(smiles, labels)
