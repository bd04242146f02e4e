"""The plan: names of models, cells, and the paper's rows."""

import json
from dataclasses import asdict, replace

import pytest

from lookhops.errors import LookHopsError
from lookhops.experiments.keys import architecture_from, canonical, protocol_from
from lookhops.experiments.plan import parse_model, parse_models
from lookhops.nn import RECOMMENDED, Architecture
from lookhops.nn.registry import register_convolution
from lookhops.paper.reference import (
    DATASETS,
    ROWS,
    best_published,
    chosen_rows,
    paper_numbers,
    paper_plan,
    published,
    rows_of,
)
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
        ("licheb+lokhops", "Did you mean 'lookhops'"),
        ("gcnn", "Did you mean 'gcn'"),
        ("licheb/droput=0.3", "Did you mean 'dropout'"),
        ("licheb/k", "options are written"),
        ("gcn/k=7", "gcn looks one hop and does not read k"),
        ("licheb/k=two", "k is a whole number"),
        ("licheb/k=2/k=3", "each once"),
        ("licheb/hidden=none", "hidden is a whole number"),
        ("licheb/layers=true", "layers is a whole number"),
        ("licheb/dropout=inf", "dropout is a number"),
        ("licheb/normalize=maybe", "normalize is true or false"),
        ("licheb/activation=soft", "no activation 'soft'"),
        ("licheb+", "no pooling ''"),
        ("licheb/ratio=1.5", "ratio"),
        ("licheb/layers=0", "at least one layer"),
    ],
)
def test_wrong_names_are_one_sentence(text, words):
    with pytest.raises(LookHopsError, match=words) as caught:
        parse_model(text)
    assert text in str(caught.value)


def test_the_recommended_network_and_its_variants():
    assert parse_model("recommended") == RECOMMENDED
    assert parse_model("recommended/pool=none/k=3") == replace(RECOMMENDED, pool="none", k=3)


def test_one_network_under_two_names():
    with pytest.raises(LookHopsError, match=r"licheb and licheb\+none are the same"):
        parse_models("licheb,gcn,licheb+none")


@pytest.mark.parametrize("name", ["gcn", "topk", "recommended", "a+b", "a/b", "a,b", ""])
def test_names_that_a_layer_cannot_have(name):
    with pytest.raises(LookHopsError, match="name"):
        register_convolution(name, lambda d, h, k: None)


def test_no_model_at_all():
    with pytest.raises(LookHopsError, match="at least one"):
        parse_models(" , ")


def test_canonical_json_leaves_out_the_seeds_and_comes_back():
    assert canonical(Protocol(seeds=(1,))) == canonical(Protocol(seeds=(2, 3)))
    assert canonical(Protocol(patience=3)) != canonical(Protocol())
    assert protocol_from(canonical(Protocol(patience=3))) == Protocol(patience=3)
    model = Architecture(pool="lookhops", edge_ratio=0.5)
    assert architecture_from(canonical(model)) == model
    with pytest.raises(LookHopsError, match="not known to this version"):
        architecture_from(json.dumps({**asdict(model), "later": 1}))


def test_thirteen_rows_with_the_papers_numbers():
    assert len(rows_of("conv")) == 6
    assert len(rows_of("pool")) == 7
    numbers = paper_numbers()
    for table in ("conv", "pool"):
        assert [row.paper for row in rows_of(table)] == list(numbers[f"{table}_table"])
    assert published(ROWS["licheb"], "NCI1") == (78.6, 1.6)
    assert published(ROWS["asap"], "DD") is None
    assert published(ROWS["licheb"], "BURSI") is None
    best = {name: best_published(name)[0] for name in DATASETS if name != "BURSI"}
    assert best == {
        "PROTEINS": 76.3,
        "DD": 77.3,
        "NCI1": 78.6,
        "NCI109": 78.1,
        "Mutagenicity": 82.3,
    }


def test_rows_are_the_papers_networks():
    for slug in ("gcn", "gat", "mixhop", "limixhop", "cheb", "licheb"):
        model = ROWS[slug].architecture("NCI1")
        assert (model.conv, model.pool, model.k, model.layers, model.hidden) == (
            slug,
            "none",
            2,
            5,
            128,
        )
        assert model.normalize is None
    full = ROWS["lookhops-nf-pe"]
    assert (full.architecture("PROTEINS").ratio, full.architecture("PROTEINS").edge_ratio) == (
        0.6,
        0.8,
    )
    assert (full.architecture("BURSI").ratio, full.architecture("BURSI").edge_ratio) == (0.9, 0.6)
    assert ROWS["lookhops-nf"].architecture("NCI109").edge_ratio is None
    assert ROWS["lookhops-nonf"].architecture("DD").normalize is False
    assert ROWS["topk"].architecture("DD").ratio == 0.8
    assert ROWS["edge"].architecture("DD") == ROWS["edge"].architecture("PROTEINS")
    assert [row.model.k for row in rows_of("accuracy-by-k")] == [1, 2, 3, 4, 5]
    assert ROWS["licheb-k2"].architecture("DD") == ROWS["licheb"].architecture("DD")


def test_the_plan_trains_nothing_twice_and_begins_with_what_matters():
    rows = chosen_rows(["conv", "pool"], ["accuracy-by-k"])
    cells = paper_plan(rows, DATASETS, Protocol())
    keys = [(cell.dataset, cell.architecture) for cell in cells]
    assert len(keys) == len(set(keys))
    for row in rows:
        for dataset in DATASETS:
            assert (dataset, row.architecture(dataset)) in keys
    assert cells[0].model == "LookHops recommended"
    assert cells[-1].architecture.pool == "edge"
    assert [cell.dataset for cell in cells[:6]][-1] == "DD"


def test_rows_can_be_chosen():
    assert [row.slug for row in chosen_rows(["conv"], [], ["gcn"])] == ["gcn"]
    with pytest.raises(LookHopsError, match="'topk' belongs to 'pool'"):
        chosen_rows(["conv"], [], ["gcn", "topk"])
    with pytest.raises(LookHopsError, match="no row 'gnc'"):
        chosen_rows(["conv"], [], ["gnc"])
    assert chosen_rows(["data", "gain"], ["gain"]) == []
