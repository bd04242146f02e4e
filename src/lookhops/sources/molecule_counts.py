"""What to know of a set of molecules before a model is trusted: duplicates, salts, mixtures."""

from __future__ import annotations

from typing import Any

import numpy as np

from lookhops.core.words import counted
from lookhops.graphs import Graphs
from lookhops.sources.duplicates import contradicting
from lookhops.sources.molecule_features import ATOM_FEATURES
from lookhops.sources.splits.groups import SAME


def molecule_counts(graphs: Graphs) -> dict[str, int] | None:
    """Counts of molecules, or none where the graphs are no molecules.

    Returns:
        ``duplicates`` (molecules that stand in the set before), ``contradicting`` (molecules with
        another target than the same molecule elsewhere), ``salts`` (one piece with carbon, and
        ions, acids or water beside it), ``mixtures`` (several pieces with carbon, or none) and
        ``skipped`` (rows that gave no molecule).
    """
    if not graphs.featuriser.startswith("molecules") or graphs.labels is None:
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

    assert graphs.labels is not None
    count, nodes = len(graphs), graphs.num_nodes
    source, target = graphs.source.cpu().numpy(), graphs.target.cpu().numpy()
    links = coo_array((np.ones(len(source)), (source, target)), shape=(nodes, nodes))
    total, piece = connected_components(links, directed=False)
    graph = np.zeros(total, dtype=np.int64)
    graph[piece] = graphs.batch.cpu().numpy()
    element = graphs.labels[:, 0].cpu().numpy()
    carbon = np.zeros(total, dtype=bool)
    carbon[piece[element == ATOM_FEATURES["element"].index("C")]] = True
    return (
        np.bincount(graph, minlength=count) > 1,
        np.bincount(graph[carbon], minlength=count),
    )


def in_words(counts: dict[str, Any]) -> str:
    """The counts that are not zero, in a sentence without its point; empty where all are."""
    said = [
        counted(counts[key], what)
        for key, what in (
            ("duplicates", "duplicate"),
            ("salts", "salt"),
            ("mixtures", "mixture"),
        )
        if counts[key]
    ]
    if counts["contradicting"]:
        said.insert(1, f"{counted(counts['contradicting'], 'row')} that contradict each other")
    if counts["skipped"]:
        said.append(f"{counts['skipped']:,} skipped")
    return ", ".join(said)
