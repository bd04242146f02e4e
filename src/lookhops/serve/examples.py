"""Questions that the served models answer, as examples in the description of the API."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from lookhops.encoding.columns import Columns
from lookhops.serve.models import ServedModel

#: The body of a request.
Example = dict[str, Any]

MOLECULES = {"ethanol": "CCO", "benzene": "c1ccccc1"}
#: A path of three nodes.
NODES, EDGES = (1, 2, 3), ((1, 2), (2, 3))


def bodies(models: Iterable[ServedModel]) -> dict[str, Example]:
    """Bodies of requests in JSON, each for one of the models, by what they are called.

    A model of molecules is asked about SMILES. Any other is asked about a path, in the columns that
    it was trained on; where these have no names there is nothing to write.
    """
    found: dict[str, Example] = {}
    for model in models:
        encoding = model.predictor.checkpoint.encoding
        asked: dict[str, Example] = {}
        if model.reads_molecules:
            asked["SMILES"] = {"smiles": list(MOLECULES.values()), "ids": list(MOLECULES)}
        elif encoding.by_name and _named(encoding.nodes) and _named(encoding.edges):
            nodes = [{"id": node, **_features(encoding.nodes)} for node in NODES]
            ends = [{"source": source, "target": target} for source, target in EDGES]
            edges = [{**one, **_features(encoding.edges)} for one in ends]
            asked["node-link"] = {"graphs": [{"id": "path", "nodes": nodes, "edges": edges}]}
            asked["tables"] = {"tables": {"edges": _csv(edges), "nodes": _csv(nodes)}}
        found |= {f"{model.name}, {form}": {"model": model.name, **asked[form]} for form in asked}
    return found


def table(first: ServedModel) -> str | None:
    """A table for the model that answers where none is named; none where it needs several."""
    if not first.reads_molecules:
        return None
    return "name,smiles\n" + "".join(f"{name},{smiles}\n" for name, smiles in MOLECULES.items())


def _named(columns: Columns | None) -> bool:
    """Whether columns can be written by name; so can none at all."""
    return columns is None or not columns.width or not columns.are_unnamed


def _features(columns: Columns | None) -> dict[str, Any]:
    """A value for each column of a node or an edge."""
    if columns is None:
        return {}
    values = zip(columns.labels, columns.values, strict=True)
    labels = {name: own[0] if own else "" for name, own in values}
    return {**labels, **dict.fromkeys(columns.attributes, 0.5)}


def _csv(rows: Sequence[Mapping[str, Any]]) -> str:
    """Rows of the one graph as the text of a table; a node's id is its ``node`` there."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["graph", *("node" if name == "id" else name for name in rows[0])])
    writer.writerows(["path", *row.values()] for row in rows)
    return text.getvalue()
