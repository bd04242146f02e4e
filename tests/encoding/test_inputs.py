"""`Packer`: what an estimator is given, packed the same at `predict` as at `fit`."""

from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from rdkit.Chem import MolFromSmiles

from lookhops import LookHopsError
from lookhops.encoding.inputs import Packer, kind_of, own_targets
from lookhops.sources.hop_tasks import hop_task

nx = pytest.importorskip("networkx", reason="needs networkx (in the extra `dev`)")


def coloured(*colours: str) -> "nx.Graph":
    graph = nx.path_graph(len(colours), create_using=nx.Graph)
    nx.set_node_attributes(graph, dict(enumerate(colours)), "colour")
    return graph


def test_whatever_a_networkx_graph_calls_its_class_it_can_be_packed():
    graphs = [coloured("red"), coloured("red")]
    graphs[0].graph["y"] = [1.5, None]
    graphs[1].graph["y"] = {"mass": 3}
    packer, packed = Packer.fit(graphs)
    assert len(packed) == len(packer.pack(graphs)) == 2


def test_a_list_of_sets_is_one_set():
    tasks = hop_task(1, size=6)
    packed = Packer.fit(list(tasks))[0].pack([tasks[:2], tasks[2:]])
    assert torch.equal(packed.x, tasks.x)
    assert torch.equal(packed.edge_index, tasks.edge_index)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_a_table_with_one_column_is_that_column(frame):
    smiles = ["CCO", "CCN", "c1ccccc1"]
    expected = Packer("smiles").pack(smiles)
    mols = [MolFromSmiles(text) for text in smiles]
    array = np.array(smiles)
    for given in (frame({"smiles": smiles}), array[:, None], array, pd.Series(smiles), mols):
        packed = Packer.fit(given)[1]
        assert torch.equal(packed.x, expected.x)
        assert torch.equal(packed.edge_index, expected.edge_index)
        assert own_targets(given) == []
    with pytest.raises(LookHopsError, match="molecule, y"):
        kind_of(frame({"molecule": smiles, "y": [1, 2, 3]}))


@pytest.mark.parametrize("bad", ["C1CC", None, float("nan"), ""])
def test_molecules_that_do_not_parse_are_to_be_left_out_of_x_and_y(bad):
    given = ["CCO", bad, "CC", bad]
    with pytest.raises(LookHopsError, match=r"molecule 2.*\b4\b"):
        Packer("smiles").pack(given)
    with pytest.raises(LookHopsError, match="molecule 1"):
        Packer("smiles").pack([None, MolFromSmiles("CCO")])


def test_kinds_and_what_they_carry():
    tasks = hop_task(1, size=4)
    names = [tasks.class_names[c] for c in tasks.y.tolist()]
    [own] = own_targets(tasks)
    assert (own.name, own.cells, own.kind) == ("class", names, "classes")
    [own] = own_targets(tasks.to_pyg())
    assert (own.name, own.cells, own.kind) == ("y", tasks.y.tolist(), "auto")
    assert own_targets([coloured("red")]) == []
    assert own_targets(["CCO"]) == []
    assert kind_of(["CCO"]) == "smiles"
    with pytest.raises(LookHopsError, match=r"\bint\b"):
        kind_of([1, 2])


def test_blanks_and_rows_that_graphs_carry():
    tasks = hop_task(1, size=3)
    [own] = own_targets(replace(tasks, y=torch.tensor([1, -1, 0])))
    assert own.cells == ["same", None, "different"]
    several = [coloured("red") for _ in range(3)]
    for graph, y in zip(several, ([0.5, 1], None, np.array([2.0, 3])), strict=True):
        graph.graph["y"] = y
    first, second = own_targets(several)
    assert (first.name, first.cells, first.kind) == ("target 0", [0.5, None, 2.0], "numbers")
    assert (second.name, second.cells, second.kind) == ("target 1", [1, None, 3.0], "auto")
    several[0].graph["y"] = [1, 2, 3]
    with pytest.raises(LookHopsError, match=r"\b3\b"):
        own_targets(several)


@pytest.mark.parametrize("library", ["networkx", "pyg"])
def test_all_features_that_graphs_carry(library: str):
    graphs: list = []
    for number in range(4):
        if library == "networkx":
            one = nx.path_graph(3 + number)
            nx.set_node_attributes(one, 1.0, "x")
            one.graph |= {"temperature": 20.0 + number, "y": number, "history": [1]}
            one.graph |= {"dose": 1.0} if number else {}
        else:
            index = torch.tensor([[0, 1], [1, 2]])
            data = pytest.importorskip("torch_geometric.data")
            one = data.Data(
                x=torch.ones(3, 1), edge_index=index, temperature=20.0 + number, y=number
            )
        graphs.append(one)
    _, packed = Packer.fit(graphs, "all")
    assert packed.whole.names.features == ("temperature",)
