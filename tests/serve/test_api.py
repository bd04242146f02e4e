"""The API: what it answers is what the command answers, and what it refuses is refused alike."""

import asyncio
import csv
import gzip
import io
import json
import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from lookhops.core.options import Limits
from lookhops.encoding import Encoding
from lookhops.encoding.columns import Columns
from lookhops.serve.bodies import example_bodies
from lookhops.sources.loading import load

SMILES = ["CCO", "c1ccccc1", "CC(=O)Oc1ccccc1C(=O)O"]
TABLE = "name,smiles,note\nethanol,CCO,x\nbroken,C1CC,y\nbenzene,c1ccccc1,\n"


def node_link(graphs):
    """Hop tasks as node-link objects, node by node."""
    found = []
    for number in range(len(graphs)):
        one = graphs.select([number])
        kinds = [one.nodes.label_values[0][label] for label in one.nodes.labels[:, 0].tolist()]
        pairs = {tuple(sorted(pair)) for pair in one.edge_index.T.tolist()}
        found.append(
            {
                "id": f"g{number}",
                "nodes": [
                    {"id": i, one.nodes.label_names[0]: kind} for i, kind in enumerate(kinds)
                ],
                "edges": [{"source": s, "target": t} for s, t in sorted(pairs)],
            }
        )
    return found


def csv_of(rows):
    written = io.StringIO()
    table = csv.DictWriter(written, list(rows[0]))
    table.writeheader()
    table.writerows(rows)
    return written.getvalue()


def numbers(answers):
    return [[answer["probabilities"], answer["similarity"]] for answer in answers]


def close(one, other):
    return (
        json.loads(json.dumps(one), parse_float=lambda x: pytest.approx(float(x), abs=1e-5))
        == other
    )


@pytest.fixture(scope="module")
def tasks():
    return load("hops-1", size=60)[:6]


def test_the_same_records_and_rows_as_the_command(service, molecule_model, lookhops, tmp_path):
    source = tmp_path / "input.csv"
    source.write_text(TABLE)
    ask = ["--coverage", 0.8, "--neighbours", 2]
    _, printed, _ = lookhops("predict", molecule_model, source, "--json", *ask)
    kind = {"content_type": "text/csv"}
    asked = service.post(
        "/v1/predict?coverage=0.8&neighbours=2", TABLE, accept="application/json", **kind
    )
    assert asked.status == 200
    assert close(json.loads(printed), asked.json()["answers"])
    assert asked.json()["answers"][1] == {
        "id": "broken",
        "skipped": json.loads(printed)[1]["skipped"],
    }
    assert "input.csv" in asked.json()["notes"][0]
    assert "lookhops-" not in asked.json()["notes"][0]
    _, printed, _ = lookhops("predict", molecule_model, source)
    asked = service.post("/v1/predict", TABLE, **kind)
    assert asked.headers["content-type"].startswith("text/csv")
    assert list(csv.reader(io.StringIO(printed))) == list(
        csv.reader(io.StringIO(asked.content.decode()))
    )


def test_a_truth_that_cannot_be_read_is_not_needed(service):
    rows = "".join(f"{'C' * (i + 1)},see {i}\n" for i in range(30))
    asked = service.post("/v1/predict", f"smiles,class\n{rows}", content_type="text/csv")
    assert asked.status == 200
    assert asked.content.decode().splitlines()[1].startswith("C,see 0,")


def test_every_form_gives_the_same_answers(service, tasks):
    graphs = node_link(tasks)
    name = tasks.nodes.label_names[0]
    body = {"model": "tasks", "graphs": graphs}
    first = service.post("/v1/predict", body)
    assert first.status == 200, first.json()
    assert [one["id"] for one in first.json()["answers"]] == [f"g{i}" for i in range(6)]
    edges = csv_of([{"graph": g["id"], **edge} for g in graphs for edge in g["edges"]])
    nodes = csv_of(
        [{"graph": g["id"], "node": n["id"], name: n[name]} for g in graphs for n in g["nodes"]]
    )
    as_tables = service.post(
        "/v1/predict", {"model": "tasks", "tables": {"edges": edges, "nodes": nodes}}
    )
    lines = "".join(json.dumps(graph) + "\n" for graph in graphs)
    as_file = service.post(
        "/v1/predict?model=tasks",
        lines,
        content_type="application/x-ndjson",
        accept="application/json",
    )
    for other in (as_tables, as_file):
        assert close(numbers(first.json()["answers"]), numbers(other.json()["answers"]))


def test_the_address_speaks_for_json_too_where_that_says_nothing(service):
    asked = {"smiles": SMILES}
    assert service.post("/v1/predict?model=molecules&coverage=0.5", asked).status == 200
    assert service.post("/v1/predict?model=nosuch", asked).status == 404
    assert service.post("/v1/predict?model=nosuch", asked | {"model": "molecules"}).status == 200
    assert service.post("/v1/predict?coverage=2", asked).status == 400
    assert service.post("/v1/predict?coverage=2", asked | {"coverage": 0.5}).status == 200
    bad = service.post("/v1/predict?coverage=0.5", "{", content_type="application/json")
    assert bad.status == 400


def test_explanations_call_nodes_by_their_ids(service, tasks):
    [graph, *_] = node_link(tasks)
    for part, keys in (("nodes", ("id",)), ("edges", ("source", "target"))):
        graph[part] = [one | {key: f"acct{one[key]}" for key in keys} for one in graph[part]]
    [found] = service.post("/v1/explain", {"model": "tasks", "graphs": [graph]}).json()[
        "explanations"
    ]
    ids = [node["id"] for node in graph["nodes"]]
    assert found["node_ids"] == ids
    assert found["edge_node_ids"] == [[ids[i], ids[j]] for i, j in found["edges"]]
    assert "acct" in found["sentence"]
    assert f"(node {ids[0]})" in found["picture"]


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        ({"smiles": ["C1CC"]}, 400, "none of 1 molecule parses: molecule 1 ("),
        ({"smiles": []}, 400, "there are no molecules"),
        ({"smiles": ["C"], "ids": ["a", "b"]}, 400, "There are 1 SMILES but 2 ids."),
        ({"smiles": ["C"], "coverage": 1.5}, 400, "A coverage is between 0 and 1, not 1.5."),
        ({"smiles": ["C"], "neighbours": -1}, 400, "neighbours: input should be greater"),
        ({"smiles": ["C"], "model": "other"}, 404, "No model is called 'other'; there are 2"),
        ({"smiles": ["C"], "model": "tasks"}, 400, "the model was trained on hops-1"),
        ({"smiles": ["C"], "graphs": []}, 400, "there is smiles and graphs"),
        ({}, 400, "there is none of them"),
        ({"smiles": "C"}, 400, "smiles: input should be a valid array"),
        ({"smiles": ["C"], "colour": 1}, 400, "colour: extra inputs are not permitted"),
        ({"graphs": [{"nodes": 3}], "model": "tasks"}, 400, "graphs.jsonl, line 1: "),
        ({"tables": {"edges": "a,b\n1,2\n"}, "model": "tasks"}, 400, "tables/edges.csv: "),
        ({"job": "none"}, 404, "There is no job 'none'"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_in_a_sentence(service, body, status, said):
    refused = service.post("/v1/predict", body)
    assert refused.status == status
    assert said in refused.json()["error"]
    assert "/tmp" not in refused.json()["error"]


def test_a_refusal_has_the_sentence_of_the_command(service, molecule_model, lookhops, tmp_path):
    table = "name,color\na,b\n"
    source = tmp_path / "input.csv"
    source.write_text(table)
    code, _, said = lookhops("predict", molecule_model, source)
    refused = service.post("/v1/predict", table, content_type="text/csv")
    assert (code, refused.status) == (2, 400)
    assert said == f"lookhops: {tmp_path}/{refused.json()['error']}\n"


def test_limits(make_service):
    small = make_service(Limits(max_graphs=2, max_nodes=8, max_body=0.0005, max_file=0.0004))
    many = small.post("/v1/predict", {"smiles": ["C"] * 3})
    assert (many.status, many.json()["error"][:22]) == (413, "3 graphs are more than")
    large = small.post("/v1/predict", {"smiles": ["CCCCC", "CCCCC"]})
    assert (large.status, large.json()["error"][:9]) == (413, "10 nodes ")
    long = small.post("/v1/predict", {"smiles": ["C" * 600]})
    assert (long.status, "more than 0.0005 MB" in long.json()["error"]) == (413, True)
    declared = small.post("/v1/predict", {"smiles": ["C"]}, content_length="999999")
    assert declared.status == 413
    assert small.post("/v1/jobs?name=a.smi", "C" * 600).status == 413
    job = small.post("/v1/jobs?name=a.smi", "CCCCCCCCC nonane\n").json()
    failed = small.get(f"/v1/jobs/{job['id']}/result")
    assert (failed.status, failed.json()["error"]) == (413, "a: graph 1 has 9 nodes, more than 8.")
    assert small.post("/v1/predict", {"smiles": ["CC", "CC"]}).status == 200
    slow = make_service(Limits(max_seconds=1e-4)).post("/v1/predict", {"smiles": ["CC"]})
    assert (slow.status, slow.json()["error"][:12]) == (503, "It took over")


def test_who_may_ask(make_service, service):
    assert service.get("/v1/models", host="evil.example").status == 421
    assert service.get("/v1/models", host="localhost:8000").status == 200
    assert service.get("/v1/models", host="[::1]:8000").status == 200
    assert service.get("/v1/models", host="[").status == 421
    for origin in ("http://evil.example", "file://127.0.0.1", "127.0.0.1"):
        assert service.post("/v1/predict", {"smiles": ["C"]}, origin=origin).status == 403
    for origin in ("http://127.0.0.1", "https://127.0.0.1"):
        assert service.post("/v1/predict", {"smiles": ["C"]}, origin=origin).status == 200
    guarded = make_service(token="a long secret", hosts=())
    for sent in ("", "Bearer a long secre", "Bearer \xe9", "a long secret", "Basic a long secret"):
        given = {"authorization": sent} if sent else {}
        refused = guarded.get("/v1/models", host="anything", **given)
        assert (refused.status, refused.headers["www-authenticate"]) == (401, "Bearer")
        assert guarded.get("/metrics", **given).status == 401
    assert guarded.get("/v1/models", authorization="Bearer a long secret").status == 200
    for path in ("/", "/health", "/static/page.js", "/static/look.css"):
        assert guarded.get(path).status == 200
    assert guarded.get("/openapi.json").status == 401  # its examples are of the models
    assert b"molecules" not in guarded.get("/").content  # the page itself says nothing of models


def test_every_answer_forbids_what_is_elsewhere(service):
    for path in ("/", "/v1/models", "/nothing", "/static/openchemlib/openchemlib.js"):
        headers = service.get(path).headers
        assert "default-src 'none'" in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
    assert b"://" not in service.get("/").content
    assert service.get("/static/../app.py").status == 404


def test_the_editor_is_sent_compressed_and_kept(service):
    path = "/static/openchemlib/openchemlib.js"
    sent = service.get(path)
    assert sent.headers["content-encoding"] == "gzip"
    assert sent.headers["content-type"].startswith("text/javascript")
    assert b"CanvasEditor" in gzip.decompress(sent.content)
    again = service.get(path, if_none_match=sent.headers["etag"])
    assert (again.status, again.content) == (304, b"")
    assert "content-encoding" not in service.get("/static/page.js").headers


def test_models_health_and_metrics(service):
    found = service.get("/v1/models").json()
    assert [one["name"] for one in found] == ["molecules", "tasks"]
    assert found[0]["targets"] == [{"name": "", "classes": ["low", "medium", "high"]}]
    assert (found[0]["molecules"], found[1]["molecules"], found[0]["networks"]) == (True, False, 2)
    assert found[0]["tested"]["accuracy"].endswith("%")
    assert service.get("/health").json() == {"status": "ok", "models": 2}
    service.post("/v1/predict", {"smiles": SMILES})
    text = service.get("/metrics").content.decode()
    assert 'lookhops_requests_total{path="/v1/predict",status="200"}' in text
    assert "lookhops_batch_requests_bucket" in text
    assert service.get("/v1/nothing").json() == {"error": "GET /v1/nothing: Not Found."}
    assert service.get("/v1/predict").status == 405


def test_jobs(service, molecule_model, lookhops, tmp_path):
    source = tmp_path / "my file.csv"
    rows = [f"m{number},{'C' * (1 + number % 30)}O" for number in range(300)]
    source.write_text("\n".join(["id,smiles", *rows, "bad,C1"]) + "\n")
    asked = "/v1/jobs?name=my%20file.csv&coverage=0.8&neighbours=1"
    begun = service.post(asked, source.read_bytes())
    assert begun.status == 202
    assert (begun.json()["state"], begun.json()["name"]) == ("reading", "my-file.csv")
    at = f"/v1/jobs/{begun.json()['id']}"
    table = service.get(f"{at}/result")
    ask = ["--coverage", 0.8, "--neighbours", 1]
    _, printed, _ = lookhops("predict", molecule_model, source, *ask)
    assert table.content.decode().splitlines() == printed.splitlines()
    assert "my-file-answers.csv" in table.headers["content-disposition"]
    state = service.get(at).json()
    assert (state["state"], state["done"], state["total"]) == ("done", 300, 300)
    records = service.get(f"{at}/result?limit=3", accept="application/json").json()["answers"]
    some = {"smiles": ["CO", "CCO", "CCCO"], "coverage": 0.8, "neighbours": 1}
    alone = service.post("/v1/predict", some)
    assert close(numbers(alone.json()["answers"]), numbers(records))
    assert service.ask("DELETE", at).status == 204
    assert service.get(at).status == service.get(f"{at}/result").status == 404


def test_jobs_that_fail_and_jobs_that_are_too_many(make_service):
    small = make_service(Limits(max_jobs=2))
    assert (
        small.post("/v1/jobs?name=../../x.zip", b"").json()["error"].startswith("x.zip: not a kind")
    )
    assert small.post("/v1/jobs?name=.csv", b"").status == 400
    assert small.post("/v1/jobs?name=a.csv&coverage=2", b"").status == 400
    assert small.post("/v1/jobs", b"").json()["error"].endswith("query.name: field required.")
    keys = []
    for _ in range(4):
        keys.append(small.post("/v1/jobs?name=a.csv", "x,y\n1,2\n").json()["id"])
        failed = small.get(f"/v1/jobs/{keys[-1]}/result")
        assert (failed.status, failed.json()["error"][:6]) == (400, "a.csv:")
        assert small.get(f"/v1/jobs/{keys[-1]}").json()["error"] == failed.json()["error"]
    kept = [small.get(f"/v1/jobs/{key}").status for key in keys]
    assert kept == [404, 404, 200, 200]


def test_who_waits_for_a_job_that_is_forgotten_is_told(service):
    async def ask():
        lines = "".join(f"{'C' * (1 + i % 20)}\n" for i in range(2000)).encode()
        headers = {"host": "127.0.0.1"}
        job = (await service._ask("POST", "/v1/jobs?name=a.smi", lines, headers)).json()["id"]
        waiting = asyncio.create_task(service._ask("GET", f"/v1/jobs/{job}/result", b"", headers))
        await asyncio.sleep(0)
        await service._ask("DELETE", f"/v1/jobs/{job}", b"", headers)
        return await waiting

    answer = service.loop.run_until_complete(ask())
    assert (answer.status, "There is no job" in answer.json()["error"]) == (404, True)


def test_packed_graphs_and_sdf_as_jobs(service, tasks, tmp_path):
    from rdkit import Chem

    tasks.save(tmp_path / "some.graphs")
    job = service.post(
        "/v1/jobs?name=some.graphs&model=tasks", (tmp_path / "some.graphs").read_bytes()
    )
    assert len(service.get(f"/v1/jobs/{job.json()['id']}/result").content.splitlines()) == 7
    block = Chem.MolToMolBlock(Chem.MolFromSmiles("CCO"))
    sdf = service.post("/v1/predict", f"{block}$$$$\n", content_type="chemical/x-mdl-sdfile")
    assert (sdf.status, len(sdf.content.splitlines())) == (200, 2)


def test_embeddings(service, molecule_model):
    from lookhops.models.predictor import Predictor
    from lookhops.sources.molecules import from_smiles

    found = service.post("/v1/embed", {"smiles": [*SMILES, "C1"], "bits": 64}).json()
    direct = Predictor(molecule_model, "cpu").embed(from_smiles(SMILES), bits=64)
    assert found["fingerprint"] == direct.fingerprint.tolist()
    for one, other in zip(found["readout"], direct.readout.tolist(), strict=True):
        assert one == pytest.approx(other, abs=1e-5)
    assert [one["id"] for one in found["skipped"]] == ["4"]
    assert service.post("/v1/embed?bits=-1", TABLE, content_type="text/csv").status == 400


def test_the_description_has_examples_that_work(service):
    described = service.get("/openapi.json").json()
    assert {"/v1/models", "/v1/predict", "/v1/embed", "/v1/jobs", "/health"} <= set(
        described["paths"]
    )
    for path in ("/v1/predict", "/v1/explain", "/v1/embed"):
        content = described["paths"][path]["post"]["requestBody"]["content"]
        examples = content["application/json"]["examples"]
        assert set(examples) == {"molecules, SMILES", "tasks, node-link", "tasks, tables"}
        for name, example in examples.items():
            found = service.post(path, example["value"])
            assert (found.status, found.json()["notes"]) == (200, []), name
        table = content["text/csv"]["examples"]["molecules"]["value"]
        assert service.post(path, table, content_type="text/csv").status == 200
    operation = described["paths"]["/v1/predict"]["post"]
    assert set(operation["responses"]) == {"200", "400", "401", "404", "413", "415", "422", "503"}
    content = operation["requestBody"]["content"]
    assert {"coverage", "neighbours"} <= set(content["application/json"]["schema"]["properties"])
    parameters = {own["name"] for own in described["paths"]["/v1/jobs"]["post"]["parameters"]}
    assert "neighbours" in parameters


def test_there_is_no_example_where_columns_have_no_names():
    """As of TU sets: nodes are read by the places of their features."""
    encoding = Encoding("TU", "", Columns(("number 0",), ("label 0",), (("0", "1", "2"),)))
    model = SimpleNamespace(name="tu", predictor=SimpleNamespace(encoding=encoding))
    assert example_bodies([model]) == {}
    model.predictor.encoding = Encoding("plain", "", Columns())
    assert set(example_bodies([model])) == {"tu, node-link", "tu, tables"}


def test_explanations_add_up_and_are_those_of_the_rows_asked_for(service, molecule_model):
    body = {"smiles": ["CCO", "C1", "CC(=O)Oc1ccccc1", "CCN"], "rows": [2, 0]}
    found = service.post("/v1/explain", body)
    assert found.status == 200, found.json()
    ester, ethanol = found.json()["explanations"]
    assert (ester["id"], ethanol["id"]) == ("3", "1")
    assert (len(ester["nodes"]), len(ethanol["nodes"])) == (10, 3)
    for one in (ester, ethanol):
        shares = (one["baseline"], one["whole"], *one["nodes"], *one["edge_shares"])
        assert sum(shares) == pytest.approx(one["value"], abs=1e-4)
        assert one["picture"].startswith("<svg")
        assert one["unit"] == "log-odds"
    answers = service.post("/v1/predict", {"smiles": ["CCO"]}).json()["answers"][0]
    p = answers["probabilities"][answers["class"]]
    assert ethanol["value"] == pytest.approx(math.log(p / (1 - p)), abs=1e-4)
    job = service.post("/v1/jobs?name=a.smi", "CCO\nC1\nCCN\n").json()["id"]
    again = service.post("/v1/explain", {"job": job, "rows": [0]}).json()["explanations"][0]
    assert again["nodes"] == pytest.approx(ethanol["nodes"], abs=1e-5)
    for rows, said in (
        ([1], "Row 1 gave no graph: not SMILES"),
        ([3], "no row 3"),
        ([-1], "no row"),
    ):
        refused = service.post("/v1/explain", {"job": job, "rows": rows})
        assert (refused.status, said in refused.json()["error"]) == (400, True)
    many = service.post("/v1/explain", {"smiles": ["C"] * 25})
    assert (many.status, "25 graphs are more than the 24" in many.json()["error"]) == (413, True)


def test_counts_are_answered_with_intervals(counts_service):
    reply = counts_service.post("/v1/predict", {"smiles": SMILES})
    assert reply.status == 200, reply.json()
    for answer in reply.json()["answers"]:
        low, high = answer["interval"]
        assert low <= round(answer["value"]) <= high


def test_a_model_that_is_no_network_predicts_and_says_what_it_cannot(classical_service):
    assert classical_service.post("/v1/predict", {"smiles": SMILES}).status == 200
    for path in ("/v1/explain", "/v1/embed"):
        refused = classical_service.post(path, {"smiles": ["CCO"]})
        assert refused.status == 400
        assert refused.json()["error"].startswith("means: ")  # and not where its folder is


@pytest.fixture(scope="module")
def features_service(tmp_path_factory):
    """A service of a model that reads a number and a label of whole molecules."""
    from lookhops.core.options import RECOMMENDED
    from lookhops.models.training import train_into
    from lookhops.serve.app import create_app
    from lookhops.training import Protocol
    from serve.conftest import InProcess

    folder = tmp_path_factory.mktemp("served") / "columns"
    graphs = load("solubility", descriptors="none")[:100]
    columns = dict(graphs.columns)
    columns["temperature"] = np.arange(100) % 37 + 0.5
    columns["solvent"] = np.array(["water", "ethanol"] * 50, dtype=object)
    graphs = replace(graphs, columns=columns).with_features("temperature,solvent")
    protocol = Protocol(seeds=(11,), max_epochs=1)
    train_into(folder, graphs, replace(RECOMMENDED, hidden=8, layers=2), protocol, device="cpu")
    return InProcess(create_app([folder], device="cpu"))


def test_features_of_whole_graphs_come_with_the_question(features_service):
    ask, [about] = features_service.post, features_service.get("/v1/models").json()
    assert about["features"] == [
        {"name": "temperature"},
        {"name": "solvent", "values": ["ethanol", "water"]},
    ]
    features = {"temperature": [25, 36.5, None], "solvent": ["water", "water", "ethanol"]}
    answer = ask("/v1/predict", {"smiles": SMILES, "features": features})
    assert answer.status == 200, answer.content
    rows = zip(SMILES, *features.values(), strict=True)
    table = csv_of([{"smiles": s, "temperature": t, "solvent": w} for s, t, w in rows])
    same = ask("/v1/predict", table, content_type="text/csv", accept="application/json")
    assert numbers(same.json()["answers"]) == numbers(answer.json()["answers"])
    lacking = ask("/v1/predict", {"smiles": SMILES, "features": {"solvent": ["water"] * 3}})
    assert (lacking.status, "temperature" in lacking.json()["error"]) == (422, True)
    assert ask("/v1/predict", {"smiles": SMILES}).status == 422
    few = ask("/v1/predict", {"smiles": SMILES, "features": {"temperature": [1]}})
    assert (few.status, "temperature" in few.json()["error"]) == (400, True)
    described = features_service.get("/openapi.json").json()["paths"]["/v1/predict"]["post"]
    assert "422" in described["responses"]
    body = described["requestBody"]["content"]["application/json"]
    [example] = body["examples"].values()
    assert ask("/v1/predict", example["value"]).status == 200
