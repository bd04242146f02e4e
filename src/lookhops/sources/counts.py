"""What a set of graphs holds, in counts; and molecules that stand in it more than once."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from lookhops.core.errors import LookHopsError
from lookhops.core.schema import AtLeast, Count, read
from lookhops.core.words import agreeing, counted
from lookhops.graphs import Graphs, Skipped
from lookhops.graphs.choosing import kept_rows
from lookhops.graphs.columns import SAME
from lookhops.graphs.targets import pack_targets, target_columns
from lookhops.sources.rdkit.features import ATOM_FEATURES

#: Bars of the distribution of sizes.
SIZE_BINS = 30
SIZE: Mapping[str, Any] = dict.fromkeys(("graphs", "nodes", "edges", "features"), Count)
#: What :func:`graph_counts` gives.
GRAPH_COUNTS = AtLeast(
    {
        **SIZE,
        "nodes_range": tuple[Count, Count],
        "class_names": Sequence[str],
        "class_counts": Sequence[Count],
        "molecules?": Mapping[str, Count],
        "sizes": AtLeast({"edges": Sequence[float], "counts": Sequence[Sequence[Count]]}),
    }
)


def graph_counts(graphs: Graphs) -> dict[str, Any]:
    """Counts of a set of graphs, as JSON can hold them.

    Returns:
        ``graphs``, ``nodes``, ``edges`` (each pair of nodes once), ``features``; ``nodes_range``
        (the smallest and the largest graph); ``class_names`` and ``class_counts``; of molecules,
        ``molecules`` (see :func:`molecule_counts`); and ``sizes``: the ``edges`` of at most 30 bins
        of nodes per graph, with ``counts``, shape (classes, bins), one row where the graphs have no
        classes.
    """
    nodes = graphs.nodes_per_graph.cpu().numpy()
    low, high = (int(nodes.min()), int(nodes.max())) if len(nodes) else (0, 0)
    # Bins of whole width, so that each holds equally many possible sizes.
    width = -(-(high - low + 1) // SIZE_BINS)
    edges = low - 0.5 + width * np.arange(-(-(high - low + 1) // width) + 1)
    y, names = np.zeros(len(nodes), int), list[str]()
    if graphs.y is not None and graphs.num_classes:
        y, names = graphs.y.cpu().numpy(), list(graphs.class_names)
    classes = max(len(names), 1)
    counts = [np.histogram(nodes[y == c], edges)[0].tolist() for c in range(classes)]
    molecules = molecule_counts(graphs)
    return {
        **({} if molecules is None else {"molecules": molecules}),
        "graphs": len(graphs),
        "nodes": graphs.num_nodes,
        "edges": graphs.num_undirected_edges,
        "features": graphs.num_features,
        "nodes_range": [low, high],
        "class_names": names,
        "class_counts": np.bincount(y[y >= 0], minlength=classes).tolist() if names else [],
        "sizes": {"edges": edges.tolist(), "counts": counts},
    }


def check_graph_counts(value: Any, path: str) -> None:
    """That a value is what :func:`graph_counts` gave, or a sentence that says where it is not."""
    read(GRAPH_COUNTS, value, path)
    bins = len(value["sizes"]["edges"]) - 1
    if len(value["class_names"]) != len(value["class_counts"]):
        raise LookHopsError(f"{path}.class_counts has not one count for each class")
    if any(len(counts) != bins for counts in value["sizes"]["counts"]):
        raise LookHopsError(f"{path}.sizes.counts has not one count for each bin")


# -------------------------------------------------------------------- molecules


def molecule_counts(graphs: Graphs) -> dict[str, int] | None:
    """Counts of molecules, or none where the graphs are no molecules.

    Returns:
        ``duplicates`` (molecules that stand in the set before), ``contradicting`` (molecules with
        another target than the same molecule elsewhere), ``salts`` (one piece with carbon, and
        ions, acids or water beside it), ``mixtures`` (several pieces with carbon, or none) and
        ``skipped`` (rows that gave no molecule).
    """
    if not graphs.featuriser.startswith("molecules") or graphs.nodes.labels is None:
        return None
    same = graphs.columns.get(SAME, np.arange(len(graphs)))
    several, with_carbon = _pieces(graphs)
    return {
        "duplicates": len(graphs) - len(np.unique(same)),
        "contradicting": int(contradicting(graphs).sum()),
        "salts": int((several & (with_carbon == 1)).sum()),
        "mixtures": int((several & (with_carbon != 1)).sum()),
        "skipped": len(graphs.skipped),
    }


def _pieces(graphs: Graphs) -> tuple[np.ndarray, np.ndarray]:
    """Whether a molecule has several pieces, and how many of them have carbon, both shape (g)."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    assert graphs.nodes.labels is not None
    count, nodes = len(graphs), graphs.num_nodes
    source, target = graphs.source.cpu().numpy(), graphs.target.cpu().numpy()
    links = coo_array((np.ones(len(source)), (source, target)), shape=(nodes, nodes))
    total, piece = connected_components(links, directed=False)
    graph = np.zeros(total, dtype=np.int64)
    graph[piece] = graphs.batch.cpu().numpy()
    element = graphs.nodes.labels[:, 0].cpu().numpy()
    carbon = np.zeros(total, dtype=bool)
    carbon[piece[element == ATOM_FEATURES["element"].index("C")]] = True
    return (
        np.bincount(graph, minlength=count) > 1,
        np.bincount(graph[carbon], minlength=count),
    )


def in_words(counts: Mapping[str, int]) -> str:
    """The counts of molecules that are not zero, as a phrase; empty where all are."""
    words = {
        "duplicates": counted(counts["duplicates"], "duplicate"),
        "contradicting": f"{counted(counts['contradicting'], 'row')} that contradict each other",
        "salts": counted(counts["salts"], "salt"),
        "mixtures": counted(counts["mixtures"], "mixture"),
        "skipped": f"{counts['skipped']:,} skipped",
    }
    return ", ".join(text for name, text in words.items() if counts[name])


# -------------------------------------------------------------------- duplicates


def first_of_each(names: Sequence[Hashable]) -> np.ndarray:
    """For each name the number of the first that is equal to it: the column :data:`SAME`."""
    first: dict[Hashable, int] = {}
    return np.array([first.setdefault(name, number) for number, name in enumerate(names)])


def contradicting(graphs: Graphs) -> np.ndarray:
    """Whether a graph has a target with another value than one that is the same has, shape (g)."""
    found = np.zeros(len(graphs), dtype=bool)
    if SAME not in graphs.columns:
        return found
    group = _groups(graphs)
    for _, values in target_columns(graphs.y, graphs.targets):
        low, high = _range(group, values)
        found |= (low < high)[group]
    return found


def _groups(graphs: Graphs) -> np.ndarray:
    """The group of each graph: those that are the same and have the same features, shape (g)."""
    names = [name for name in graphs.whole.names.features if name in graphs.columns]
    columns = (graphs.columns[name].astype(str).tolist() for name in (SAME, *names))
    first = first_of_each(list(zip(*columns, strict=True)))
    return np.unique(first, return_inverse=True)[1]


def merge(graphs: Graphs) -> Graphs:
    """One graph for all that are the same, features of whole graphs too, in the first's place.

    A target that is a number is the mean of theirs; a class on which they do not agree is blank.
    The rows of the others are among the skipped ones.
    """
    if SAME not in graphs.columns:
        return graphs
    _, first, group = np.unique(_groups(graphs), return_index=True, return_inverse=True)
    columns = {key: column[first] for key, column in graphs.columns.items() if key != SAME}
    if len(same := graphs.columns[SAME][first]) > len(np.unique(same)):
        columns[SAME] = first_of_each(same.tolist())  # measured several times, otherwise each time
    ids, rows = graphs.columns["id"], kept_rows(graphs)
    merged = [
        Skipped(rows[number], str(ids[number]), f"the same molecule as {ids[same]}")
        for number, same in enumerate(first[group].tolist())
        if number != same
    ]
    contradict = ""
    if disagreeing := int(contradicting(graphs)[first].sum()):
        contradict = (
            f"; of {counted(disagreeing, 'molecule')} the rows contradict each other (numbers are "
            "averaged, classes blanked)"
        )
    warnings.warn(
        f"{graphs.name}: {counted(len(merged), 'row')} {agreeing(len(merged), 'is', 'are')} "
        f"merged with others of the same molecule{contradict}.",
        stacklevel=4,
    )
    skipped = tuple(sorted((*graphs.skipped, *merged)))
    targets = [
        (target, _merged(group, values, target.kind))
        for target, values in target_columns(graphs.y, graphs.targets)
    ]
    packed = pack_targets(targets) if targets else {}
    return replace(graphs.select(first), columns=columns, skipped=skipped, **packed)


def _merged(group: np.ndarray, values: np.ndarray, kind: str) -> np.ndarray:
    """The value of each group: the mean of several numbers, NaN for several classes."""
    low, high = _range(group, values)
    mean = np.full_like(low, np.nan)
    if kind != "classes":
        filled = ~np.isnan(values)
        count = np.bincount(group[filled], minlength=len(low))
        mean = np.bincount(group[filled], values[filled], len(low)) / np.maximum(count, 1)
    return np.where(low < high, np.rint(mean) if kind == "counts" else mean, low)


def _range(group: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    count = int(group.max()) + 1
    low, high = np.full(count, np.nan), np.full(count, np.nan)
    np.fmin.at(low, group, values)
    np.fmax.at(high, group, values)
    return low, high
