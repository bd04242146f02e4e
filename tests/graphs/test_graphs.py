"""`Graphs`: what is in a set, on any device."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from hypothesis import given
from torch import Tensor

from lookhops import Features, Graphs, LookHopsError
from lookhops.graphs import concatenate
from lookhops.graphs.choosing import slice_of
from strategies import graph_sets, two_graphs, unpacked


def test_what_is_in_a_small_set():
    graphs = two_graphs()
    assert (len(graphs), graphs.num_nodes, graphs.num_edges) == (2, 4, 5)
    assert graphs.num_undirected_edges == 3
    assert not graphs.is_undirected
    assert graphs.num_features == 3
    assert graphs.num_classes == 2
    assert graphs.row_ptr.tolist() == [0, 1, 3, 5, 5]
    assert graphs.source.tolist() == [1, 0, 2, 0, 1]
    assert graphs.target.tolist() == [0, 1, 1, 2, 2]
    assert graphs.batch.tolist() == [0, 0, 0, 1]
    assert graphs.edge_attr is not None
    assert graphs.edge_attr.flatten().tolist() == [2, 1, 4, 5, 3]
    assert graphs.x.tolist() == [[1, 0, 0], [0, 0, 1], [0, 1, 0], [1, 0, 0]]
    assert graphs.nodes.labels is not None
    assert graphs.nodes.labels.dtype == torch.uint8


def test_a_set_without_features_shows_a_model_ones():
    graphs = Graphs.from_edges(torch.tensor([0]), torch.tensor([1]), torch.tensor([2]))
    assert graphs.num_features == 0
    assert graphs.x.tolist() == [[1.0], [1.0]]
    assert graphs.edge_attr is None


def test_the_fingerprint_is_of_the_content():
    graphs = two_graphs()
    assert graphs.fingerprint == two_graphs().fingerprint
    assert graphs.fingerprint != graphs[[1, 0]].fingerprint


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@given(graph_sets())
def test_on_the_device_everything_is_the_same(graphs: Graphs):
    there = graphs.to("cuda")
    index = list(range(len(graphs)))[::-1]
    assert there.select(index).device.type == "cuda"
    assert unpacked(there.select(index)) == unpacked(graphs.select(index))
    assert unpacked(there.undirected()) == unpacked(graphs.undirected())
    assert there.is_undirected == graphs.is_undirected
    assert there.fingerprint == graphs.fingerprint
    batches = [g for batch in there.batches(2) for g in unpacked(batch)]
    assert batches == unpacked(graphs, columns=False)


def test_features_of_whole_graphs_travel(tmp_path: Path):
    whole = Features(
        torch.tensor([[36.6], [float("nan")]]), ("temperature",), torch.tensor([[1], [0]])
    )
    graphs = replace(two_graphs(), whole=whole.packed())
    wanted = [[36.6, 0, 1], [float("nan"), 1, 0]]

    def rows(one: Graphs) -> Tensor:
        assert one.whole.names.columns == ("temperature", "label 0 0", "label 0 1")
        return one.whole.columns()

    def same(one: Graphs, order: list[int]) -> bool:
        expected = torch.tensor(wanted)[order]
        return torch.allclose(rows(one), expected, equal_nan=True)

    graphs.save(tmp_path / "set.graphs")
    assert same(Graphs.load(tmp_path / "set.graphs"), [0, 1])
    assert same(graphs.select([1, 0, 1]), [1, 0, 1])
    assert same(slice_of(graphs, 1, 2), [1])
    assert same(concatenate([graphs, graphs[:1]]), [0, 1, 0])
    assert same(next(graphs.batches(2)), [0, 1])
    assert same(graphs.undirected().to("cpu"), [0, 1])
    assert graphs.to("meta").whole.numbers.device.type == "meta"
    assert graphs.fingerprint != two_graphs().fingerprint
    with pytest.raises(LookHopsError, match="whole"):
        concatenate([graphs, two_graphs()])


def test_features_of_whole_graphs_come_from_pyg_networkx_and_tables():
    pytest.importorskip("torch_geometric")
    networkx = pytest.importorskip("networkx", reason="needs networkx (in the extra `dev`)")
    graphs = replace(two_graphs(), whole=Features(torch.tensor([[1.5], [2.5]]), ("age",)))
    data = graphs.to_pyg()
    assert [one.u.tolist() for one in data] == [[[1.5]], [[2.5]]]
    assert Graphs.from_pyg(data).whole.numbers.tolist() == [[1.5], [2.5]]
    carried = [one.graph["age"] for one in graphs.to_networkx()]
    assert carried == [1.5, 2.5]
    path = networkx.path_graph(2)
    path.graph |= {"age": 3.5, "place": "hill"}
    found = Graphs.from_networkx([path], graph_features=["place", "age"]).whole
    assert (found.number_names, found.label_values) == (("age",), (("hill",),))
    assert Graphs.from_networkx([path]).whole.width == 0
    with pytest.raises(LookHopsError, match=r"Graph 1.*'age'"):
        Graphs.from_networkx([path, networkx.path_graph(2)], graph_features=["age"])
    edges = {"graph": ["b", "a"], "source": [1, 1], "target": [2, 2]}
    tables = edges, None, {"graph": ["a", "b"], "class": ["x", "y"], "age": [1.5, 2.5]}
    found = Graphs.from_tables(*tables, features="age")
    ages = dict(zip(found.columns["id"], found.whole.numbers.flatten().tolist(), strict=True))
    assert ages == {"a": 1.5, "b": 2.5}
    assert found.columns["age"].tolist() == found.whole.numbers[:, 0].tolist()
    with pytest.raises(LookHopsError, match="'size'"):
        Graphs.from_tables(*tables, features="size")
