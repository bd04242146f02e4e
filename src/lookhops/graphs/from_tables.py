"""Graphs from tables: one of edges, and where there are any, one of nodes and one of graphs.

Nothing loops over rows or graphs: ids of all tables become numbers by one hash table, a node is the
pair (graph, node id) as one number, and the ends of all edges are looked up at once.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from itertools import repeat
from typing import Any

import numpy as np
import pandas as pd
import torch

from lookhops.core.errors import LookHopsError
from lookhops.core.reading import LABEL_NAMES, called, listed, names_in
from lookhops.core.words import agreeing, counted
from lookhops.graphs.choosing import Skipped
from lookhops.graphs.features import NO_FEATURES, Features
from lookhops.graphs.indexing import Texts
from lookhops.graphs.table import Table, Tables, holds_decimals, read_features
from lookhops.graphs.table_ids import GraphNumbers, Nodes
from lookhops.graphs.targets import is_blank

#: Usual names of a label in a table of nodes or edges, where a target is something else.
ROW_LABEL_NAMES = ("class", "label", "y")


def packed(tables: Tables) -> tuple[dict[str, Any], str | None, Callable[[int], str]]:
    """The graphs of tables; see :meth:`Graphs.from_tables`.

    Returns:
        Arguments of :meth:`Graphs.from_edges`, without targets; the column that says what is to be
        learnt, or none; and where what is known of a graph stands: ``graphs.csv, line 12``.
    """
    tables.check()
    columns = tables.id_columns()
    graphs = GraphNumbers.of(tables, columns)
    nodes = Nodes.of(tables, columns, graphs)
    source, target = nodes.ends
    row, count = np.arange(len(source)), len(nodes.graph)
    pairs = source * count + target
    _warn_of_repeated(tables.edges, pairs)
    both_ways = (source < target).sum() == (source > target).sum() and np.array_equal(
        np.sort(pairs), np.sort(target * count + source)
    )
    if not (tables.reading.directed or both_ways):
        turned = row[source != target]
        source, target = np.r_[source, target[turned]], np.r_[target, source[turned]]
        row = np.r_[row, turned]
    counts = np.bincount(nodes.graph, minlength=len(graphs.ids))
    kept, skipped = _without_empty(tables, graphs, counts)
    if not len(kept):
        raise LookHopsError(f"{tables.edges.origin}: there are no graphs in it.")
    label = Label.of(tables, graphs)
    graph_columns = {"id": np.asarray(graphs.ids[kept].astype(str), dtype=object)}
    if tables.graphs is not None:
        unused = {columns["graphs"]["graph_column"], "id", label.name if label else None}
        graph_columns |= {
            name: _plain(tables.graphs.frame[name].iloc[kept])
            for name in tables.graphs.names
            if name not in unused
        }
    if label is not None:
        graph_columns[label.name] = label.cells(kept)
    fields = {
        "source": torch.from_numpy(source),
        "target": torch.from_numpy(target),
        "nodes_per_graph": torch.from_numpy(counts[kept]),
        "nodes": _features(tables, tables.nodes, columns["nodes"].values(), label, nodes.row),
        "edges": _features(tables, tables.edges, columns["edges"].values(), label, row),
        "columns": graph_columns,
        "node_ids": Texts.of(nodes.ids.astype(str).tolist()).take(nodes.id),
        "skipped": skipped,
    }
    where = label or Label(tables.graphs or tables.edges, "", np.arange(len(graphs.ids)))
    name = None if label is None else label.name
    return fields, name, lambda number: where.table.place(where.row[kept[number]])


def _warn_of_repeated(table: Table, pairs: np.ndarray) -> None:
    """Warn of rows that repeat an earlier one in every column.

    Rows of one edge that differ elsewhere, as several transfers between two accounts, are usual.
    """
    _, pair, counts = np.unique(pairs, return_inverse=True, return_counts=True)
    several = np.flatnonzero(counts[pair] > 1)
    rows = table.frame.iloc[several]
    others = rows.select_dtypes(exclude="number").columns  # lists among them cannot be compared
    again = several[rows.astype(dict.fromkeys(others, str)).duplicated().to_numpy()]
    if len(again):
        repeat = "repeats an earlier one" if len(again) == 1 else "repeat earlier ones"
        warnings.warn(
            f"{table.origin}: {counted(len(again), 'row')} of {len(pairs):,} {repeat}, first in "
            f"{table.where(int(again[0]))}; all are kept, as parallel edges.",
            stacklevel=3,
        )


def _without_empty(
    tables: Tables, graphs: GraphNumbers, counts: np.ndarray
) -> tuple[np.ndarray, tuple[Skipped, ...]]:
    """The numbers of the graphs that have nodes, and the others: only a table of graphs has any."""
    empty, table = np.flatnonzero(counts == 0), tables.graphs
    if table is None or not len(empty):
        return np.arange(len(counts)), ()
    ids = [str(name) for name in graphs.ids[empty]]
    if tables.reading.invalid != "skip":
        raise LookHopsError(
            f"{table.place(empty[0])}: graph {ids[0]!r} has no nodes; give it rows in the table of "
            "nodes or of edges, or leave such graphs out with invalid='skip' (--invalid skip)."
        )
    warnings.warn(
        f"{table.origin}: {len(empty):,} of {counted(len(counts), 'graph')} "
        f"{agreeing(len(empty), 'has no nodes and is', 'have no nodes and are')} left out: "
        f"{listed([table.where(int(row)) for row in empty])}.",
        stacklevel=3,
    )
    skipped = map(Skipped, empty.tolist(), ids, repeat("it has no nodes"))
    return np.flatnonzero(counts), tuple(skipped)


# -------------------------------------------------------------------- what is to be learnt


@dataclass(frozen=True)
class Label:
    """The column that says what is to be learnt of each graph."""

    table: Table
    name: str
    row: np.ndarray  # of each graph, -1 where it has none

    @classmethod
    def of(cls, tables: Tables, graphs: GraphNumbers) -> Label | None:
        """Of a table of graphs, a column; else a column with one value in all rows of a graph."""
        wanted = tables.reading.label_column or tables.reading.target
        if tables.graphs is not None:
            name = tables.find(tables.graphs, "label_column", LABEL_NAMES)
            chosen = tables.reading.label_column or name
            if name is not None and name.lower() == str(chosen).strip().lower():
                return cls(tables.graphs, name, np.arange(len(graphs.ids)))
        for table, graph in ((tables.nodes, graphs.of_node), (tables.edges, graphs.of_edge)):
            if table is None or graph is None or (tables.graphs is not None and wanted is None):
                continue
            named = called(wanted, table.names) if wanted else None
            name = named or tables.find(table, "label_column", ROW_LABEL_NAMES)
            if name is None:
                continue
            row = np.full(len(graphs.ids), -1)
            row[graph[::-1]] = np.arange(len(graph))[::-1]  # of several rows the first stays
            value = pd.factorize(table.frame[name])[0]
            differs = value != value[row[graph]]
            # A label of the only graph may be one of its nodes or edges, which are all alike.
            if not differs.any() and (len(row) > 1 or name != "label" or name == named):
                return cls(table, name, row)
            if name == named:
                second = int(differs.argmax())
                raise LookHopsError(
                    f"{table.place(second)}: graph {str(graphs.ids[graph[second]])!r} has another "
                    f"{name!r} there than in {table.where(int(row[graph[second]]))}; give each "
                    "graph one, or a table of graphs that says it."
                )
        return None

    def cells(self, kept: np.ndarray) -> np.ndarray:
        """What it says of the graphs with these numbers."""
        rows = self.row[kept]
        column = self.table.frame[self.name].iloc[rows].where(rows >= 0)
        yes_or_no = pd.api.types.is_bool_dtype(column)  # are words, not numbers
        return _plain(column.astype(object) if yes_or_no else column)


# -------------------------------------------------------------------- features, and the rest


def _features(
    tables: Tables,
    table: Table | None,
    ids: Iterable[str | None],
    label: Label | None,
    row: np.ndarray | None,
) -> Features:
    """The columns of a table but its ids and the label, as features."""
    if table is None:
        return NO_FEATURES
    unused = {*ids, *names_in(tables.reading.ignore)}
    if label is not None and label.table is table:
        unused.add(label.name)
    names = [name for name in table.names if name not in unused]
    weight = tables.find(table, "weight_column", ("weight", "edge_weight"))
    if table is tables.edges and weight in names and weight != "weight":
        if "weight" in names:
            raise LookHopsError(
                f"{table.origin}: {weight!r} is to be the weight, and another column is called so; "
                "leave that one out with ignore (--ignore weight)."
            )
        table = replace(table, frame=table.frame[names].rename(columns={weight: "weight"}))
        names = ["weight" if name == weight else name for name in names]
    features, left_out = read_features(table, names, row, tables.reading)
    if left_out:
        why = ", ".join(f"{name} ({reason})" for name, reason in left_out.items())
        warnings.warn(
            f"{table.origin}: left out, because a model can make nothing of them: {why}. ignore "
            "(--ignore) says so beforehand.",
            stacklevel=2,
        )
    return features


def _plain(column: pd.Series) -> np.ndarray:
    """A column of what is known of graphs: numbers as they are, all else as text."""
    types = pd.api.types
    if types.is_numeric_dtype(column) or holds_decimals(column):
        kind: type = bool if types.is_bool_dtype(column) else np.int64
        if column.isna().any() or not (kind is bool or types.is_integer_dtype(column)):
            kind = np.float64
        return column.to_numpy(kind, na_value=np.nan)
    texts = ["" if is_blank(cell) else str(cell) for cell in column.tolist()]
    return np.array(texts, dtype=object)
