"""``lookhops explain`` by running it."""

import csv
import json
import math
import re
import xml.etree.ElementTree as ET

import pytest

SMALL = ["--hidden", "8", "--layers", "3", "--epochs", "1", "--device", "cpu"]


@pytest.fixture
def model(lookhops, tmp_path):
    folder = tmp_path / "model"
    options = [*SMALL, "--task-size", "60", "--ratio", "0.6", "--seeds", "2"]
    assert lookhops("train", "hops-1", *options, "-o", folder)[0] == 0
    return folder


def test_shares_add_up_and_are_drawn(lookhops, model, tmp_path):
    source = ["hops-1", "--task-size", "4", "--task-seed", "9"]
    code, out, err = lookhops("explain", model, *source, "-o", tmp_path / "e")
    assert code == 0, err
    assert "explanations.json and 4 pictures" in out
    content = json.loads((tmp_path / "e" / "explanations.json").read_text())
    assert content["view"] == "shares"
    for graph in content["graphs"]:
        p = graph["probabilities"][graph["explained"]]
        assert graph["unit"] == "log-odds"
        assert graph["value"] == pytest.approx(math.log(p / (1 - p)), abs=1e-4)
        parts = graph["baseline"] + graph["whole"] + sum(graph["nodes"])
        assert parts + sum(graph["edge_shares"]) == pytest.approx(graph["value"], abs=1e-3)
        assert len(graph["node_spread"]) == len(graph["nodes"])
        picture = (tmp_path / "e" / graph["picture"]).read_text()
        words = " ".join("".join(ET.fromstring(picture).itertext()).split())
        assert graph["sentence"] in words
    code, out, _ = lookhops("explain", model, *source, "--seed", "22", "--json")
    assert code == 0
    assert json.loads(out)["seed"] == 22
    assert "picture" not in json.loads(out)["graphs"][0]


def test_what_pooling_kept_is_a_view_of_its_own(lookhops, model, tmp_path):
    source = ["hops-1", "--task-size", "4", "--task-seed", "9", "--view", "kept"]
    code, out, err = lookhops("explain", model, *source, "-o", tmp_path / "e")
    assert code == 0, err
    assert "explanations.json and 4 pictures" in out
    content = json.loads((tmp_path / "e" / "explanations.json").read_text())
    assert content["seed"] == 11
    for graph in content["graphs"]:
        assert set(graph["probabilities"]) == {"different", "same"}
        nodes = list(range(graph["num_nodes"]))
        for layer in graph["layers"]:
            assert layer["nodes"] == nodes
            assert len(layer["score"]) == len(nodes)
            assert sorted(layer["kept"] + layer["dropped"]) == nodes
            lowest = min(
                s for n, s in zip(nodes, layer["score"], strict=True) if n in layer["kept"]
            )
            highest = max(
                s for n, s in zip(nodes, layer["score"], strict=True) if n in layer["dropped"]
            )
            assert lowest >= highest
            nodes = layer["kept"]
        ET.fromstring((tmp_path / "e" / graph["picture"]).read_text())
    code, out, _ = lookhops("explain", model, *source, "--seed", "22", "--json")
    assert code == 0
    assert json.loads(out)["seed"] == 22
    assert "picture" not in json.loads(out)["graphs"][0]


def test_neighbourhoods_are_a_table_and_pictures(lookhops, model, tmp_path):
    source = ["hops-1", "--task-size", "60", "--view", "neighbourhoods"]
    code, out, err = lookhops("explain", model, *source, "-o", tmp_path / "n")
    assert code == 0, err
    assert "neighbourhoods.csv" in out
    with (tmp_path / "n" / "neighbourhoods.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {row["side"] for row in rows} == {"different", "same"}
    for row in rows:
        ET.fromstring((tmp_path / "n" / row["picture"]).read_text())


def test_names_of_pictures_are_safe_and_differ(lookhops, tmp_path):
    options = [*SMALL, "--batch-size", "64"]
    assert lookhops("train", "solubility", *options, "-o", tmp_path / "m")[0] == 0
    lines = ["CCO ../../evil", "CCN a/b", "CCC a:b", "CCCC A/B", "CCF ...", "CCCl été"]
    (tmp_path / "some.smi").write_text("\n".join(lines))
    code, _, err = lookhops("explain", tmp_path / "m", tmp_path / "some.smi", "-o", tmp_path / "e")
    assert code == 0, err
    names = sorted(file.name for file in (tmp_path / "e").iterdir())
    assert names == sorted(
        [
            "explanations.json",
            "evil.svg",
            "a-b.svg",
            "a-b-2.svg",
            "A-B-3.svg",
            "graph.svg",
            "été.svg",
        ]
    )


@pytest.mark.parametrize("kind", ["tables", "jsonl"])
def test_nodes_of_tables_are_called_by_their_ids(lookhops, tmp_path, kind):
    tables, model = tmp_path / "tables", tmp_path / "m"
    assert lookhops("data", "example", tables, "--cases", 40)[0] == 0
    assert lookhops("train", tables, *SMALL, "-o", model)[0] == 0
    assert lookhops("data", "example", tmp_path / "new", "--cases", 2, "--seed", 1)[0] == 0
    source = tmp_path / "new"
    edges, nodes = (list(csv.DictReader((source / f"{t}.csv").open())) for t in ("edges", "nodes"))
    if kind == "jsonl":
        source = tmp_path / "new.jsonl"
        source.write_text("".join(json.dumps(_node_link(c, edges, nodes)) + "\n" for c in (1, 2)))
    code, _, err = lookhops("explain", model, source, "-o", tmp_path / "e")
    assert code == 0, err
    for number, graph in enumerate(_explained(tmp_path / "e"), 1):
        case = f"case-{number}"
        assert graph["node_ids"] == [row["node"] for row in nodes if row["graph"] == case]
        known = {tuple(sorted((r["source"], r["target"]))) for r in edges if r["graph"] == case}
        assert {tuple(sorted(pair)) for pair in graph["edge_node_ids"]} == known
        ids = graph["node_ids"]
        assert graph["edge_node_ids"] == [[ids[i], ids[j]] for i, j in graph["edges"]]
        largest = ids[max(range(len(ids)), key=lambda i: abs(graph["nodes"][i]))]
        picture = (tmp_path / "e" / graph["picture"]).read_text()
        assert f"(node {largest}): " in picture
        named = re.findall(r"\(node (\w+)\)|edge between (\w+) and (\w+)", graph["sentence"])
        assert len(named) == 3
        assert {one for found in named for one in found if one} <= set(ids)
    code, _, err = lookhops("explain", model, source, "--view", "kept", "-o", tmp_path / "k")
    assert code == 0, err
    first = _explained(tmp_path / "k")[0]
    assert first["node_ids"][0] == "C1"
    assert "<title>node C1</title>" in (tmp_path / "k" / first["picture"]).read_text()


def _explained(folder):
    return json.loads((folder / "explanations.json").read_text())["graphs"]


def _node_link(number, edges, nodes):
    """A case in node-link form."""
    case = f"case-{number}"
    own = [[row for row in rows if row["graph"] == case] for rows in (edges, nodes)]
    return {
        "id": case,
        "nodes": [
            {"id": r["node"], "type": r["type"], "age_days": int(r["age_days"])} for r in own[1]
        ],
        "edges": [
            {**{k: r[k] for k in ("source", "target", "channel")}, "amount": float(r["amount"])}
            for r in own[0]
        ],
    }


def test_sentences(lookhops, model, tmp_path):
    code, _, err = lookhops("explain", model, "hops-1")
    assert code == 2
    assert "-o FOLDER" in err
    code, _, err = lookhops("explain", model, "hops-1", "--seed", "5", "-o", tmp_path / "e")
    assert code == 2
    assert "has no seed 5, but 11, 22" in err
    code, _, err = lookhops("explain", model, "solubility", "-o", tmp_path / "e")
    assert code == 2
    assert "made by 'molecules-2'" in err
    plain = ["--pool", "none", "--task-size", "60"]
    assert lookhops("train", "hops-1", *SMALL, *plain, "-o", tmp_path / "p")[0] == 0
    few = ["hops-1", "--task-size", "2"]
    code, _, err = lookhops("explain", tmp_path / "p", *few, "--view", "kept", "--json")
    assert code == 2
    assert "no pooling" in err
    assert lookhops("explain", tmp_path / "p", *few, "--json")[0] == 0
    code, _, err = lookhops("explain", model, *few, "--of", "colour", "--json")
    assert code == 2
    assert "no target 'colour'" in err


def test_what_cannot_be_learnt_can_be_explained_and_not_evaluated(lookhops, tmp_path):
    train, new = tmp_path / "train.csv", tmp_path / "new.csv"
    train.write_text("smiles,logS\n" + "".join(f"{'C' * (i + 1)}O,{i / 7}\n" for i in range(30)))
    folder = tmp_path / "model"
    assert lookhops("train", train, "--target", "logS", *SMALL, "-o", folder)[0] == 0
    new.write_text("smiles,LOGS\n" + "".join(f"{'C' * (i + 1)}N,see {i}\n" for i in range(30)))
    code, out, err = lookhops("explain", folder, new, "--json")
    assert (code, len(json.loads(out)["graphs"])) == (0, 30), err
    code, _, err = lookhops("predict", folder, train, "--target", "LOGS")
    assert "30 graphs with a measured logS" in err
    european = tmp_path / "european.csv"
    european.write_text("smiles;logS\nCO;0,5\nCN;1,25\n")
    code, out, err = lookhops("predict", folder, european)
    assert "2 graphs with a measured logS" in err
    assert 'CO,"0,5",' in out
    code, _, err = lookhops("evaluate", folder, new)
    assert code == 2
    assert "'LOGS' has 30 different values for 30 graphs" in err
