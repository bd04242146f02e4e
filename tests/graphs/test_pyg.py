"""From and to PyG."""

from copy import copy

import pytest
import torch
from hypothesis import given
from torch_geometric.data import Batch, Data, HeteroData, InMemoryDataset
from torch_geometric.utils import coalesce

from lookhops import Graphs, LookHopsError
from strategies import graph_sets, unpacked


@given(graph_sets(repeats=False, min_nodes=1))
def test_there_and_back(graphs: Graphs):
    again = Graphs.from_pyg(graphs.to_pyg())
    assert unpacked(again) == unpacked(graphs, columns=False)


def test_fields_of_graphs_are_features_where_they_are_named():
    ends = torch.tensor([[0, 1], [1, 0]])
    data = [
        Data(torch.ones(2, 3), ends, u=torch.ones(1, 2), temperature=t, solvent=s, ph=p)
        for t, s, p in (
            (20.5, "water", torch.tensor([1.0, 2.0])),
            (torch.tensor([90.0]), "ether", torch.tensor([3.0, 4.0])),
        )
    ]
    assert Graphs.from_pyg(data).whole.number_names == ("number 0", "number 1")
    names = ["temperature", "solvent", "ph"]
    rows = [copy(one) for one in data]
    for one in rows:  # a batch keeps a row a graph apart where the field has one row
        one.ph = one.ph[None]
    for carriers in (data, Batch.from_data_list(rows)):
        whole = Graphs.from_pyg(carriers, names).whole
        assert whole.number_names == ("number 0", "number 1", "temperature", "ph 0", "ph 1")
        assert whole.numbers[:, 2:].tolist() == [[20.5, 1, 2], [90, 3, 4]]
        assert (whole.label_names, whole.label_values) == (("solvent",), (("ether", "water"),))
        assert whole.labels.tolist() == [[1], [0]]
    del data[1].temperature
    with pytest.raises(LookHopsError, match=r"Graph 1.*'temperature'"):
        Graphs.from_pyg(data, names)
    data[1].temperature = float("inf")
    with pytest.raises(LookHopsError, match=r"Graph 1: 'temperature'.*inf"):
        Graphs.from_pyg(data, names)


@given(graph_sets(repeats=False))
def test_edges_are_in_pygs_order(graphs: Graphs):
    for one in graphs.to_pyg():
        assert one.validate()
        assert torch.equal(one.edge_index, coalesce(one.edge_index, num_nodes=one.num_nodes))


def test_one_hot_features_are_kept_as_labels():
    data = Data(
        x=torch.eye(4)[[3, 0]],
        edge_index=torch.tensor([[0, 1], [1, 0]]),
        edge_attr=torch.eye(2),
        y=torch.tensor([1]),
    )
    graphs = Graphs.from_pyg([data, data])
    assert graphs.nodes.numbers is None
    assert graphs.nodes.labels is not None
    assert graphs.nodes.labels.flatten().tolist() == [3, 0, 3, 0]
    assert graphs.nodes.label_sizes == (4,)
    assert graphs.edges.label_sizes == (2,)
    assert graphs.num_classes == 2
    assert torch.equal(graphs.to_pyg()[0].x, data.x)


def test_features_of_another_width_of_float_stay_as_they_are():
    graphs = Graphs.from_pyg([Data(x=torch.eye(2, dtype=torch.float64))])
    assert graphs.x.dtype == torch.float64
    assert graphs.nodes.labels is None


class InMemory(InMemoryDataset):
    def __init__(self, data: list[Data], transform=None) -> None:
        super().__init__(None, transform)
        self.data, self.slices = self.collate(data)


@given(graph_sets(repeats=False, min_graphs=1, min_nodes=1))
def test_a_dataset_is_packed_from_its_storage(graphs: Graphs):
    dataset = InMemory(graphs.to_pyg())
    expected = unpacked(graphs, columns=False)
    assert unpacked(Graphs.from_pyg(dataset)) == expected
    assert unpacked(Graphs.from_pyg(dataset[::-1])) == expected[::-1]


def test_fields_of_a_dataset_are_checked_too():
    dataset = InMemory([Data(x=torch.rand(2, 3), edge_index=torch.tensor([[0], [1]]))] * 3)
    dataset._data.x = dataset._data.x.to_sparse()
    with pytest.raises(LookHopsError, match="Graph 0: x"):
        Graphs.from_pyg(dataset)


def test_a_dataset_with_a_transform_is_packed_as_it_shows_itself():
    def double(data: Data) -> Data:
        data.x = data.x * 2
        return data

    data = [Data(x=torch.rand(2, 3), edge_index=torch.tensor([[0], [1]])) for _ in range(3)]
    x = Graphs.from_pyg(InMemory(data, double)).x
    assert torch.equal(x, torch.cat([one.x * 2 for one in data]))


X = torch.rand(2, 3)
EDGE = torch.tensor([[0], [1]])


@pytest.mark.parametrize(
    ("bad", "named"),
    [
        (Data(x=X, y=torch.tensor([0, 1])), ": y"),
        (Data(x=X, y=torch.tensor([-1])), ": y"),
        (Data(x=X[:, :2], y=torch.tensor([0])), ": x"),
        (Data(num_nodes=2, y=torch.tensor([0])), ": x"),
        (Data(num_nodes=0), ""),
        (HeteroData(), ".*HeteroData"),
        ("CCO", ".*str"),
        (Data(x=X / 0, y=torch.tensor([0])), ".*node feature"),
        (Data(x=X, edge_index=EDGE + 1, y=torch.tensor([0])), ".*edge"),
        (Data(x=X, edge_index=EDGE - 1, y=torch.tensor([0])), ".*edge"),
        (Data(x=torch.full((2, 3), 1e300, dtype=torch.float64)), ".*node feature"),
        (Data(x=X.to_sparse()), ": x"),
        (Data(x=X.to("meta")), ": x"),
        (Data(x="CCO"), ": x"),
        (Data(x=X, edge_index=EDGE[0]), ": edge_index"),
        (Data(x=X, edge_index=EDGE.float()), ": edge_index"),
        (Data(x=X, edge_attr="single"), ": edge_attr"),
        (Data(x=X, y="active"), ": y"),
    ],
)
def test_what_cannot_be_packed_is_refused(bad: Data, named: str):
    good = Data(x=X, edge_index=EDGE, y=torch.tensor([0]))
    with pytest.raises(LookHopsError, match=f"Graph 1{named}"):
        Graphs.from_pyg([good, bad])


@pytest.mark.parametrize("large", [1_000, 1_000_000, 2**60])
def test_a_large_whole_number_is_the_name_of_a_class(large: int):
    data = [Data(x=X, y=torch.tensor([large if i % 2 else 0])) for i in range(4)]
    assert Graphs.from_pyg(data).class_names == ("0", str(large))


def test_a_dataset_of_several_types_of_nodes_is_said():
    data = HeteroData()
    data["a"].x = data["b"].x = X
    data["a", "to", "b"].edge_index = EDGE
    for one in (data, [data], InMemory([data, data])):
        with pytest.raises(LookHopsError, match=r"Graph 0.*HeteroData"):
            Graphs.from_pyg(one)


def test_one_graph_or_a_batch_is_a_set_too():
    data = Data(x=X, edge_index=EDGE, y=torch.tensor([0]))
    assert len(Graphs.from_pyg(data)) == 1
    batch = Batch.from_data_list([data, data])
    assert unpacked(Graphs.from_pyg(batch)) == unpacked(Graphs.from_pyg([data, data]))


def test_other_classes_or_none_can_be_given():
    data = [Data(x=X, y=torch.tensor([0.5])), Data(x=X, y=torch.tensor([1.5]))]
    assert Graphs.from_pyg(data, y=None).y is None
    assert Graphs.from_pyg(data, y=torch.tensor([1, 0])).num_classes == 2


@pytest.mark.parametrize("edge_attr", [None, torch.eye(2), torch.tensor([[0.5], [2.0]])])
def test_weights_of_edges_are_a_number_of_that_name(edge_attr):
    data = Data(x=torch.ones(2, 1), edge_index=torch.tensor([[0, 1], [1, 0]]), edge_attr=edge_attr)
    data.edge_weight = torch.tensor([3.0, 4.0])
    graphs = Graphs.from_pyg([data, data])
    assert graphs.edges.number_names[-1] == "edge_weight"
    order = graphs.source[:2].long()  # the edge of each source
    assert torch.equal(graphs.edges.numbers[:2, -1], data.edge_weight[order])
    assert graphs.num_edge_features == 1 + (0 if edge_attr is None else edge_attr.shape[1])
