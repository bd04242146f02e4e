"""Predict from an exported model with NumPy and onnxruntime alone.

lookhops data example transfers
lookhops train transfers/ -o model && lookhops export model -o model.onnx
python examples/predict_onnx.py model.onnx transfers/
"""

import csv
import json
import sys
from pathlib import Path

import numpy as np
import onnxruntime

session = onnxruntime.InferenceSession(sys.argv[1])
about = json.loads(session.get_modelmeta().custom_metadata_map["lookhops.json"])
files = (Path(sys.argv[2], f"{kind}.csv").read_text("utf-8") for kind in ("edges", "nodes"))
edges, nodes = (list(csv.DictReader(text.splitlines())) for text in files)
graphs = list(dict.fromkeys(row["graph"] for row in nodes))
nodes.sort(key=lambda row: graphs.index(row["graph"]))  # the nodes of a graph stand together
place = {(row["graph"], row["node"]): number for number, row in enumerate(nodes)}
ends = [[place[row["graph"], row[end]] for row in edges] for end in ("source", "target")]


def columns(kind, rows):
    labels, numbers = about[f"{kind}_labels"], about[f"{kind}_numbers"]
    code = {name: {value: i for i, value in enumerate(values)} for name, values in labels.items()}
    codes = [[code[name].get(row[name], -1) for name in labels] for row in rows]  # -1: not seen
    values = [[float(row[name] or "nan") for name in numbers] for row in rows]
    return {
        f"{kind}_labels": np.array(codes, np.int64).reshape(len(rows), len(labels)),
        f"{kind}_numbers": np.array(values, np.float32).reshape(len(rows), len(numbers)),
    }


given = columns("node", nodes) | columns("edge", edges * 2)  # edges go both ways
given["edge_index"] = np.array([ends[0] + ends[1], ends[1] + ends[0]])
given["graph_sizes"] = np.array([sum(row["graph"] == name for row in nodes) for name in graphs])
[answers] = session.run(None, {name: given[name] for name in about["inputs"]})
classes = about["answers"][0]["classes"]
for name, p in zip(graphs, answers, strict=True):
    print(name, classes[p.argmax()], f"{p.max():.3f}")
