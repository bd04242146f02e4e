"""The recommended network by its formulas, from the files that it is saved in.

A few lines of NumPy and whole numbers of Python, which know nothing of the package: each graph
alone, in dense matrices and double precision.
"""

import json
from math import ceil, log, log1p, sqrt

import numpy as np
import pytest
import torch
from asking import HERE
from safetensors.numpy import load_file

MODEL = HERE / "transfers" / "model"
INPUT = HERE / "inputs" / "new_transfers.jsonl"
CONFIG = json.loads((MODEL / "config.json").read_text())
TENSORS = {name[3:]: value for name, value in load_file(MODEL / "model.safetensors").items()}
GRAPHS = [json.loads(line) for line in INPUT.read_text().splitlines()]
NODES, EDGES = CONFIG["encoding"]["nodes"], CONFIG["encoding"]["edges"]
WORD = 1 << 64
GOLDEN = 0x9E3779B97F4A7C15


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def relu(x):
    return np.maximum(x, 0)


def dense(name, x):
    return x @ TENSORS[f"{name}.weight"].astype(float).T + TENSORS[f"{name}.bias"]


def told(rows, columns, side):
    """Numbers on the training part's scale, then one-hot labels."""
    numbers = np.array([[row[name] for name in columns["numbers"]] for row in rows], float)
    numbers = (numbers - TENSORS[f"learnt.{side}.shift"]) * TENSORS[f"learnt.{side}.factor"]
    [name], [values] = columns["labels"], columns["values"]
    labels = np.array([[row[name] == value for value in values] for row in rows], float)
    return numbers, labels


def ends(graph):
    """Both directions of every edge: source, target, what is told of it."""
    number = {node["id"]: place for place, node in enumerate(graph["nodes"])}
    there = [(number[edge["source"]], number[edge["target"]], edge) for edge in graph["edges"]]
    return [*there, *((target, source, edge) for source, target, edge in there)]


def network(graph):
    """The layers: what they read, summed, and the dense layers' answer."""
    a = CONFIG["learner"]["options"]
    x = np.concatenate(told(graph["nodes"], NODES, "nodes"), 1)
    edges = ends(graph)
    numbers, labels = told([edge for _, _, edge in edges], EDGES, "edges")
    inner = relu(dense("edges.inner", numbers)).reshape(len(edges), a["layers"], 8)
    raw = labels @ TENSORS["edges.table"].T + (inner * TENSORS["edges.outer"]).sum(-1)
    factor = 2 * sigmoid(10 * raw)
    here, total = list(range(len(x))), 0.0  # the nodes that are left
    for layer in range(a["layers"]):
        links = [(source, target, e) for e, (source, target, _) in enumerate(edges)]
        links = [link for link in links if link[0] in here and link[1] in here]
        degree = {node: sum(source == node for source, _, _ in links) for node in here}
        hop = np.zeros((len(here), len(here)))
        for source, target, e in links:
            place = here.index(target), here.index(source)
            hop[place] -= factor[e, layer] / sqrt(degree[source] * degree[target])
        z = dense(f"convs.{layer}.project", x)
        anchors = [z, hop @ z]
        while len(anchors) <= a["k"]:
            anchors.append(2 * hop @ anchors[-1] - anchors[-2])
        weight, theta = TENSORS[f"convs.{layer}.weight"], TENSORS[f"pools.{layer}.theta"]
        merged = sum(one * w for one, w in zip(anchors, weight, strict=True))
        merged = merged + TENSORS[f"convs.{layer}.bias"]
        raw = sum(one @ w for one, w in zip(anchors, theta, strict=True))
        score = sigmoid(raw + TENSORS[f"pools.{layer}.bias"])
        if layer < a["layers"] - 1:
            cut = np.sort(score)[::-1][ceil(a["ratio"] * len(here) - 1e-7) - 1]
            keep = score >= cut - 100 * np.finfo(np.float32).eps * score.max()
            here = [node for node, kept in zip(here, keep, strict=True) if kept]
            merged, score = merged[keep], score[keep]
        norm = np.linalg.norm(merged, axis=1, keepdims=True)
        x = relu(score[:, None] * merged / np.where(norm > 0, norm, 1))
        total = total + np.concatenate((x.max(0), x.mean(0), x.sum(0) / 10))
    return total, dense("mlp.4", relu(dense("mlp.2", relu(dense("mlp.0", total)))))


def combine(first, second):
    """The hash of a pair: splitmix64's finaliser of ``golden * first + second``."""
    x = (first * GOLDEN + second) % WORD
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 % WORD
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB % WORD
    return x ^ (x >> 31)


def fingerprint(graph):
    """The weights of the known neighbourhoods, counted in unary; and how many are known."""
    [label], [values] = NODES["labels"], NODES["values"]
    [number], bins = NODES["numbers"], TENSORS["learnt.bins.edges"]
    [kind], [kinds] = EDGES["labels"], EDGES["values"]
    current = [
        combine(combine(GOLDEN, values.index(node[label])), int((bins <= node[number]).sum()))
        for node in graph["nodes"]
    ]
    edges = [
        (source, target, combine(GOLDEN, kinds.index(edge[kind])))
        for source, target, edge in ends(graph)
    ]
    found = list(current)
    for _ in range(CONFIG["learner"]["options"]["fingerprint"]):
        message = [0] * len(current)
        for source, target, of_edge in edges:
            message[target] += combine(of_edge, current[source])
        current = [combine(*pair) for pair in zip(current, message, strict=True)]
        found += current
    codes = [combine(one, found[:place].count(one)) for place, one in enumerate(found)]
    row = {int(code) % WORD: place for place, code in enumerate(TENSORS["learnt.codes"])}
    known = [row[code] for code in codes if code in row]
    weight = TENSORS["readings.fingerprint.weight"].astype(float)[known]
    return 3 / sqrt(max(len(known), 1)) * weight.sum(0), len(known)


def totals(graph):
    """What a graph holds in all, on the training part's scale and cut off, and what it is worth."""
    edges, size = ends(graph), len(graph["nodes"])
    degree = [sum(target == node for _, target, _ in edges) for node in range(size)]
    [label], [values] = NODES["labels"], NODES["values"]
    [kind], [kinds] = EDGES["labels"], EDGES["values"]
    found = [log1p(size), log1p(len(edges))]
    for counted, known in (
        ([min(one, 6) for one in degree], range(7)),
        ([node[label] for node in graph["nodes"]], values),
    ):
        counts = [counted.count(value) for value in known]
        found += [log1p(count) for count in counts] + [count / size for count in counts]
    found.append(np.mean([node[NODES["numbers"][0]] for node in graph["nodes"]]))
    of_kind = [edge[kind] for _, _, edge in edges]
    counts = [of_kind.count(value) for value in kinds]
    found += [log1p(count) for count in counts] + [count / len(edges) for count in counts]
    found.append(np.mean([edge[EDGES["numbers"][0]] for _, _, edge in edges]))
    scaled = (np.array(found) - TENSORS["learnt.mean"]) * TENSORS["learnt.factor"]
    inner = relu(dense("readings.totals.inner", scaled.clip(-4, 4)))
    return dense("readings.totals.outer", inner), scaled


def test_the_network_is_the_recommended_one():
    small = {"hidden": 8, "layers": 3, "bins": 4}
    assert CONFIG["learner"]["options"] == {
        "conv": "licheb",
        "pool": "lookhops",
        "k": 2,
        "ratio": 0.9,
        "edge_ratio": None,
        "normalize": None,
        "activation": "sigmoid",
        "readout": "max+mean+sum",
        "dropout": 0.2,
        "fingerprint": 5,
        "totals": True,
        "edges": "use",
        "scale": "standard",
        **small,
    }


def test_what_is_read_of_graphs(lookhops, tmp_path):
    """The sum of the readouts."""
    file = tmp_path / "embedded.npy"
    code, _, said = lookhops("embed", MODEL, INPUT, "--bits", 0, "--device", "cpu", "-o", file)
    assert code == 0, said
    expected = np.stack([network(graph)[0] for graph in GRAPHS])
    np.testing.assert_allclose(np.load(file), expected, rtol=2e-6, atol=1e-6)


def test_answers_by_the_formulas(lookhops):
    code, out, said = lookhops("predict", MODEL, INPUT, "--device", "cpu", "--json")
    assert code == 0, said
    temperature = CONFIG["metrics"]["seeds"]["11"]["temperature"]
    known, least, most = [], [], []
    for graph, answer in zip(GRAPHS, json.loads(out), strict=True):
        (_, own), (exact, count), (held, scaled) = network(graph), fingerprint(graph), totals(graph)
        for part in (own, exact, held):  # each counts
            assert abs(part[1] - part[0]) > 1e-3
        output = (own + exact + held) / temperature
        expected = np.exp(output) / np.exp(output).sum()
        p = list(answer["probabilities"].values())
        assert log(p[1] / p[0]) == pytest.approx(output[1] - output[0], abs=3e-6)
        np.testing.assert_allclose(p, expected, rtol=3e-6)
        assert answer["class"] == ("ring" if expected[1] >= 0.4 else "ordinary")
        known.append(count)
        least.append(scaled.min())
        most.append(scaled.max())
    assert min(known) > 10
    assert min(least) < -4 or max(most) > 4  # the cut matters


def test_seeds_are_averaged(lookhops):
    folder = HERE / "number" / "model"
    source = HERE / "inputs" / "new_molecules.csv"
    given = ["--device", "cpu", "--json"]
    code, out, said = lookhops("predict", folder, source, *given)
    assert code == 0, said
    answers = [one for one in json.loads(out) if "value" in one]
    each = []
    for seed in (11, 22):
        code, out, said = lookhops("explain", folder, source, "--seed", seed, *given)
        assert code == 0, said
        each.append([one["value"] for one in json.loads(out)["graphs"] if "nodes" in one])
    np.testing.assert_allclose([one["value"] for one in answers], np.mean(each, 0), rtol=1e-5)


SCORES = {
    "rounding": ([1, 0.5, 0.5 - 1.1e-5, 0.5 - 1.3e-5], 0.5, 3),  # 100 roundings of the largest
    "a share that rounding makes larger": (np.linspace(0, 1, 25), 0.56, 14),
    "one stays": ([0.1, 0.2, 0.3], 0.01, 1),
}


@pytest.mark.parametrize(("scores", "ratio", "kept"), SCORES.values(), ids=SCORES)
def test_scores_that_rounding_tells_apart_count_as_equal(scores, ratio, kept):
    from lookhops.nn import LookHopsPooling

    pool = LookHopsPooling(1, k=0, ratio=ratio, activation="none")
    with torch.no_grad():
        pool.theta.fill_(1)
        pool.bias.fill_(0)
    x = torch.tensor(np.asarray(scores), dtype=torch.float32)[:, None]
    perm = pool(x, torch.zeros(2, 0, dtype=torch.long))[4]
    assert len(perm) == kept


def number_with_tail(place, ratio):
    """Quartiles -1 and 1, and ``ratio`` times a normal distribution's standard deviation."""
    far = sqrt(((ratio / 0.6745) ** 2 - 0.9) / 0.1)
    return (1 if place % 2 else -1) * (far if place % 20 < 2 else 1.0)


def test_what_is_learnt_of_a_training_part(lookhops, tmp_path):
    """Totals count that vary in 20 graphs; numbers are bent with tails twice the normal's."""
    lines = []
    for number in range(260):
        kinds = ["a", "b" if number < 19 else "a", "c" if 100 <= number < 120 else "a"]
        part = "train" if number < 240 else "val" if number < 250 else "test"
        nodes = [
            {
                "id": place,
                "kind": kind,
                "less": number_with_tail(3 * number + place, 1.98),
                "more": number_with_tail(3 * number + place, 2.02),
            }
            for place, kind in enumerate(kinds)
        ]
        edges = [{"source": 0, "target": 1}, {"source": 1, "target": 2}]
        own = {"id": number, "label": "xy"[number % 2], "part": part}
        lines.append(json.dumps({**own, "nodes": nodes, "edges": edges}) + "\n")
    (tmp_path / "few.jsonl").write_text("".join(lines))
    words = (
        "--label-column label --split column:part --epochs 1 "
        "--conv none --pool none --numbers less,more --device"
    )
    options = [*words.split(), "cpu", "--fingerprint", "none", "--totals"]
    code, _, said = lookhops("train", tmp_path / "few.jsonl", *options, "-o", tmp_path / "model")
    assert code == 0, said
    learnt = load_file(tmp_path / "model" / "model.safetensors")
    assert learnt["11.learnt.nodes.bent"].tolist() == [False, True]
    factor = learnt["11.learnt.factor"]
    config = json.loads((tmp_path / "model" / "config.json").read_text())
    assert config["encoding"]["nodes"]["values"] == [["a", "b", "c"]]
    counts = factor[2 + 2 * 7 :][:3]  # after the sizes, and counts and shares of degrees
    np.testing.assert_allclose(counts[2], 1 / np.std([log1p(1)] * 20 + [0] * 220))
    assert counts[1] == 0
    assert counts[0] > 0
