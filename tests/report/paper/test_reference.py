"""The paper's numbers and rows, and the plan that runs them again."""

from types import SimpleNamespace

import pytest

from lookhops.core.errors import LookHopsError
from lookhops.runs.paper import (
    DATASETS,
    ROWS,
    best_published,
    chosen_rows,
    paper_numbers,
    paper_plan,
    rows_of,
)
from lookhops.training import Protocol


def test_thirteen_rows_with_the_papers_numbers_and_three_of_its_text():
    assert len(rows_of("conv")) == 6
    assert len(rows_of("pool")) == 7 + 3
    numbers = paper_numbers()
    for table in ("conv", "pool"):
        named = [row.paper for row in rows_of(table) if row.paper is not None]
        assert named == list(numbers[f"{table}_table"])
    of_the_text = [row for row in rows_of("pool") if row.paper is None]
    assert [row.slug for row in of_the_text] == ["diffpool", "hgpsl", "ipool"]
    assert [row.architecture("DD").ratio for row in of_the_text] == [0.8] * 3
    assert of_the_text[0].published("NCI1") is None
    assert ROWS["licheb"].published("NCI1") == (78.6, 1.6)
    assert ROWS["asap"].published("DD") is None
    assert ROWS["licheb"].published("BURSI") is None
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
    rows = chosen_rows(["conv", "pool", "ours"], ["accuracy-by-k"])
    datasets = {name: SimpleNamespace(name=name) for name in DATASETS}
    cells = paper_plan(rows, datasets, Protocol())
    keys = [(cell.dataset, cell.architecture, cell.protocol.members) for cell in cells]
    assert len(keys) == len(set(keys))
    for row in rows:
        for dataset in DATASETS:
            assert (dataset, row.architecture(dataset), row.members) in keys
    assert cells[0].model == "LookHops recommended"
    assert cells[-1].model == "baseline"
    assert [cell.dataset for cell in cells[:6]][-1] == "DD"


def test_rows_can_be_chosen():
    assert [row.slug for row in chosen_rows(["conv"], [], ["gcn"])] == ["gcn"]
    with pytest.raises(LookHopsError, match=r"'topk'.*'pool'"):
        chosen_rows(["conv"], [], ["gcn", "topk"])
    with pytest.raises(LookHopsError, match="'gnc'"):
        chosen_rows(["conv"], [], ["gnc"])
    assert chosen_rows(["data", "gain"], ["gain"]) == []
