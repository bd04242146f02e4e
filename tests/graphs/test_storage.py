"""Packed graphs on disk: what is saved comes back, and what is broken is refused."""

import hashlib
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from hypothesis import given
from safetensors import safe_open
from safetensors.torch import save_file

from lookhops import Graphs, LookHopsError
from strategies import graph_sets, two_graphs, unpacked


@given(graph_sets())
def test_saving_and_loading_changes_nothing(tmp_path: Path, graphs: Graphs):
    path = tmp_path / "some" / "set.graphs"
    graphs.save(path)
    again = Graphs.load(path)
    assert unpacked(again) == unpacked(graphs)
    assert again.fingerprint == graphs.fingerprint == replace(graphs, node_ids=None).fingerprint
    for name in ("name", "featuriser", "targets"):
        assert getattr(again, name) == getattr(graphs, name)
    for owner, features in graphs.features.items():
        assert again.features[owner].names == features.names
    assert [file.name for file in path.parent.iterdir()] == ["set.graphs"]
    content = path.read_bytes()
    again.save(path)
    assert path.read_bytes() == content


def test_files_have_the_mode_that_new_files_have(tmp_path: Path):
    (tmp_path / "plain").touch()
    two_graphs().save(tmp_path / "set.graphs")
    assert (tmp_path / "set.graphs").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_a_failed_save_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "set.graphs"
    two_graphs().save(path)
    before = hashlib.sha256(path.read_bytes()).hexdigest()

    def fail(*arguments: object, **options: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("lookhops.graphs.storage.save_file", fail)
    with pytest.raises(LookHopsError, match=r"set\.graphs"):
        two_graphs().save(path)
    assert hashlib.sha256(path.read_bytes()).hexdigest() == before
    assert len(list(tmp_path.iterdir())) == 1


def damaged(**changes: torch.Tensor) -> dict[str, torch.Tensor]:
    return {**two_graphs().tensors, **changes}


@pytest.mark.parametrize(
    "tensors",
    [
        damaged(source=torch.tensor([1, 0, 2, 0, 9], dtype=torch.int32)),
        damaged(source=torch.tensor([3, 0, 2, 0, 1], dtype=torch.int32)),  # of the other graph
        damaged(source=torch.tensor([1, 0, 2, 0], dtype=torch.int32)),
        damaged(row_ptr=torch.tensor([0, 1, 6, 5, 5], dtype=torch.int32)),
        damaged(node_ptr=torch.tensor([0, 2, 9], dtype=torch.int32)),
        damaged(node_ptr=torch.tensor([[0, 3, 4]], dtype=torch.int32)),
        damaged(**{"nodes.labels": torch.tensor([[0], [2], [7], [0]], dtype=torch.uint8)}),
        damaged(**{"nodes.labels": torch.tensor([[0]], dtype=torch.uint8)}),
        damaged(y=torch.tensor([0, 5])),
        damaged(y=torch.tensor([0.0, 1.0])),
        damaged(unheard_of=torch.tensor([0])),
        {"source": torch.tensor([0])},
    ],
)
def test_a_file_whose_tensors_do_not_fit_is_refused(tmp_path: Path, tensors: dict):
    path = tmp_path / "sent.graphs"
    two_graphs().save(path)
    with safe_open(path, framework="pt") as file:
        metadata = file.metadata()
    save_file(tensors, path, metadata=metadata)
    with pytest.raises(LookHopsError, match=r"sent\.graphs"):
        Graphs.load(path)


def test_files_that_are_not_packed_graphs_are_refused(tmp_path: Path):
    path = tmp_path / "set.graphs"
    with pytest.raises(LookHopsError, match=r"set\.graphs"):
        Graphs.load(path)
    path.write_bytes(b"not safetensors at all")
    with pytest.raises(LookHopsError, match=r"set\.graphs"):
        Graphs.load(path)
    two_graphs().save(path)
    path.write_bytes(path.read_bytes()[:-5])
    with pytest.raises(LookHopsError, match=r"set\.graphs"):
        Graphs.load(path)
    save_file({"source": torch.tensor([0])}, path)
    with pytest.raises(LookHopsError, match="lookhops-graphs-4"):
        Graphs.load(path)
    save_file({"source": torch.tensor([0])}, path, metadata={"format": "lookhops-graphs-4"})
    with pytest.raises(LookHopsError, match=r"set\.graphs"):
        Graphs.load(path)
