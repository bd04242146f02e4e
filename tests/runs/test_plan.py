"""The plan: names of models, and what runs are stored under."""

import json
from dataclasses import asdict, replace

import pytest

from lookhops.core.errors import LookHopsError
from lookhops.core.options import CLASSICAL, FINGERPRINT, Classical
from lookhops.learners import learner_of, parse_model
from lookhops.learners.registry import UNDECIDED
from lookhops.nn import RECOMMENDED, Architecture
from lookhops.nn.registry import register_convolution
from lookhops.runs.plan import RunKey, canonical, parse_models
from lookhops.training import Protocol


def test_names_of_models():
    assert parse_model("gcn") == Architecture(conv="gcn", pool="none")
    assert parse_model("licheb+lookhops") == Architecture(conv="licheb", pool="lookhops")
    full = parse_model("licheb+lookhops/k=3/edge_ratio=0.7/normalize=false/activation=relu")
    assert full == Architecture(
        pool="lookhops", k=3, edge_ratio=0.7, normalize=False, activation="relu"
    )
    assert parse_model("licheb+lookhops/activation=none").activation == "none"
    assert parse_model("licheb/edge_ratio=none").edge_ratio is None
    assert list(parse_models("cheb, gcn,,cheb")) == ["cheb", "gcn"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("wl-ao", "Did you mean 'wl-oa'"),
        ("recomended", "Did you mean 'recommended'"),
        ("fingerprints", "Did you mean 'fingerprint'"),
        ("wl/k=3", "it has no options"),
        ("wl+topk", "no convolution 'wl'"),
        ("fingerprint/hidden=3", "'hidden'"),
        ("fingerprint/fingerprint=none", "totals"),
        ("licheb+lokhops", "'lookhops'"),
        ("gcnn", "'gcn'"),
        ("licheb/droput=0.3", "'dropout'"),
        ("licheb/k", "k"),
        ("pyg:GATv2Conv/k=3", "k"),
        ("pyg:GATv2Conv/head=3", "'head'.*'heads'"),
        ("pyg:RGCNConv", "edge_type"),
        ("licheb+pyg:MemPooling", "MemPooling"),
        ("pyg:GINEConv", "edges=use"),
        ("pyg:SAGEConv/edges=use", "edges"),
        ("gcn/edges=maybe", "'maybe'"),
        ("gcn/k=7", "k"),
        ("licheb/k=two", "k"),
        ("licheb/k=2/k=3", "k"),
        ("licheb/hidden=none", "hidden"),
        ("licheb/layers=true", "layers"),
        ("licheb/dropout=inf", "dropout"),
        ("licheb/normalize=maybe", "normalize"),
        ("licheb/activation=soft", "'soft'"),
        ("licheb+", "''"),
        ("licheb/ratio=1.5", "ratio"),
        ("licheb/layers=0", "layer"),
    ],
)
def test_wrong_names_are_one_sentence(text, words):
    with pytest.raises(LookHopsError, match=words) as caught:
        parse_model(text)
    assert text in str(caught.value)


def test_names_of_layers_of_other_libraries():
    assert parse_model("pyg:GATv2Conv/heads=4") == Architecture(conv="pyg:GATv2Conv/heads=4")
    both = parse_model("pyg:TAGConv/K=3/hidden=64+pyg:PANPooling/min_score=0.1/readout=max+mean")
    assert both == Architecture(
        conv="pyg:TAGConv/K=3", pool="pyg:PANPooling/min_score=0.1", hidden=64
    )
    assert parse_model("licheb+pyg:PANPooling/k=3/multiplier=2") == Architecture(
        pool="pyg:PANPooling/multiplier=2", k=3
    )
    one, other = (f"pyg:GATConv/{o}" for o in ("heads=2/concat=false", "concat=false/heads=2"))
    assert parse_model(one) == parse_model(other)
    # Which dropout: the class's own where it stands after the class, else the network's.
    assert parse_model("pyg:GATConv/dropout=0.1").dropout == 0
    assert parse_model("pyg:GATConv+none/dropout=0.1").dropout == 0.1
    assert parse_model("pyg:GINEConv/edges=use") == Architecture(conv="pyg:GINEConv", edges="use")


def test_the_recommended_network_and_its_variants():
    assert parse_model("network") == RECOMMENDED
    for name in ("network", "recommended"):
        assert parse_model(f"{name}/pool=none/k=3") == replace(RECOMMENDED, pool="none", k=3)
    assert parse_model("recommended") == UNDECIDED  # the graphs decide
    assert parse_models("recommended/members=5")["recommended/members=5"].model == RECOMMENDED
    with pytest.raises(LookHopsError, match="recommended"):
        learner_of("recommended")


def test_readings_of_whole_graphs_beside_any_network_and_alone():
    assert parse_model("fingerprint") == Architecture(conv="none", fingerprint=5, totals=False)
    far = parse_model("fingerprint/fingerprint=3/totals=true")
    assert far == replace(FINGERPRINT, fingerprint=3, totals=True)
    assert parse_model("licheb/fingerprint=5") == Architecture(fingerprint=5)
    assert parse_model("gcn/totals=true") == Architecture(conv="gcn", totals=True)
    assert (RECOMMENDED.fingerprint, RECOMMENDED.totals) == (5, True)
    assert parse_model("recommended/fingerprint=none").fingerprint is None


@pytest.mark.parametrize("name", CLASSICAL)
def test_classical_models_stand_where_networks_do(name):
    assert parse_model(name) == Classical(name)
    key = RunKey("print", Classical(name), Protocol(patience=3, max_epochs=7, split="stratified"))
    assert RunKey.from_texts(*key.texts) == key
    # Only what draws the splits decides such a run.
    assert key == RunKey("print", Classical(name), Protocol(learning_rate=1.0, split="stratified"))
    assert key != RunKey("print", Classical(name), Protocol())
    assert key.texts[1] not in {canonical(Architecture(conv=name)), canonical(Architecture())}


def test_one_network_under_two_names():
    with pytest.raises(LookHopsError, match=r"licheb\+none"):
        parse_models("licheb,gcn,licheb+none")


@pytest.mark.parametrize(
    "name",
    [
        "gcn",
        "topk",
        "recommended",
        "network",
        "blend",
        "fingerprint",
        "wl-oa",
        "a+b",
        "a/b",
        "a,b",
        "",
    ],
)
def test_names_that_a_layer_cannot_have(name):
    with pytest.raises(LookHopsError, match="name"):
        register_convolution(name, lambda d, h, k: None)


def test_no_model_at_all():
    with pytest.raises(LookHopsError, match="licheb"):
        parse_models(" , ")


def test_a_model_may_have_options_of_training_of_its_own():
    [entry] = parse_models("gcn/members=5/hidden=8/learning_rate=0.01").values()
    assert entry.model == Architecture(conv="gcn", hidden=8)
    protocol = entry.protocol(Protocol(seeds=(1, 2), patience=7))
    assert protocol == Protocol(seeds=(1, 2), patience=7, members=5, learning_rate=0.01)
    assert list(parse_models("gcn,gcn/members=2")) == ["gcn", "gcn/members=2"]
    for name, sentence in {
        "gcn/members=many": "members",
        "gcn/members=2/members=3": "members",
        "baseline/members=2": "baseline",
        "gcn/split=random": "'split'",
    }.items():
        with pytest.raises(LookHopsError, match=sentence):
            parse_models(name)


def test_canonical_json_leaves_out_the_seeds_and_comes_back():
    assert canonical(Protocol(seeds=(1,))) == canonical(Protocol(seeds=(2, 3)))
    assert canonical(Protocol(patience=3)) != canonical(Protocol())
    model = Architecture(pool="lookhops", edge_ratio=0.5)
    for layers in (None, "digest"):
        key = RunKey("print", model, Protocol(patience=3, seeds=(1,)), layers)
        assert RunKey.from_texts(*key.texts) == key
    later = json.dumps({**asdict(model), "later": 1})
    with pytest.raises(LookHopsError, match=r"architecture\.later"):
        RunKey.from_texts("print", later, canonical(Protocol()))


def test_models_are_spelled_as_they_are_parsed():
    models = (
        Architecture(),
        RECOMMENDED,
        Architecture("gcn", "topk", ratio=0.5),
        Architecture("cheb", "topk", k=3, ratio=0.5),
        Architecture(pool="lookhops", edge_ratio=0.7, normalize=False, dropout=0.1),
        FINGERPRINT,
        replace(FINGERPRINT, fingerprint=3, totals=True),
        Classical("wl-oa"),
    )
    for model in models:
        assert parse_model(learner_of(model).spelled) == model
    assert learner_of(Architecture("gcn", k=3)).spelled == "gcn"  # which does not read k
