"""`Graphs` against plain Python: choosing, batching, saving, turning edges."""

import hashlib
from pathlib import Path

import pytest
import torch
from hypothesis import given
from safetensors.torch import save_file

from lookhops import Graphs, LookHopsError
from strategies import graph_sets, unpacked


def two_graphs() -> Graphs:
    """A path 0-1-2 with a one-way edge 0->2, and a single node."""
    return Graphs.from_edges(
        torch.tensor([0, 1, 1, 2, 0]),
        torch.tensor([1, 0, 2, 1, 2]),
        torch.tensor([3, 1]),
        labels=torch.tensor([[0], [2], [1], [0]]),
        edge_attributes=torch.tensor([[1.0], [2.0], [3.0], [4.0], [5.0]]),
        y=torch.tensor([1, 0]),
    )


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
    assert graphs.labels is not None
    assert graphs.labels.dtype == torch.uint8


def test_a_set_without_features_shows_a_model_ones():
    graphs = Graphs.from_edges(torch.tensor([0]), torch.tensor([1]), torch.tensor([2]))
    assert graphs.num_features == 0
    assert graphs.x.tolist() == [[1.0], [1.0]]
    assert graphs.edge_attr is None


@given(graph_sets())
def test_undirected_is_every_edge_both_ways_once(graphs: Graphs):
    both = graphs.undirected()
    assert both.is_undirected
    for before, after in zip(unpacked(graphs), unpacked(both), strict=True):
        first: dict[tuple[int, int], object] = {}
        for turned in (False, True):
            for source, target, feature in before["edges"]:
                pair = (target, source) if turned else (source, target)
                first.setdefault(pair, feature)
        expected = sorted((t, s, f) for (s, t), f in first.items())
        assert [(t, s, f) for s, t, f in after["edges"]] == expected
        assert before["x"] == after["x"]
    pairs = {
        (number, *sorted(edge[:2]))
        for number, graph in enumerate(unpacked(graphs))
        for edge in graph["edges"]
    }
    assert graphs.num_undirected_edges == len(pairs)
    assert torch.equal(both.undirected().source, both.source)


@given(graph_sets())
def test_saving_and_loading_changes_nothing(tmp_path: Path, graphs: Graphs):
    path = tmp_path / "some" / "set.graphs"
    graphs.save(path)
    again = Graphs.load(path)
    assert unpacked(again) == unpacked(graphs)
    assert again.fingerprint == graphs.fingerprint
    for name in ("name", "featuriser", "class_names", "label_sizes", "edge_label_sizes"):
        assert getattr(again, name) == getattr(graphs, name)
    assert [file.name for file in path.parent.iterdir()] == ["set.graphs"]


def test_a_failed_save_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "set.graphs"
    two_graphs().save(path)
    before = hashlib.sha256(path.read_bytes()).hexdigest()

    def fail(*arguments: object, **options: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("lookhops.graphs.storage.save_file", fail)
    with pytest.raises(LookHopsError, match="No space left"):
        two_graphs().save(path)
    assert hashlib.sha256(path.read_bytes()).hexdigest() == before
    assert len(list(tmp_path.iterdir())) == 1


def test_the_fingerprint_is_of_the_content():
    graphs = two_graphs()
    assert graphs.fingerprint == two_graphs().fingerprint
    assert graphs.fingerprint != graphs[[1, 0]].fingerprint


def test_labels_outside_their_sizes_are_refused():
    none = torch.zeros(0, dtype=torch.long)
    for labels, sizes in (([[3]], (3,)), ([[-1]], None)):
        with pytest.raises(LookHopsError, match="label"):
            Graphs.from_edges(
                none, none, torch.tensor([1]), labels=torch.tensor(labels), label_sizes=sizes
            )


def damaged(**changes: torch.Tensor) -> dict[str, torch.Tensor]:
    return {**two_graphs()._tensors(), **changes}


@pytest.mark.parametrize(
    "tensors",
    [
        damaged(source=torch.tensor([1, 0, 2, 0, 9], dtype=torch.int32)),
        damaged(source=torch.tensor([3, 0, 2, 0, 1], dtype=torch.int32)),  # of the other graph
        damaged(source=torch.tensor([1, 0, 2, 0], dtype=torch.int32)),
        damaged(row_ptr=torch.tensor([0, 1, 6, 5, 5], dtype=torch.int32)),
        damaged(node_ptr=torch.tensor([0, 2, 9], dtype=torch.int32)),
        damaged(node_ptr=torch.tensor([[0, 3, 4]], dtype=torch.int32)),
        damaged(labels=torch.tensor([[0], [2], [7], [0]], dtype=torch.uint8)),
        damaged(labels=torch.tensor([[0]], dtype=torch.uint8)),
        damaged(y=torch.tensor([0, 5])),
        damaged(y=torch.tensor([0.0, 1.0])),
        damaged(unheard_of=torch.tensor([0])),
        {"source": torch.tensor([0])},
    ],
)
def test_a_file_whose_tensors_do_not_fit_is_refused(tmp_path: Path, tensors: dict):
    path = tmp_path / "sent.graphs"
    two_graphs().save(path)
    from safetensors import safe_open

    with safe_open(path, framework="pt") as file:
        metadata = file.metadata()
    save_file(tensors, path, metadata=metadata)
    with pytest.raises(LookHopsError, match=r"sent\.graphs: damaged"):
        Graphs.load(path)


def test_files_that_are_not_packed_graphs_are_refused(tmp_path: Path):
    path = tmp_path / "set.graphs"
    with pytest.raises(LookHopsError, match="no such file"):
        Graphs.load(path)
    path.write_bytes(b"not safetensors at all")
    with pytest.raises(LookHopsError, match="not a file of packed graphs"):
        Graphs.load(path)
    two_graphs().save(path)
    path.write_bytes(path.read_bytes()[:-5])
    with pytest.raises(LookHopsError, match="not a file of packed graphs"):
        Graphs.load(path)
    save_file({"source": torch.tensor([0])}, path)
    with pytest.raises(LookHopsError, match="of this version"):
        Graphs.load(path)
    save_file({"source": torch.tensor([0])}, path, metadata={"format": "lookhops-graphs-1"})
    with pytest.raises(LookHopsError, match="damaged"):
        Graphs.load(path)


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
