"""Bad bodies: whatever is sent, the service refuses it or answers it, and goes on."""

import json
from random import Random

import pytest
from damage import HOSTILE, damaged_bytes, damaged_json, damaged_table
from hypothesis import given
from hypothesis import strategies as st

GOOD = [
    {"smiles": ["CCO", "c1ccccc1"], "ids": ["a", "b"], "coverage": 0.9, "model": "molecules"},
    {
        "model": "tasks",
        "graphs": [
            {
                "id": "path",
                "nodes": [{"id": 1, "kind": "red"}, {"id": 2, "kind": "blue"}],
                "edges": [{"source": 1, "target": 2}],
            }
        ],
    },
    {
        "model": "tasks",
        "tables": {
            "edges": "graph,source,target\na,1,2\n",
            "nodes": "graph,node,kind\na,1,red\na,2,blue\n",
        },
    },
    {"smiles": ["CCN"], "bits": 8, "rows": [0], "target": None},
]
FILES = {
    "text/csv": b"name,smiles\nethanol,CCO\nbenzene,c1ccccc1\n",
    "text/tab-separated-values": b"graph\tsource\ttarget\na\t1\t2\n",
    "application/x-ndjson": json.dumps(GOOD[1]["graphs"][0]).encode() + b"\n",
    "chemical/x-daylight-smiles": b"CCO ethanol\nc1ccccc1 benzene\n",
    "chemical/x-mdl-sdfile": b"\n\n\n  1  0  0  0  0  0  0  0  0  0999 V2000\n    0.0000    0.0000"
    b"    0.0000 C   0  0\nM  END\n$$$$\n",
}
PATHS = (*["/v1/predict"] * 15, *["/v1/embed"] * 4, "/v1/explain")
JSON = "application/json"


def bad_request(random: Random):
    """A path, a body and its type, made from good ones."""
    path = random.choice(PATHS)
    how = random.randrange(8)
    if how < 3:
        body = damaged_json(random.choice(GOOD), random)
        return path, json.dumps(body).encode(errors="surrogatepass"), JSON
    if how == 3:
        return path, damaged_bytes(json.dumps(random.choice(GOOD)).encode(), random), JSON
    if how == 4:
        deep = random.choice((b"[", b'{"smiles":', b'{"graphs":[{"a":')) * random.choice((9, 5000))
        return path, deep, JSON
    if how == 5:
        key = random.choice(("smiles", "graphs", "tables", "ids", "coverage", "model", "job"))
        body = {"smiles": ["C"], key: random.choice(HOSTILE)}
        return path, json.dumps(body).encode(errors="surrogatepass"), JSON
    kind = random.choice(list(FILES))
    damage = damaged_table if how == 6 and kind == "text/csv" else damaged_bytes
    query = random.choice(
        ("", "?model=tasks", "?coverage=nan", "?bits=x", "?model=%00", "?coverage=")
    )
    return path + query, damage(FILES[kind], random), random.choice((kind, kind, kind, "x/y", JSON))


@pytest.mark.filterwarnings("ignore")
def test_two_thousand_bad_bodies(service):
    seen = dict.fromkeys((200, 400, 404, 413, 415), 0)
    for seed in range(2000):
        path, body, kind = bad_request(Random(seed))
        answer = service.post(path, body, content_type=kind)
        assert answer.status in seen, (seed, path, body[:300], kind, answer.content)
        seen[answer.status] += 1
        if answer.status != 200:
            assert set(answer.json()) == {"error"}
    assert seen[400] > 1000
    assert service.post("/v1/predict", GOOD[0]).status == 200


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(
    st.fixed_dictionaries(
        {},
        optional=dict.fromkeys(
            ("smiles", "graphs", "tables", "ids", "coverage", "model"), ANYTHING
        ),
    )
    | ANYTHING
)
def test_any_json_is_refused_or_answered(service, body):
    assert service.post("/v1/predict", json.dumps(body), content_type=JSON).status < 500
