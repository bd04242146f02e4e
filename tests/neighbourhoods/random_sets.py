"""Random sets of graphs, larger than Hypothesis draws them."""

from typing import Any

import numpy as np
import torch

from lookhops import Graphs
from lookhops.graphs.features import Features, default_values


def random_graphs(
    seed: int,
    graphs: int = 40,
    most_nodes: int = 30,
    degree: float = 3.0,
    directed: bool = False,
    features: str = "labels",
) -> Graphs:
    """Graphs of random size, with labels of uneven frequency, attributes, flags, or all."""
    rng = np.random.default_rng(seed)
    nodes = rng.integers(1, most_nodes, graphs)
    first = np.cumsum(nodes) - nodes
    edges = rng.poisson(nodes * degree / 2)
    start, size = np.repeat(first, edges), np.repeat(nodes, edges)
    source = start + rng.integers(0, size)
    target = start + rng.integers(0, size)
    if not directed:
        source, target = np.append(source, target), np.append(target, source)
    made: dict[str, Any] = {}
    total = int(nodes.sum())
    if features in ("labels", "all"):
        made["labels"] = torch.from_numpy(rng.geometric(0.4, (total, 1)).clip(max=6) - 1)
        made["label_values"] = default_values([8])  # two of the labels never occur
    columns = []
    if features in ("attributes", "all"):
        columns += [rng.normal(size=total), rng.integers(0, 5, total), np.full(total, 3.0)]
    if features in ("flags", "all"):
        columns += [rng.integers(0, 2, total) * 7.5, rng.random(total) < 0.1]
    if columns:
        made["numbers"] = torch.from_numpy(np.stack(columns, axis=1).astype(np.float32))
    return Graphs.from_edges(
        torch.from_numpy(source),
        torch.from_numpy(target),
        torch.from_numpy(nodes),
        y=torch.from_numpy(rng.integers(0, 2, graphs)),
        class_names=["a", "b"],
        name="random",
        nodes=Features(**made),
    )
