"""Loading and batching against PyG, in one run; LOOKHOPS_DATA names the folder of DD and NCI1.

Four questions, each asked of PyG and of LookHops in turn, the best of several rounds counting: how
long from the text files of DD to memory, how long from the cache that the first load left, how long
to make shuffled batches of 256 graphs over NCI1, with everything that a PyG batch holds, and how
long from a CSV file with an edge list of 1,000,000 rows, 20,000 graphs with two features an edge,
to memory: for PyG through pandas, NetworkX and ``from_networkx``, once.
"""

import io
import os
import sys
import tempfile
import zipfile
from contextlib import redirect_stderr
from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd
import torch
from rich.console import Console
from rich.table import Table
from torch_geometric.datasets import TUDataset
from torch_geometric.loader import DataLoader
from torch_geometric.utils import from_networkx

import lookhops
from shared import best_of


def unpack(archive: Path, root: Path) -> None:
    """Put the text files where PyG looks for them, so that its time is that of reading alone."""
    name = archive.stem
    (root / name / "raw").mkdir(parents=True)
    with zipfile.ZipFile(archive) as file:
        for entry in file.namelist():
            if entry.endswith(".txt"):
                (root / name / "raw" / Path(entry).name).write_bytes(file.read(entry))


def pyg(root: Path, name: str, again: bool = False) -> TUDataset:
    with redirect_stderr(io.StringIO()):  # it says that it reads
        return TUDataset(
            str(root), name, use_node_attr=True, use_edge_attr=True, force_reload=again
        )


def batches_of_pyg(dataset: TUDataset) -> None:
    for batch in DataLoader(dataset, 256, shuffle=True):
        _ = batch.x, batch.edge_index, batch.batch, batch.y


def batches_of_ours(graphs: lookhops.Graphs) -> None:
    for batch in graphs.batches(256, shuffle=True):
        _ = batch.x, batch.edge_index, batch.batch, batch.y


def write_edges(path: Path, rows: int = 1_000_000, graphs: int = 20_000) -> None:
    """An edge list of random graphs: text ids, an amount and one of three kinds."""
    random = np.random.default_rng(0)
    table = {
        "graph": np.char.add("case-", np.sort(random.integers(0, graphs, rows)).astype(str)),
        "source": np.char.add("account-", random.integers(0, 60, rows).astype(str)),
        "target": np.char.add("account-", random.integers(0, 60, rows).astype(str)),
        "amount": random.lognormal(3, 1, rows).round(2),
        "kind": random.integers(0, 3, rows),
    }
    pd.DataFrame(table).to_csv(path, index=False)


def edges_by_networkx(path: Path) -> list[object]:
    return [
        from_networkx(
            nx.from_pandas_edgelist(rows, edge_attr=True), group_edge_attrs=["amount", "kind"]
        )
        for _, rows in pd.read_csv(path).groupby("graph")
    ]


def main() -> None:
    folder = Path(os.environ.get("LOOKHOPS_DATA", ""))
    if not all((folder / f"{name}.zip").is_file() for name in ("DD", "NCI1")):
        sys.exit("loading.py: set LOOKHOPS_DATA to a folder with DD.zip and NCI1.zip")
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch)
        os.environ["XDG_CACHE_HOME"] = str(root / "cache")
        for name in ("DD", "NCI1"):
            unpack(folder / f"{name}.zip", root)
        rows = [
            (
                "DD, text files to memory",
                10,
                best_of(
                    2,
                    lambda: pyg(root, "DD", again=True),
                    lambda: lookhops.load(folder / "DD.zip", cache=False),
                ),
            )
        ]
        lookhops.load(folder / "DD.zip")
        both = (lambda: pyg(root, "DD"), lambda: lookhops.load(folder / "DD.zip"))
        rows.append(("DD, from the cache", 3, best_of(7, *both)))

        dataset, graphs = pyg(root, "NCI1"), lookhops.load(folder / "NCI1.zip")
        torch.set_num_threads(1)  # the pieces are small: threads would mostly wait for each other
        tasks = (lambda: batches_of_pyg(dataset), lambda: batches_of_ours(graphs))
        rows.append(("NCI1, shuffled batches of 256", 10, best_of(7, *tasks)))

        write_edges(root / "edges.csv")
        (theirs,) = best_of(1, lambda: edges_by_networkx(root / "edges.csv"))
        (ours,) = best_of(3, lambda: lookhops.load(root / "edges.csv"))
        rows.append(("an edge list of 1,000,000 rows", 20, [theirs, ours]))

    table = Table(title="Loading against PyG", title_justify="left")
    for heading in ("", "PyG, s", "LookHops, s", "times as fast", "at least"):
        table.add_column(heading, justify="right" if heading else "left")
    for what, wanted, (theirs, ours) in rows:
        ratio = f"{theirs.wall / ours.wall:.1f}"
        table.add_row(what, f"{theirs.wall:.4f}", f"{ours.wall:.4f}", ratio, str(wanted))
    Console(highlight=False).print(table)


if __name__ == "__main__":
    main()
