"""Random sets of small graphs for Hypothesis, and a naive reading of a set to compare with."""

from typing import Any

import numpy as np
import torch
from hypothesis import strategies as st

from lookhops import Graphs
from lookhops.graphs.features import Features
from lookhops.graphs.indexing import Texts

KINDS = st.sampled_from(["none", "labels", "numbers", "both"])


@st.composite
def graph_sets(
    draw: st.DrawFn, repeats: bool = True, min_graphs: int = 0, min_nodes: int = 0
) -> Graphs:
    """Sets with empty graphs, graphs without edges, self-loops and (maybe) repeated edges."""
    sizes = draw(st.lists(st.integers(min_nodes, 4), min_size=min_graphs, max_size=5))
    edges = []
    first = 0
    for size in sizes:
        if size:
            node = st.integers(first, first + size - 1)
            pair = st.tuples(node, node)
            edges += draw(st.lists(pair, max_size=8, unique=not repeats))
        first += size
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    source, target = torch.tensor(edges, dtype=torch.long).reshape(-1, 2).t()
    y = torch.from_numpy(rng.integers(0, 3, len(sizes)))
    return Graphs.from_edges(
        source,
        target,
        torch.tensor(sizes, dtype=torch.long),
        nodes=_features(rng, draw(KINDS), first),
        edges=_features(rng, draw(KINDS), len(edges)),
        whole=_features(rng, draw(KINDS), len(sizes)),
        **({"y": y, "class_names": ["a", "b", "c"]} if draw(st.booleans()) else {}),
        columns={
            "value": rng.normal(size=len(sizes)),
            "id": np.array([f"graph é {i}" for i in range(len(sizes))], dtype=object),
        },
        node_ids=Texts.of([f"né{i}" for i in range(first)]) if draw(st.booleans()) else None,
        name="random",
    )


def _features(rng: np.random.Generator, kind: str, rows: int) -> Features:
    made: dict[str, Any] = {}
    if kind in ("labels", "both"):
        made["labels"] = torch.from_numpy(rng.integers(0, (2, 3), (rows, 2)))
        made["label_names"] = ("role", "étage")
        made["label_values"] = (("old", "new"), ("0", "1", "2", "3"))
    if kind in ("numbers", "both"):
        made["numbers"] = torch.from_numpy(rng.normal(size=(rows, 2)).astype(np.float32))
        made["number_names"] = ("age", "size")
    return Features(**made)


def two_graphs() -> Graphs:
    """A path 0-1-2 with a one-way edge 0->2, and a single node."""
    return Graphs.from_edges(
        torch.tensor([0, 1, 1, 2, 0]),
        torch.tensor([1, 0, 2, 1, 2]),
        torch.tensor([3, 1]),
        nodes=Features(labels=torch.tensor([[0], [2], [1], [0]])),
        edges=Features(numbers=torch.tensor([[1.0], [2.0], [3.0], [4.0], [5.0]])),
        y=torch.tensor([1, 0]),
    )


def renumbered(graphs: Graphs, order: torch.Tensor) -> Graphs:
    """The graphs with their nodes in another order: node i is node order[i] of the same graph."""
    new = order.argsort()
    return Graphs.from_edges(
        new[graphs.source.long()],
        new[graphs.target.long()],
        graphs.nodes_per_graph,
        nodes=graphs.nodes.take(order),
        edges=graphs.edges,
    )


def unpacked(graphs: Graphs, columns: bool = True) -> list[dict[str, Any]]:
    """Each graph in plain Python, read off the flat tensors node by node."""
    x = graphs.x.tolist()
    edge_attr = None if graphs.edge_attr is None else graphs.edge_attr.tolist()
    whole = graphs.whole.columns()
    node_ptr, row_ptr, source = (
        t.tolist() for t in (graphs.node_ptr, graphs.row_ptr, graphs.source)
    )
    ids, found = graphs.node_ids, []
    for number in range(len(graphs)):
        first, last = node_ptr[number], node_ptr[number + 1]
        found.append(
            {
                "x": x[first:last],
                "edges": [
                    (source[e] - first, node - first, edge_attr and edge_attr[e])
                    for node in range(first, last)
                    for e in range(row_ptr[node], row_ptr[node + 1])
                ],
                "whole": None if whole is None else whole[number].tolist(),
                "y": None if graphs.y is None else int(graphs.y[number]),
                "columns": {k: v[number] for k, v in graphs.columns.items()} if columns else {},
                "ids": ids.cut(first, last).tolist() if columns and ids is not None else None,
            }
        )
    return found
