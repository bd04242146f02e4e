"""What is run on: the data sets of an experiment, and the protocol that goes with them."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch

from lookhops.datasets import load
from lookhops.datasets.collection import data_folder, find
from lookhops.errors import LookHopsError
from lookhops.graphs import SUFFIX, Graphs
from lookhops.paper.reference import DATASETS
from lookhops.training import Protocol

#: The one set of DATASETS that cannot be downloaded.
LOCAL = "BURSI"
#: The quick version: enough to run every line of code, too little to say anything of the models.
QUICK_DATASETS, QUICK_GRAPHS, QUICK_SEEDS, QUICK_EPOCHS = ("PROTEINS", "NCI1"), 150, (11, 22), 2


@dataclass
class Suite:
    """Data sets by name, loaded when first asked for, and a protocol.

    Args:
        datasets: Their names.
        protocol: How every model is trained.
        quick: Whether only a few graphs of each are taken.
        data_dir: Where the data sets are.
    """

    datasets: Sequence[str]
    protocol: Protocol
    quick: bool = False
    data_dir: Path | None = None
    loaded: dict[str, Graphs] = field(default_factory=dict)

    def graphs(self, name: str) -> Graphs:
        """The graphs of a data set: packed ones (``NAME.graphs`` in the data folder) come first."""
        if name not in self.loaded:
            packed = data_folder(self.data_dir) / f"{name}{SUFFIX}"
            found = load(packed if packed.is_file() else name, data_dir=self.data_dir)
            self.loaded[name] = some_of(found, QUICK_GRAPHS) if self.quick else found
        return self.loaded[name]


def paper_suite(
    datasets: Sequence[str] | None = None,
    seeds: Sequence[int] | None = None,
    precision: str = "float32",
    *,
    quick: bool = False,
    data_dir: Path | None = None,
) -> Suite:
    """The paper's data sets and protocol, or the quick version of them.

    BURSI, which no collection has, is left out with a warning where it is not in the data folder.
    """
    protocol = Protocol(precision=precision)
    if quick:
        protocol = replace(protocol, seeds=QUICK_SEEDS, max_epochs=QUICK_EPOCHS)
    if seeds is not None:
        protocol = replace(protocol, seeds=tuple(seeds))
    names = list(dict.fromkeys(datasets or (QUICK_DATASETS if quick else DATASETS)))
    if LOCAL in names and not _is_in(folder := data_folder(data_dir), LOCAL):
        said = f"{LOCAL} is not in {folder}, and no collection has it to download"
        if datasets:
            raise LookHopsError(f"{said}: put {LOCAL}.zip there, or leave it out of --datasets.")
        warnings.warn(f"{said}: its column is left out.", stacklevel=2)
        names.remove(LOCAL)
    return Suite(names, protocol, quick, data_dir)


def _is_in(folder: Path, name: str) -> bool:
    """Whether a data folder holds a set, as its archive, its files or packed."""
    return (folder / f"{name}{SUFFIX}").is_file() or find(name, folder) is not None


def some_of(graphs: Graphs, count: int) -> Graphs:
    """So many graphs, drawn at random but always the same."""
    if len(graphs) <= count:
        return graphs
    order = torch.randperm(len(graphs), generator=torch.Generator().manual_seed(0))
    return graphs.select(order[:count].sort().values)


def data_note(graphs: Graphs) -> dict[str, int]:
    """What the paper's table of data sets counts."""
    return {
        "graphs": len(graphs),
        "nodes": graphs.num_nodes,
        "edges": graphs.num_undirected_edges,
        "features": graphs.num_features,
        "classes": graphs.num_classes,
    }


def gain_note(graphs: Graphs) -> dict[str, Any]:
    """Information gain for k = 2 to 9, its fit and the suggested k."""
    from lookhops.information import look

    found = look(graphs, max_k=9, bootstrap=0).to_dict()
    return {key: found[key] for key in ("k", "gain", "fit", "suggested_k")}
