"""Predict from an exported model with NumPy and onnxruntime alone.

lookhops data example transfers
lookhops train transfers/ --model network -o model && lookhops export model -o model.onnx
python examples/predict_onnx.py model.onnx transfers/
"""

import csv
import json
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import onnxruntime

session = onnxruntime.InferenceSession(sys.argv[1])
about = json.loads(session.get_modelmeta().custom_metadata_map["lookhops.json"])
tables = ("edges", "nodes", "graphs")
files = (Path(sys.argv[2], f"{kind}.csv").read_text("utf-8") for kind in tables)
edges, nodes, graphs = (list(csv.DictReader(text.splitlines())) for text in files)
sizes = Counter(row["graph"] for row in nodes)
number = {name: number for number, name in enumerate(sizes)}
nodes.sort(key=lambda row: number[row["graph"]])  # the nodes of a graph stand together
known = {row["graph"]: row for row in graphs}  # features of whole graphs
place = {(row["graph"], row["node"]): number for number, row in enumerate(nodes)}
ends = [tuple(place[row["graph"], row[end]] for end in ("source", "target")) for row in edges]
# Edges go both ways: one that the table has in one direction is turned, but no self-loop. Edges of
# a model of directed graphs, and those of a table that has both directions, stay as they are.
if not about.get("directed") and Counter(ends) != Counter((b, a) for a, b in ends):
    turned = [i for i, (a, b) in enumerate(ends) if a != b]
    ends += [ends[i][::-1] for i in turned]
    edges += [edges[i] for i in turned]


def columns(kind, rows):
    labels, numbers = about.get(f"{kind}_labels", {}), about.get(f"{kind}_numbers", [])
    code = {name: {value: i for i, value in enumerate(values)} for name, values in labels.items()}
    # -1: a value that the model has not seen
    codes = [[code[name].get(row[name] or "(blank)", -1) for name in labels] for row in rows]
    values = [[float(row[name] or "nan") for name in numbers] for row in rows]
    return {
        f"{kind}_labels": np.array(codes, np.int64).reshape(len(rows), len(labels)),
        f"{kind}_numbers": np.array(values, np.float32).reshape(len(rows), len(numbers)),
    }


given = columns("node", nodes) | columns("edge", edges)
given |= columns("graph", [known[name] for name in sizes])
given["edge_index"] = np.array(ends, np.int64).reshape(-1, 2).T
given["graph_sizes"] = np.array(list(sizes.values()))
[answers] = session.run(None, {name: given[name] for name in about["inputs"]})
for name, row in zip(sizes, answers, strict=True):
    print(name, end="")
    for target in about["answers"]:
        p, classes = row[slice(*target["channels"])], target.get("classes")
        print(f" {classes[p.argmax()]} {p.max():.3f}" if classes else f" {p[0]:.4g}", end="")
    print()
