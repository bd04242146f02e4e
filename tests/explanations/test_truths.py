"""Tasks with a known truth: the marked nodes are those that decide."""

import networkx as nx
import pytest
import torch

from lookhops import LookHopsError
from lookhops.datasets.hop_tasks import BLUE, MARKED, RED
from lookhops.explanations.truths import (
    BASE,
    ba_2motifs,
    hops_truth,
    substructure_truth,
    truth_task,
)


@pytest.mark.parametrize("k", [1, 3])
def test_ends_of_the_arms_decide_hop_tasks(k):
    task = hops_truth(k, size=20)
    ptr, label = task.graphs.node_ptr.tolist(), task.graphs.labels[:, 0]
    for number, graph in enumerate(task.graphs.to_networkx()):
        first, last = ptr[number], ptr[number + 1]
        own, truth = label[first:last], task.truth[first:last]
        roots = (own == MARKED).nonzero().flatten().tolist()
        distance = nx.multi_source_dijkstra_path_length(graph, set(roots))
        want = [distance[i] == k and own[i] in (RED, BLUE) for i in range(last - first)]
        assert truth.tolist() == want
        assert truth.sum() == 4
        colours = own[truth].tolist()
        assert colours.count(RED) == colours.count(BLUE) == 2


def test_motifs_decide_ba_2motifs():
    task = ba_2motifs(size=10, seed=1)
    assert task.graphs.y.bincount().tolist() == [5, 5]
    for graph, y in zip(task.graphs.to_networkx(), task.graphs.y.tolist(), strict=True):
        motif = graph.subgraph(range(BASE, len(graph)))
        assert nx.is_isomorphic(motif, nx.house_graph() if y else nx.cycle_graph(5))
        assert nx.is_connected(graph)
    assert task.truth.view(10, -1)[:, BASE:].all()
    assert not task.truth.view(10, -1)[:, :BASE].any()


def test_atoms_of_a_substructure_decide():
    pytest.importorskip("rdkit")
    task = substructure_truth("nitro", ("[N+](=O)[O-]",))
    per_graph = torch.stack(
        [part.sum() for part in task.truth.split(task.graphs.nodes_per_graph.tolist())]
    )
    assert torch.equal(per_graph > 0, task.graphs.y == 1)
    assert set((per_graph[task.graphs.y == 1] % 3).tolist()) == {0}
    assert len(task.graphs) == 4 * int(task.graphs.y.sum())


def test_an_unknown_task_is_a_sentence():
    with pytest.raises(LookHopsError, match="known are hops-2"):
        truth_task("gravity")
