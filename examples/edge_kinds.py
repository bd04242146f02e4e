"""Graphs that differ in nothing but the kinds of their edges, and a network that reads these.

Every graph has four thick edges among its thin ones. In one class no two thick edges meet, in the
other two of them do. Nodes carry nothing, and the graph and the number of its thick edges are drawn
before the class: without the kinds of edges there is nothing to learn.

    python examples/edge_kinds.py
"""

from __future__ import annotations

import random

import networkx as nx
from sklearn.model_selection import train_test_split

from lookhops import LookHopsClassifier

THICK = 4


def make(size: int = 600, seed: int = 0) -> tuple[list[nx.Graph], list[str]]:
    """Random graphs of 12 to 18 nodes, and whether two thick edges meet."""
    draw = random.Random(seed)
    graphs, classes = [], []
    while len(graphs) < size:
        graph = nx.random_labeled_tree(draw.randint(12, 18), seed=draw.randrange(2**32))
        graph.add_edges_from(draw.sample(list(nx.non_edges(graph)), 3))
        samples = [draw.sample(list(graph.edges), THICK) for _ in range(100)]
        ends = {len({node for edge in edges for node in edge}): edges for edges in samples}
        both = {"apart": ends.get(2 * THICK), "meet": ends.get(2 * THICK - 1)}
        if all(both.values()):  # the graph can be of either class
            chosen = draw.choice(list(both))
            nx.set_edge_attributes(graph, "thin", "kind")
            nx.set_edge_attributes(graph, dict.fromkeys(both[chosen], "thick"), "kind")
            graphs.append(graph)
            classes.append(chosen)
    return graphs, classes


def accuracy(edges: str, graphs: list[nx.Graph], classes: list[str]) -> float:
    """Of a network alone, without fingerprint and totals, on graphs that it has not seen."""
    parts = train_test_split(graphs, classes, test_size=0.25, random_state=0, stratify=classes)
    train, test, train_classes, test_classes = parts
    network = {"hidden": 32, "layers": 3, "pool": "none", "fingerprint": None, "totals": False}
    training = {"dropout": 0, "batch_size": 64, "learning_rate": 3e-3, "max_epochs": 50}
    model = LookHopsClassifier(edges=edges, **network, **training, random_state=0)
    return model.fit(train, train_classes).score(test, test_classes)


def main() -> None:
    """Print how often a network is right with the kinds of edges, and without."""
    graphs, classes = make()
    for edges in ("use", "ignore"):
        print(f"edges={edges!r}: {accuracy(edges, graphs, classes):.1%} of 150 graphs")


if __name__ == "__main__":
    main()
