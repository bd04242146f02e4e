"""The paper's experiments: its numbers, its models, and the plan that runs them again."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import torch

from lookhops.core.errors import LookHopsError
from lookhops.graphs import SUFFIX, Graphs
from lookhops.learners import Model, learner_of
from lookhops.runs.plan import Cell, parse_entry
from lookhops.runs.results import CellResult, Results
from lookhops.sources.collection import data_folder, find
from lookhops.sources.loading import load
from lookhops.training import Protocol

#: In the paper's order; BURSI stands where the paper has FRANKENSTEIN.
DATASETS = ("PROTEINS", "DD", "NCI1", "NCI109", "Mutagenicity", "BURSI")
TABLES = ("data", "gain", "conv", "pool", "ours")
FIGURES = ("gain", "accuracy-by-k")
HOPS = (1, 2, 3, 4, 5)
#: The data set on which the paper counts parameters and seconds.
COST_DATASET = "NCI1"
#: Small sets first: most cells are done early, and what fails fails early.
RUN_ORDER = ("PROTEINS", "NCI1", "NCI109", "Mutagenicity", "BURSI", "DD")


@cache
def paper_numbers() -> dict[str, Any]:
    """Every number of the paper's tables."""
    return json.loads((files("lookhops.runs") / "paper.json").read_text(encoding="utf-8"))


@dataclass(frozen=True)
class Row:
    """A row of a table, or a point of the figure."""

    slug: str  #: its name on the command line
    label: str  #: its name in tables
    table: str  #: ``conv``, ``pool``, ``ours`` or ``accuracy-by-k``
    importance: int  #: rows with a lower number are run first
    model: Model  #: the model; where the paper chose ratios for each data set, before they are set
    members: int = 1  #: networks for each split, whose answers are averaged

    @property
    def paper(self) -> str | None:
        """Its name in the paper's tables, if it has a number there."""
        return self.label if self.label in paper_numbers().get(f"{self.table}_table", ()) else None

    def published(self, dataset: str) -> tuple[float, float] | None:
        """Mean and standard deviation that the paper prints, in per cent; none where it has none.

        BURSI has none: its features are not FRANKENSTEIN's.
        """
        found = self.paper and paper_numbers()[f"{self.table}_table"][self.paper].get(dataset)
        return (found[0], found[1]) if found else None

    @property
    def published_cost(self) -> tuple[float, float] | None:
        """Thousands of parameters, and seconds of 50 epochs on NCI1, that the paper prints."""
        if self.paper is None:
            return None
        thousands, seconds = paper_numbers()[f"{self.table}_cost_NCI1_50_epochs_V100"][self.paper]
        return thousands, seconds

    def architecture(self, dataset: str) -> Model:
        """The model for a data set: with the fractions that the paper chose for it."""
        chosen, name = paper_numbers()["protocol"], paper_name(dataset)
        if self.table != "pool" or name not in chosen["node_ratio"]:
            return self.model
        model = learner_of(self.model).network_architecture
        if model.pool == "edge":  # edge contraction has no fraction
            return model
        edge_ratio = None if model.edge_ratio is None else chosen["edge_ratio"][name]
        return replace(model, ratio=chosen["node_ratio"][name], edge_ratio=edge_ratio)

    def cell(self, results: Results, dataset: str) -> CellResult | None:
        """Its finished runs on a data set, if there are any."""
        return results.find(dataset, self.architecture(dataset), self.members)


def paper_name(dataset: str) -> str:
    """The paper's data set whose settings a data set takes: BURSI has FRANKENSTEIN's graphs."""
    return "FRANKENSTEIN" if dataset == "BURSI" else dataset


PLAIN = "fingerprint=none/totals=false/edges=none/scale=none"
#: Table, importance, name, label and model of each row.
ROWS = {
    slug: Row(slug, label, table, importance, entry.model, **dict(entry.training))
    for table, importance, slug, label, model in (
        ("conv", 3, "gcn", "GCN", "gcn"),
        ("conv", 3, "gat", "GAT", "gat"),
        ("conv", 3, "mixhop", "MixHop", "mixhop"),
        ("conv", 2, "limixhop", "LiMixHop", "limixhop"),
        ("conv", 2, "cheb", "ChebConv", "cheb"),
        ("conv", 1, "licheb", "LiCheb", "licheb"),
        ("pool", 4, "topk", "TopKPool", "licheb+topk"),
        ("pool", 4, "sag", "SAGPool", "licheb+sag"),
        ("pool", 7, "edge", "EdgePool", "licheb+edge"),
        ("pool", 6, "asap", "ASAP", "licheb+asap"),
        ("pool", 2, "lookhops-nonf", "LookHops noNF+pN", "licheb+lookhops/normalize=false"),
        ("pool", 1, "lookhops-nf", "LookHops NF+pN", "licheb+lookhops"),
        ("pool", 1, "lookhops-nf-pe", "LookHops NF+pN+pE", "licheb+lookhops/edge_ratio=0.9"),
        ("pool", 6, "diffpool", "DiffPool", "licheb+diffpool"),
        ("pool", 6, "hgpsl", "HGP-SL", "licheb+hgpsl"),
        ("pool", 6, "ipool", "iPool", "licheb+ipool"),
        *(("accuracy-by-k", 5, f"licheb-k{k}", f"LiCheb, k = {k}", f"licheb/k={k}") for k in HOPS),
        ("ours", 0, "recommended", "LookHops recommended", "network"),
        ("ours", 8, "recommended-members", "the same, 5 members", "network/members=5"),
        ("ours", 3, "recommended-network", "its network alone", "network/" + PLAIN),
        ("ours", 3, "fingerprint", "fingerprint", "fingerprint"),
        *(("ours", 9, name, name, name) for name in ("wl-oa", "wl", "baseline")),
    )
    for entry in [parse_entry(model)]
}


def rows_of(table: str) -> list[Row]:
    """The rows of a table, in its order."""
    return [row for row in ROWS.values() if row.table == table]


def chosen_rows(
    tables: Sequence[str], figures: Sequence[str], slugs: Sequence[str] = ()
) -> list[Row]:
    """The rows that tables and figures need, most important first; of those, the named ones."""
    parts = {*tables, *figures}
    for slug in slugs:
        if slug not in ROWS:
            raise LookHopsError(f"There is no row {slug!r}; there are {', '.join(ROWS)}.")
        if (table := ROWS[slug].table) not in parts:
            raise LookHopsError(f"The row {slug!r} belongs to {table!r}, which is not asked for.")
    rows = [row for row in ROWS.values() if row.table in parts and row.slug in (slugs or ROWS)]
    return sorted(rows, key=lambda row: row.importance)


def paper_plan(
    rows: Sequence[Row], datasets: Mapping[str, Graphs], protocol: Protocol
) -> list[Cell]:
    """The cells to run, the most important first."""
    order = [d for d in RUN_ORDER if d in datasets] + [d for d in datasets if d not in RUN_ORDER]
    cells: dict[tuple[str, Model, int], Cell] = {}
    for row in rows:
        for name in order:  # a model that stands in two tables is trained once
            model, trained = row.architecture(name), replace(protocol, members=row.members)
            cell = Cell(datasets[name], row.label, model, trained)
            cells.setdefault((name, model, row.members), cell)
    return list(cells.values())


def best_published(dataset: str) -> tuple[float, str] | None:
    """The highest accuracy that the paper prints for a data set in either table, and whose."""
    found = ((number[0], r.label) for r in ROWS.values() if (number := r.published(dataset)))
    return max(found, default=None)


#: The one set of DATASETS that cannot be downloaded.
LOCAL = "BURSI"
#: The quick version: enough to run every line of code, too little to say anything of the models.
QUICK_DATASETS, QUICK_GRAPHS, QUICK_SEEDS, QUICK_EPOCHS = ("PROTEINS", "NCI1"), 150, (11, 22), 2


def paper_graphs(
    names: Sequence[str], quick: bool = False, data_dir: Path | None = None
) -> dict[str, Graphs]:
    """The graphs of data sets by name, of which the quick version takes few.

    Packed ones (``NAME.graphs`` in the data folder) come first.
    """
    datasets = {}
    for name in names:
        packed = data_folder(data_dir) / f"{name}{SUFFIX}"
        graphs = load(packed if packed.is_file() else name, data_dir=data_dir)
        if quick and len(graphs) > QUICK_GRAPHS:  # drawn at random, but always the same
            order = torch.randperm(len(graphs), generator=torch.Generator().manual_seed(0))
            graphs = graphs.select(order[:QUICK_GRAPHS].sort().values)
        datasets[name] = graphs if graphs.name == name else replace(graphs, name=name)
    return datasets


def paper_datasets(
    wanted: Sequence[str] = (), quick: bool = False, data_dir: Path | None = None
) -> list[str]:
    """The names of the data sets: those that are wanted, or by default the paper's.

    BURSI, which no collection has, is left out with a warning where it is not in the data folder.
    """
    names = list(dict.fromkeys(wanted or (QUICK_DATASETS if quick else DATASETS)))
    folder = data_folder(data_dir)
    if LOCAL in names and not ((folder / f"{LOCAL}{SUFFIX}").is_file() or find(LOCAL, folder)):
        said = f"{LOCAL} is not in {folder}, and no collection has it to download"
        if wanted:
            raise LookHopsError(f"{said}: put {LOCAL}.zip there, or leave it out of --datasets.")
        warnings.warn(f"{said}: its column is left out.", stacklevel=2)
        names.remove(LOCAL)
    return names


def data_note(graphs: Graphs) -> dict[str, int]:
    """What the paper's table of data sets counts."""
    edges, features = graphs.num_undirected_edges, graphs.num_features
    counts = {"graphs": len(graphs), "nodes": graphs.num_nodes, "edges": edges}
    return {**counts, "features": features, "classes": graphs.num_classes}


def gain_note(graphs: Graphs) -> dict[str, Any]:
    """Information gain for k = 2 to 9, its fit and the suggested k."""
    from lookhops.neighbourhoods import look

    found = look(graphs, max_k=9, bootstrap=0).to_dict()
    return {key: found[key] for key in ("k", "gain", "fit", "suggested_k")}
