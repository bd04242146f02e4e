"""A tiny TU set as text, to be written to a folder or a zip and to be broken."""

import zipfile
from pathlib import Path

# Two graphs: a triangle with a self-loop at node 1 and one edge given twice, and a pair.
TINY = {
    "A": "1, 2\n2, 1\n2, 3\n3, 2\n1, 3\n3, 1\n1, 1\n4, 5\n5, 4\n",
    "graph_indicator": "1\n1\n1\n2\n2\n",
    "graph_labels": "1\n-1\n",
    "node_labels": "3\n4\n3\n6\n3\n",
    "node_attributes": "0.5, 1\n-1e-3,2\n3,4\n5,6\n7,8\n",
    "edge_labels": "1\n1\n2\n2\n1\n1\n3\n2\n2\n",
}


def write_folder(folder: Path, texts: dict[str, str], name: str = "TINY") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for part, text in texts.items():
        (folder / f"{name}_{part}.txt").write_bytes(text.encode())
    return folder


def write_zip(path: Path, texts: dict[str, str], name: str = "TINY") -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(f"{name}/README.txt", "about the set")
        for part, text in texts.items():
            archive.writestr(f"{name}/{name}_{part}.txt", text)
    return path


def pyg_dataset(root: Path, name: str, texts: dict[str, str] | Path):
    """PyG's own reading of the same files, from texts or an archive, processed under ``root``."""
    from torch_geometric.datasets import TUDataset

    raw = root / name / "raw"
    raw.mkdir(parents=True)
    if isinstance(texts, Path):
        with zipfile.ZipFile(texts) as archive:
            for entry in archive.namelist():
                if not entry.endswith("/"):
                    (raw / Path(entry).name).write_bytes(archive.read(entry))
    else:
        write_folder(raw, texts, name)
    return TUDataset(str(root), name, use_node_attr=True, use_edge_attr=True)


def assert_same_as_pyg(graphs, dataset) -> None:
    """Every tensor of every graph the same, in value, shape and type."""
    import torch

    ours = graphs.to_pyg()
    assert len(ours) == len(dataset)
    for number, (mine, theirs) in enumerate(zip(ours, dataset, strict=True)):
        assert set(mine.keys()) == set(theirs.keys()), number
        for key in set(mine.keys()) - {"num_nodes"}:
            assert mine[key].dtype == theirs[key].dtype, (number, key)
            assert torch.equal(mine[key], theirs[key]), (number, key)
        assert mine.num_nodes == theirs.num_nodes
