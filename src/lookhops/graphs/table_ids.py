"""Ids of tables as numbers: the graphs, their nodes, and the ends of the edges among them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from lookhops.core.errors import LookHopsError
from lookhops.core.words import agreeing, counted
from lookhops.graphs.table import Table, Tables

#: Of each table its columns of ids, by option: :meth:`Tables.id_columns`.
IdColumns = Mapping[str, Mapping[str, str | None]]


def numbered(columns: Sequence[pd.Series | None]) -> tuple[list[np.ndarray | None], pd.Index]:
    """Ids as numbers from 0, in the order in which they first come; and the ids.

    They are compared as whole numbers where all columns hold those, else as texts.
    """
    given = [column for column in columns if column is not None]
    if not all(pd.api.types.is_integer_dtype(column) for column in given):
        given = [column.astype(str) for column in given]
    codes, ids = pd.factorize(pd.concat(given, ignore_index=True))
    parts = iter(np.split(codes, np.cumsum([len(column) for column in given])[:-1]))
    return [None if column is None else next(parts) for column in columns], pd.Index(ids)


@dataclass(frozen=True)
class GraphNumbers:
    """Ids of graphs, in the order of the first table that names them.

    With them the number of the graph of each row of the tables of nodes and of edges, where these
    say it.
    """

    ids: pd.Index
    of_node: np.ndarray | None
    of_edge: np.ndarray | None

    @classmethod
    def of(cls, tables: Tables, columns: IdColumns) -> GraphNumbers:
        """The graphs of all tables; of a table of graphs, exactly its rows."""
        table, given = tables.graphs, (tables.graphs, tables.nodes, tables.edges)
        (listed, *of_rows), ids = numbered(
            [
                None if one is None else one.ids(columns[name]["graph_column"])
                for name, one in zip(("graphs", "nodes", "edges"), given, strict=True)
            ]
        )
        if table is None or listed is None:
            return cls(ids, *of_rows)
        refuse_repeated(table, listed, lambda row: f"graph {_quoted(ids, listed[row])}")
        for source, of_row in zip(given[1:], of_rows, strict=True):
            if source is None or of_row is None:
                continue
            unknown = of_row >= len(listed)
            if unknown.any():
                row = unknown.argmax()
                raise LookHopsError(
                    f"{source.place(row)}: graph {_quoted(ids, of_row[row])} is in no row of "
                    f"{table.origin}; add it there, or take its rows out."
                )
        return cls(ids[: len(listed)], *of_rows)


@dataclass(frozen=True)
class Nodes:
    """The nodes of all graphs, graph after graph, and the edges between them."""

    graph: np.ndarray  # of each node, ascending
    row: np.ndarray | None  # of each node in its table, if there is one
    ends: np.ndarray  # of each edge, shape (2, e)
    id: np.ndarray  # of each node, its place among ``ids``
    ids: pd.Index

    @classmethod
    def of(cls, tables: Tables, columns: IdColumns, graphs: GraphNumbers) -> Nodes:
        """The nodes of the table, where it says their graphs; else the ends of the edges."""
        table = tables.nodes
        (listed, *both), ids = numbered(
            [
                None if table is None else table.ids(columns["nodes"]["node_column"]),
                tables.edges.ids(columns["edges"]["source_column"]),
                tables.edges.ids(columns["edges"]["target_column"]),
            ]
        )
        ends = np.stack([end for end in both if end is not None])
        if table is not None and listed is not None and graphs.of_node is not None:
            return _listed_nodes(tables, table, graphs, listed, ends, ids)
        assert graphs.of_edge is not None
        keys = graphs.of_edge * len(ids) + ends
        pair, number = _different(keys.ravel(), len(graphs.ids) * len(ids))
        nodes = cls(pair // len(ids), None, number.reshape(2, -1), pair % len(ids), ids)
        if table is None or listed is None:
            return nodes
        refuse_repeated(table, listed, lambda row: f"node {_quoted(ids, listed[row])}")
        row = pd.Index(listed).get_indexer(nodes.id)
        _refuse_unknown(tables, table, row[nodes.ends], ends, ids)
        if unused := len(listed) - len(np.unique(row)):
            warnings.warn(
                f"{table.origin}: {unused:,} of its {counted(len(listed), 'node')} "
                f"{agreeing(unused, 'has', 'have')} no edge, and nothing says of which graph "
                f"{agreeing(unused, 'it is; it is', 'they are; they are')} left out.",
                stacklevel=2,
            )
        return replace(nodes, row=row)


def _different(keys: np.ndarray, limit: int) -> tuple[np.ndarray, np.ndarray]:
    """The different keys below a limit, ascending, and the place of each key among them."""
    if limit > 8 * len(keys):
        return np.unique(keys, return_inverse=True)
    present = np.zeros(limit, dtype=bool)  # few possible keys are ten times quicker marked
    present[keys] = True
    return np.flatnonzero(present), (np.cumsum(present) - 1)[keys]


def _quoted(ids: pd.Index, number: int) -> str:
    return repr(str(ids[number]))


def _listed_nodes(
    tables: Tables,
    table: Table,
    graphs: GraphNumbers,
    listed: np.ndarray,
    ends: np.ndarray,
    ids: pd.Index,
) -> Nodes:
    """The nodes of a table that says their graphs, whether or not they have edges."""
    graph = graphs.of_node
    assert graph is not None
    if graphs.of_edge is not None:
        key, wanted, hint = graph * len(ids) + listed, graphs.of_edge * len(ids) + ends, ""
    else:
        key, wanted, hint = listed, ends, "; where nodes of several graphs share an id, "
        hint += f"{tables.edges.origin} needs a column 'graph' too"

    def called(row: int) -> str:
        return f"node {_quoted(ids, listed[row])} of graph {_quoted(graphs.ids, graph[row])}"

    refuse_repeated(table, key, called, hint)
    row = pd.Index(key).get_indexer(wanted.ravel()).reshape(2, -1)
    _refuse_unknown(tables, table, row, ends, ids, graphs)
    apart = graph[row[0]] != graph[row[1]]
    if apart.any():
        edge = apart.argmax()
        first, second = (
            f"{_quoted(ids, ends[end, edge])} of {_quoted(graphs.ids, graph[row[end, edge]])}"
            for end in range(2)
        )
        raise LookHopsError(
            f"{tables.edges.place(edge)}: an edge between two graphs, from node {first} to "
            f"{second}."
        )
    order = np.argsort(graph, kind="stable")
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    return Nodes(graph[order], order, place[row], listed[order], ids)


def refuse_repeated(
    table: Table, numbers: np.ndarray, called: Callable[[int], str], more: str = ""
) -> None:
    """Refuse a table in which two rows are the same graph or node."""
    repeated = pd.Series(numbers).duplicated().to_numpy()
    if repeated.any():
        row = int(repeated.argmax())
        first = int((numbers == numbers[row]).argmax())
        raise LookHopsError(
            f"{table.place(row)}: {called(row)} stands in {table.where(first)} already; keep one "
            f"of the two{more}."
        )


def _refuse_unknown(
    tables: Tables,
    table: Table,
    row: np.ndarray,
    ends: np.ndarray,
    ids: pd.Index,
    graphs: GraphNumbers | None = None,
) -> None:
    """Refuse an edge with an end that no row of the node table describes."""
    unknown = row < 0
    if unknown.any():
        edge = unknown.any(0).argmax()
        node = _quoted(ids, ends[unknown[:, edge].argmax(), edge])
        if graphs is not None and graphs.of_edge is not None:
            node += f" of graph {_quoted(graphs.ids, graphs.of_edge[edge])}"
        raise LookHopsError(
            f"{tables.edges.place(edge)}: node {node} is in no row of {table.origin}; "
            "add it there, or take the edge out."
        )
