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
from lookhops.graphs.features import Features, default_values
from strategies import graph_sets


@given(graph_sets())
def test_columns_are_the_attributes_and_the_one_hot_labels(graphs: Graphs):
    encoding = Encoding.fit(graphs)
    found = encoding.encode_nodes(graphs)
    assert found.shape == (graphs.num_nodes, encoding.width)
    torch.testing.assert_close(found, graphs.x.float())


@given(graph_sets(), st.data())
def test_columns_of_chosen_nodes(graphs: Graphs, data: st.DataObject):
    encoding = Encoding.fit(graphs)
    some = st.lists(st.integers(0, graphs.num_nodes - 1)) if graphs.num_nodes else st.just([])
    node = torch.tensor(data.draw(some), dtype=torch.long)
    found = encoding.encode_nodes(graphs, node, dtype=torch.float64)
    assert found.dtype == torch.float64
    torch.testing.assert_close(found, encoding.encode_nodes(graphs, dtype=torch.float64)[node])


def people(*roles: str, **numbers: list[float]) -> Graphs:
    """A path of people with a role and numbers, each value numbered in order of appearance."""
    values = list(dict.fromkeys(roles))
    count = len(roles)
    return Graphs.from_edges(
        torch.arange(count - 1),
        torch.arange(1, count),
        torch.tensor([count]),
        nodes=Features(
            numbers=torch.tensor(list(numbers.values())).t() if numbers else None,
            number_names=list(numbers),
            labels=torch.tensor([[values.index(role)] for role in roles]),
            label_names=["role"],
            label_values=[values],
        ),
        name="people",
    )


TRAINED = people("old", "new", "vip", age=[1.0, 2.0, 3.0], size=[4.0, 5.0, 6.0])


def test_nothing_is_said_and_nothing_changes_where_the_columns_are_the_same():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read = Encoding.fit(TRAINED).read(TRAINED)
    assert read.nodes.numbers is TRAINED.nodes.numbers
    assert read.nodes.labels is TRAINED.nodes.labels


def test_values_and_columns_in_another_order_or_only_some_of_them_are_the_same():
    encoding = Encoding.fit(TRAINED)
    other = people("new", "old", size=[5.0, 4.0], age=[2.0, 1.0])
    assert other.nodes.label_values != TRAINED.nodes.label_values
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read = encoding.read(other)
    assert torch.equal(encoding.encode_nodes(read), encoding.encode_nodes(TRAINED)[[1, 0]])
    assert read.nodes.label_values == TRAINED.nodes.label_values


def test_names_match_in_any_case_where_none_is_called_so():
    encoding = Encoding.fit(TRAINED)
    other = people("new", "old", AGE=[2.0, 1.0], Size=[5.0, 4.0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read = encoding.read(replace(other, nodes=replace(other.nodes, label_names=("Role",))))
    assert torch.equal(encoding.encode_nodes(read), encoding.encode_nodes(TRAINED)[[1, 0]])
    both = people("new", "old", age=[2.0, 1.0], Age=[8.0, 9.0], size=[5.0, 4.0])
    with pytest.warns(UserWarning, match="'Age'"):
        read = encoding.read(both)
    assert torch.equal(encoding.encode_nodes(read), encoding.encode_nodes(TRAINED)[[1, 0]])


def test_a_value_that_was_not_seen_is_said_and_told_as_zeros():
    encoding = Encoding.fit(TRAINED)
    strange = people("old", "guest", "guest", age=[1.0, 2.0, 3.0], size=[4.0, 5.0, 6.0])
    with pytest.warns(ReadOtherwise, match=r"people: .*'role'.*guest \(2\)"):
        read = encoding.read(strange)
    assert read.nodes.label_values == (("old", "new", "vip", NOT_SEEN),)
    told = encoding.encode_nodes(read)
    assert told[:, 2:].tolist() == [[1, 0, 0], [0, 0, 0], [0, 0, 0]]
    with warnings.catch_warnings():  # said once
        warnings.simplefilter("error")
        assert torch.equal(encoding.encode_nodes(encoding.read(read)), told)


def test_a_column_that_is_not_known_is_named_and_left_out():
    more = people("old", "new", zipcode=[9.0, 9.0], age=[1.0, 2.0], size=[4.0, 5.0])
    encoding = Encoding.fit(TRAINED)
    with pytest.warns(ReadOtherwise, match=r"'zipcode'.*nodes"):
        read = encoding.read(more)
    assert torch.equal(encoding.encode_nodes(read), encoding.encode_nodes(TRAINED)[:2])


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
    assert encoding.encode_nodes(read).tolist() == [[1, 0], [0, 1]]


def test_features_of_edges_are_read_by_name_where_the_model_looks_at_them():
    def bonded(*kinds: str) -> Graphs:
        values = sorted(set(kinds))
        labels = torch.tensor([[values.index(kind)] for kind in kinds])
        ends = torch.arange(len(kinds))
        edges = Features(labels=labels, label_names=("bond",), label_values=(values,))
        return Graphs.from_edges(ends, ends + 1, torch.tensor([len(kinds) + 1]), edges=edges)

    encoding = Encoding.fit(bonded("a", "b", "c"))
    assert encoding.read(bonded("c", "b")).edges.labels.flatten().tolist() == [2, 1]
    with pytest.warns(ReadOtherwise, match=r"edge.*'bond'.* d \(1\)"):
        encoding.read(bonded("a", "d"))
    bare = replace(TRAINED, nodes=Features())
    with pytest.raises(LookHopsError, match=r"edges.*'bond'"):
        encoding.read(replace(bare, featuriser="mine"))
    assert Encoding.fit(bonded("a", "b"), edges=False).read(bonded("c")).num_edge_features == 1


def unnamed(*sizes: int, name: str = "mine", featuriser: str = "") -> Graphs:
    return Graphs.from_edges(
        torch.tensor([0]),
        torch.tensor([1]),
        torch.tensor([2]),
        nodes=Features(
            labels=torch.zeros(2, len(sizes), dtype=torch.long) if sizes else None,
            label_values=default_values(sizes),
        ),
        name=name,
        featuriser=featuriser,
    )


def test_nodes_without_features_are_told_as_ones():
    graphs = unnamed()
    encoding = Encoding.fit(graphs)
    assert encoding.width == 1
    assert encoding.encode_nodes(graphs).tolist() == [[1.0], [1.0]]
    assert encoding.encode_nodes(graphs, torch.tensor([1])).tolist() == [[1.0]]


def test_features_without_names_are_read_by_their_places():
    encoding = Encoding.fit(unnamed(3, 1, featuriser="tu"))
    assert encoding.read(unnamed(3, 1)).nodes.label_sizes == (3, 1)
    rows = torch.tensor([[0.0, 1.0, 0.0, 1.0], [1.0, 0.0, 0.0, 1.0]])
    numbers = replace(unnamed(), nodes=Features(rows))
    assert encoding.read(numbers).nodes.labels.tolist() == [[1, 0], [0, 0]]
    with pytest.raises(LookHopsError, match=r"^yours: .*5 features.*mine.*4"):
        encoding.read(unnamed(5, name="yours"))
    with pytest.raises(LookHopsError, match=r"'label 0'.*float64"):
        encoding.read(replace(numbers, nodes=Features(rows / 2)))
    with pytest.raises(LookHopsError, match=r"'molecules-1'.*'tu'"):
        encoding.read(unnamed(3, 1, featuriser="molecules-1"))


def test_rows_that_are_not_one_hot_are_a_value_that_was_not_seen():
    encoding = Encoding.fit(unnamed(3))
    rows = torch.tensor([[0.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    with pytest.warns(ReadOtherwise, match=r"mine: .*'label 0'.*\(1\)"):
        read = encoding.read(replace(unnamed(), nodes=Features(rows)))
    assert encoding.encode_nodes(read).tolist() == rows.tolist()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert torch.equal(encoding.read(read).nodes.labels, read.nodes.labels)
    rows[0, 1:] = 1
    with pytest.warns(ReadOtherwise, match=r"\(1\).*float64"):
        read = encoding.read(replace(unnamed(), nodes=Features(rows)))
    assert encoding.encode_nodes(read).tolist() == [[0, 0, 0], [0, 1, 0]]


def test_lists_that_were_one_hot_are_read_so_by_name():
    trained = unnamed(3)
    encoding = Encoding.fit(replace(trained, nodes=replace(trained.nodes, label_names=("x",))))
    rows, names = torch.tensor([[0.0, 0.0, 0.0], [0.0, 1.0, 0.0]]), ("x 0", "x 1", "x 2")
    with pytest.warns(ReadOtherwise, match=r"'x'.*\(1\)"):
        read = encoding.read(replace(unnamed(), nodes=Features(rows, names)))
    assert encoding.encode_nodes(read).tolist() == rows.tolist()


def test_features_without_names_are_left_out_where_the_model_reads_none():
    graphs = replace(unnamed(3), edges=Features(torch.ones(unnamed().num_edges, 2)))
    with pytest.warns(ReadOtherwise, match=r"'number 0', 'number 1'.*edges"):
        read = Encoding.fit(unnamed(3)).read(graphs)
    assert read.edges.numbers is None


@given(graph_sets())
def test_what_is_saved_is_read_again(graphs: Graphs):
    encoding = Encoding.fit(graphs)
    assert Encoding.from_dict(json.loads(json.dumps(encoding.to_dict()))) == encoding
