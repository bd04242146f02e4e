"""Tasks with a known truth: the marked nodes are those that decide."""

import networkx as nx
import pytest

from lookhops import LookHopsError
from lookhops.sources.hop_tasks import BLUE, MARKED, RED
from truths import (
    BASE,
    ba_2motifs,
    fluorine_carbonyl,
    hops_truth,
    nitro,
    truth_task,
)


@pytest.mark.parametrize("k", [1, 3])
def test_ends_of_the_arms_decide_hop_tasks(k):
    task = hops_truth(k, size=20)
    ptr, label = task.graphs.node_ptr.tolist(), task.graphs.nodes.labels[:, 0]
    for number, graph in enumerate(task.graphs.to_networkx()):
        first, last = ptr[number], ptr[number + 1]
        own, truth = label[first:last], task.truth[first:last]
        roots = (own == MARKED).nonzero().flatten().tolist()
        distance = nx.multi_source_dijkstra_path_length(graph, set(roots))
        want = [distance[i] == k and own[i] in (RED, BLUE) for i in range(last - first)]
        assert truth.tolist() == want
        colours = own[truth].tolist()
        assert colours.count(RED) == colours.count(BLUE) == 2


def test_motifs_decide_ba_2motifs_and_the_number_of_edges_does_not():
    task = ba_2motifs(size=40, seed=1)
    assert task.graphs.y.bincount().tolist() == [20, 20]
    edges: dict[int, set[int]] = {0: set(), 1: set()}
    for graph, y in zip(task.graphs.to_networkx(), task.graphs.y.tolist(), strict=True):
        graph = nx.Graph(graph)
        motif = graph.subgraph(range(BASE, len(graph)))
        assert nx.is_isomorphic(motif, nx.house_graph() if y else nx.cycle_graph(5))
        assert nx.is_connected(graph)
        rest = graph.subgraph(range(BASE))
        assert all(len(cycle) > 5 for cycle in nx.minimum_cycle_basis(rest))
        edges[y].add(graph.number_of_edges())
    assert len(edges[0] & edges[1]) > 2
    assert task.truth.view(40, -1)[:, BASE:].all()
    assert not task.truth.view(40, -1)[:, :BASE].any()


def test_atoms_of_a_substructure_decide():
    pytest.importorskip("rdkit")
    task = nitro(size=20)
    each = task.truth.split(task.graphs.nodes_per_graph.tolist())
    assert task.graphs.y.tolist() == [1] * 10 + [0] * 10
    assert [int(part.sum()) for part in each] == [3] * 10 + [0] * 10


def test_neither_fluorine_nor_a_carbonyl_group_tells_alone():
    pytest.importorskip("rdkit")
    task = fluorine_carbonyl(size=40)
    smiles, y = task.graphs.columns["smiles"], task.graphs.y.tolist()
    has = {(("F" in s), ("=O" in s or "O=" in s)) for s, c in zip(smiles, y, strict=True) if not c}
    assert sum(y) == 20
    assert has <= {(True, False), (False, True), (True, True)}
    assert len(has) >= 2


def test_an_unknown_task_is_a_sentence():
    with pytest.raises(LookHopsError, match="hops-1"):
        truth_task("gravity")
