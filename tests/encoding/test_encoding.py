"""`Encoding`: the columns that a model is told, graphs read by name, and what is saved."""

import json
import warnings
from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lookhops import Graphs, LookHopsError
from lookhops.encoding import Encoding, ReadOtherwise
from lookhops.encoding.columns import NOT_SEEN
from strategies import graph_sets


@given(graph_sets())
def test_columns_are_the_attributes_and_the_one_hot_labels(graphs: Graphs):
    encoding = Encoding.fit(graphs)
    found = encoding.columns(graphs)
    assert found.shape == (graphs.num_nodes, encoding.width)
    torch.testing.assert_close(found, graphs.x.float())


@given(graph_sets(), st.data())
def test_columns_of_chosen_nodes(graphs: Graphs, data: st.DataObject):
    encoding = Encoding.fit(graphs)
    some = st.lists(st.integers(0, graphs.num_nodes - 1)) if graphs.num_nodes else st.just([])
    node = torch.tensor(data.draw(some), dtype=torch.long)
    found = encoding.columns(graphs, node, torch.float64)
    assert found.dtype == torch.float64
    torch.testing.assert_close(found, encoding.columns(graphs, dtype=torch.float64)[node])


def people(*roles: str, **numbers: list[float]) -> Graphs:
    """A path of people with a role and numbers, each value numbered in order of appearance."""
    values = list(dict.fromkeys(roles))
    count = len(roles)
    return Graphs.from_edges(
        torch.arange(count - 1),
        torch.arange(1, count),
        torch.tensor([count]),
        labels=torch.tensor([[values.index(role)] for role in roles]),
        label_names=["role"],
        label_values=[values],
        attributes=torch.tensor(list(numbers.values())).t() if numbers else None,
        attribute_names=list(numbers),
        name="people",
    )


TRAINED = people("old", "new", "vip", age=[1.0, 2.0, 3.0], size=[4.0, 5.0, 6.0])


def test_nothing_is_said_and_nothing_changes_where_the_columns_are_the_same():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read = Encoding.fit(TRAINED).read(TRAINED)
    assert read.attributes is TRAINED.attributes
    assert read.labels is TRAINED.labels


def test_values_and_columns_in_another_order_or_only_some_of_them_are_the_same():
    encoding = Encoding.fit(TRAINED)
    other = people("new", "old", size=[5.0, 4.0], age=[2.0, 1.0])
    assert other.label_values != TRAINED.label_values
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read = encoding.read(other)
    assert torch.equal(encoding.columns(read), encoding.columns(TRAINED)[[1, 0]])
    assert read.label_values == TRAINED.label_values


def test_names_match_in_any_case_where_none_is_called_so():
    encoding = Encoding.fit(TRAINED)
    other = people("new", "old", AGE=[2.0, 1.0], Size=[5.0, 4.0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read = encoding.read(replace(other, label_names=("Role",)))
    assert torch.equal(encoding.columns(read), encoding.columns(TRAINED)[[1, 0]])
    both = people("new", "old", age=[2.0, 1.0], Age=[8.0, 9.0], size=[5.0, 4.0])
    with pytest.warns(UserWarning, match="does not know 'Age'"):
        read = encoding.read(both)
    assert torch.equal(encoding.columns(read), encoding.columns(TRAINED)[[1, 0]])


def test_a_value_that_was_not_seen_is_said_and_told_as_zeros():
    encoding = Encoding.fit(TRAINED)
    strange = people("old", "guest", "guest", age=[1.0, 2.0, 3.0], size=[4.0, 5.0, 6.0])
    with pytest.warns(ReadOtherwise, match=r"people: 2 nodes with a 'role' .*: guest \(2\)"):
        read = encoding.read(strange)
    assert read.label_values == (("old", "new", "vip", NOT_SEEN),)
    told = encoding.columns(read)
    assert told[:, 2:].tolist() == [[1, 0, 0], [0, 0, 0], [0, 0, 0]]
    with warnings.catch_warnings():  # said once
        warnings.simplefilter("error")
        assert torch.equal(encoding.columns(encoding.read(read)), told)


def test_a_column_that_is_not_known_is_named_and_left_out():
    more = people("old", "new", zipcode=[9.0, 9.0], age=[1.0, 2.0], size=[4.0, 5.0])
    encoding = Encoding.fit(TRAINED)
    with pytest.warns(ReadOtherwise, match="does not know 'zipcode' of the nodes"):
        read = encoding.read(more)
    assert torch.equal(encoding.columns(read), encoding.columns(TRAINED)[:2])


def test_a_column_that_is_missing_is_refused_by_name_with_what_is_there_instead():
    with pytest.raises(LookHopsError) as said:
        Encoding.fit(TRAINED).read(people("x", "y", "z", zipcode=[1.0, 2.0, 3.0]))
    for name in ("'age'", "'size'", "'zipcode'", "'role'", "'x', 'y', 'z'", "trained on people"):
        assert name in str(said.value)


def test_a_list_of_numbers_that_happens_to_be_one_hot_is_still_the_numbers():
    networkx = pytest.importorskip("networkx", reason="needs networkx (in the extra `dev`)")
    graph, one_hot = networkx.path_graph(2), networkx.path_graph(2)
    networkx.set_node_attributes(graph, {0: [0.5, 0.5], 1: [0.0, 1.0]}, "side")
    networkx.set_node_attributes(one_hot, {0: [1, 0], 1: [0, 1]}, "side")
    encoding = Encoding.fit(Graphs.from_networkx([graph]))
    read = encoding.read(Graphs.from_networkx([one_hot]))
    assert encoding.columns(read).tolist() == [[1, 0], [0, 1]]


def test_features_of_edges_are_read_by_name_where_the_model_looks_at_them():
    def bonded(*kinds: str) -> Graphs:
        values = sorted(set(kinds))
        labels = torch.tensor([[values.index(kind)] for kind in kinds])
        ends = torch.arange(len(kinds))
        rest = {"edge_label_names": ["bond"], "edge_label_values": [values]}
        return Graphs.from_edges(
            ends, ends + 1, torch.tensor([len(kinds) + 1]), edge_labels=labels, **rest
        )

    encoding = Encoding.fit(bonded("a", "b", "c"))
    assert encoding.read(bonded("c", "b")).edge_labels.flatten().tolist() == [2, 1]
    with pytest.warns(ReadOtherwise, match=r"1 edge with a 'bond' .*: d \(1\)"):
        encoding.read(bonded("a", "d"))
    bare = replace(TRAINED, labels=None, attributes=None)
    with pytest.raises(LookHopsError, match="its edges have no 'bond'"):
        encoding.read(replace(bare, featuriser="mine"))
    assert Encoding.fit(bonded("a", "b"), edges=False).read(bonded("c")).num_edge_features == 1


def unnamed(*sizes: int, name: str = "mine", featuriser: str = "") -> Graphs:
    return Graphs.from_edges(
        torch.tensor([0]),
        torch.tensor([1]),
        torch.tensor([2]),
        labels=torch.zeros(2, len(sizes), dtype=torch.long) if sizes else None,
        label_sizes=sizes,
        name=name,
        featuriser=featuriser,
    )


def test_nodes_without_features_are_told_as_ones():
    graphs = unnamed()
    encoding = Encoding.fit(graphs)
    assert encoding.width == 1
    assert encoding.columns(graphs).tolist() == [[1.0], [1.0]]
    assert encoding.columns(graphs, torch.tensor([1])).tolist() == [[1.0]]


def test_features_without_names_are_read_by_their_places():
    encoding = Encoding.fit(unnamed(3, 1, featuriser="tu"))
    assert encoding.read(unnamed(3, 1)).label_sizes == (3, 1)
    rows = torch.tensor([[0.0, 1.0, 0.0, 1.0], [1.0, 0.0, 0.0, 1.0]])
    numbers = replace(unnamed(), attributes=rows)
    assert encoding.read(numbers).labels.tolist() == [[1, 0], [0, 0]]
    with pytest.raises(LookHopsError, match=r"^yours: its nodes have 5 features; .* mine.* have 4"):
        encoding.read(unnamed(5, name="yours"))
    with pytest.raises(LookHopsError, match=r"other numbers than 0 and 1 .* 'label 0'.* float64"):
        encoding.read(replace(numbers, attributes=rows / 2))
    with pytest.raises(LookHopsError, match=r"made by 'molecules-1'; .* made by 'tu'"):
        encoding.read(unnamed(3, 1, featuriser="molecules-1"))


def test_rows_that_are_not_one_hot_are_a_value_that_was_not_seen():
    encoding = Encoding.fit(unnamed(3))
    rows = torch.tensor([[0.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    said = (
        r"mine: 1 node with a 'label 0' that the model has not seen: no value \(1\). It is read as"
    )
    with pytest.warns(ReadOtherwise, match=said):
        read = encoding.read(replace(unnamed(), attributes=rows))
    assert encoding.columns(read).tolist() == rows.tolist()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert torch.equal(encoding.read(read).labels, read.labels)
    rows[0, 1:] = 1
    with pytest.warns(ReadOtherwise, match=r"several at once \(1\).* train it on .* float64"):
        read = encoding.read(replace(unnamed(), attributes=rows))
    assert encoding.columns(read).tolist() == [[0, 0, 0], [0, 1, 0]]


def test_lists_that_were_one_hot_are_read_so_by_name():
    label = {"label_names": ("x",), "label_values": (("0", "1", "2"),)}
    encoding = Encoding.fit(replace(unnamed(3), **label))
    rows, names = torch.tensor([[0.0, 0.0, 0.0], [0.0, 1.0, 0.0]]), ("x 0", "x 1", "x 2")
    with pytest.warns(ReadOtherwise, match=r"'x' that the model has not seen: no value \(1\)"):
        read = encoding.read(replace(unnamed(), attributes=rows, attribute_names=names))
    assert encoding.columns(read).tolist() == rows.tolist()


def test_features_without_names_are_left_out_where_the_model_reads_none():
    graphs = replace(unnamed(3), edge_attributes=torch.ones(unnamed().num_edges, 2))
    graphs = replace(graphs, edge_attribute_names=("attribute 0", "attribute 1"))
    with pytest.warns(ReadOtherwise, match="not know 'attribute 0', 'attribute 1' of the edges"):
        read = Encoding.fit(unnamed(3)).read(graphs)
    assert read.edge_attributes is None


def test_a_model_of_an_earlier_version_reads_by_place():
    data = {"name": "old", "featuriser": "tu", "num_features": 4, "label_sizes": [3]}
    encoding = Encoding.unnamed(data)
    graphs = people("old", "new", "vip", age=[1.0, 2.0, 3.0])
    assert torch.equal(encoding.columns(encoding.read(graphs)), graphs.x)


@given(graph_sets())
def test_what_is_saved_is_read_again(graphs: Graphs):
    encoding = Encoding.fit(graphs)
    assert Encoding.from_dict(json.loads(json.dumps(encoding.to_dict()))) == encoding
