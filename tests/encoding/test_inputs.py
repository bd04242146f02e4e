"""`Packer`: what an estimator is given, packed the same at `predict` as at `fit`."""

import pytest
import torch

from lookhops import LookHopsError
from lookhops.datasets.hop_tasks import hop_task
from lookhops.encoding.inputs import Packer, classes_in, kind_of

nx = pytest.importorskip("networkx", reason="needs networkx (in the extra `dev`)")


def coloured(*colours: str) -> "nx.Graph":
    graph = nx.path_graph(len(colours), create_using=nx.Graph)
    nx.set_node_attributes(graph, dict(enumerate(colours)), "colour")
    return graph


def test_whatever_a_networkx_graph_calls_its_class_it_can_be_packed():
    graphs = [coloured("red"), coloured("red")]
    graphs[0].graph["y"] = [1.5, None]
    graphs[1].graph["y"] = {"mass": 3}
    assert len(Packer.learn(graphs).pack(graphs)) == 2


def test_a_list_of_sets_is_one_set():
    tasks = hop_task(1, size=6)
    packed = Packer.learn(list(tasks)).pack([tasks[:2], tasks[2:]])
    assert torch.equal(packed.x, tasks.x)
    assert torch.equal(packed.edge_index, tasks.edge_index)
    with pytest.raises(LookHopsError, match="fitted on graphs, and this is pyg"):
        Packer("graphs").pack(tasks.to_pyg())


def test_kinds_and_the_classes_that_they_carry():
    tasks = hop_task(1, size=4)
    names = [tasks.class_names[c] for c in tasks.y.tolist()]
    assert classes_in(tasks, tasks).tolist() == names
    assert classes_in(tasks.to_pyg(), tasks).tolist() == tasks.y.tolist()
    assert classes_in([coloured("red")], tasks) is None
    assert kind_of(["CCO"]) == "smiles"
    with pytest.raises(LookHopsError, match="the first of these is int"):
        kind_of([1, 2])
