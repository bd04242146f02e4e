"""Parts of graphs, and what can be learnt from them again."""

import networkx as nx
import numpy as np
import torch

from lookhops.explain.fidelity import only_nodes, retrained_accuracy, top_nodes
from lookhops.explain.truths import hops_truth
from lookhops.sources.hop_tasks import hop_task


def test_top_nodes_are_those_of_each_graph():
    score, ptr = np.array([3.0, 1, 2, 0, 5]), np.array([0, 3, 5])
    assert top_nodes(score, np.array([2, 1]), ptr).tolist() == [True, False, True, False, True]


def test_a_part_is_the_induced_subgraph():
    graphs = hop_task(1, 6)
    keep = torch.rand(graphs.num_nodes, generator=torch.Generator().manual_seed(0)) < 0.6
    parts, first = only_nodes(graphs, keep).to_networkx(), graphs.node_ptr.tolist()
    for number, graph in enumerate(graphs.to_networkx()):
        inside = [node for node in graph if keep[first[number] + node]]
        want = nx.convert_node_labels_to_integers(graph.subgraph(inside), ordering="sorted")
        assert set(parts[number].edges) == set(want.edges)
        assert len(parts[number]) == len(inside)


def test_what_decides_can_be_learnt_again_and_the_rest_cannot():
    """Marked nodes and the ends beside them hold the class; all other nodes know nothing of it."""
    task = hops_truth(1, size=80)
    assert task.graphs.labels is not None
    decides = (task.truth | (task.graphs.labels[:, 0] == 1)).numpy().astype(float)
    assert retrained_accuracy(task.graphs, decides) > 0.8
    assert retrained_accuracy(task.graphs, -decides) < 0.7
