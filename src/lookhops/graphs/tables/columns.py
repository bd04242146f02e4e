"""Which columns of the tables say what belongs together; all others are features."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

from lookhops.core.errors import LookHopsError
from lookhops.core.options import AS_USUAL, TABLES, Reading
from lookhops.graphs.column_finder import SOURCE_NAMES, TARGET_NAMES, ColumnFinder, listed
from lookhops.graphs.tables.table import Table

# Names that are looked for, in this order, whatever their case, when no option names the column.
GRAPH_NAMES = ("graph", "graph_id", "graphid", "graph_name", "gid", "network", "network_id")
NODE_NAMES = ("node", "node_id", "nodeid", "vertex", "id", "name")
#: The columns of ids of each table: the option that names one, and its usual names.
ID_NAMES: Mapping[str, Mapping[str, Sequence[str]]] = {
    "edges": {
        "graph_column": GRAPH_NAMES,
        "source_column": SOURCE_NAMES,
        "target_column": TARGET_NAMES,
    },
    "nodes": {"graph_column": GRAPH_NAMES, "node_column": NODE_NAMES},
    "graphs": {"graph_column": (*GRAPH_NAMES, "id", "name")},
}


@dataclass(frozen=True)
class Tables:
    """The tables of one set of graphs.

    Args:
        edges: A row an edge: both ends, and its features.
        nodes: A row a node: its id, and its features.
        graphs: A row a graph: its id, what is to be learnt of it, and whatever else is known.
        reading: What the columns are, where they have no usual names; and how they are read.
        remembered: How an earlier set was read: its columns are looked for before the usual ones.
    """

    edges: Table
    nodes: Table | None = None
    graphs: Table | None = None
    reading: Reading = AS_USUAL
    remembered: Reading = AS_USUAL

    @property
    def given(self) -> list[Table]:
        """Those that there are."""
        tables = (self.graphs, self.nodes, self.edges)
        return [table for table in tables if table is not None]

    def find(self, table: Table | None, option: str, usual: Sequence[str]) -> str | None:
        """The column of a table for which there is an option, or none."""
        if table is None:
            return None
        finder = ColumnFinder(table.origin, self.reading, self.remembered)
        return finder.find(table.names, option, usual, strict=False)

    def require(self, table: Table, option: str, usual: Sequence[str], what: str) -> str:
        """The column of a table for which there is an option, or a sentence that asks for it."""
        found = self.find(table, option, usual)
        if found is None:
            raise LookHopsError(
                f"{table.origin}: no column says {what}; the columns are {listed(table.names)}. "
                f"Call one {usual[0]!r}, or name it with {option} (--{option.replace('_', '-')})."
            )
        return found

    def check(self) -> None:
        """Refuse a table without rows, and a column that an option names and no table has."""
        for table in self.given:
            if not len(table.frame) and (table is not self.edges or self.nodes is None):
                raise LookHopsError(f"{table.origin}: there are no rows below the columns' names.")
        known = {name.lower() for table in self.given for name in table.names}
        for own in fields(Reading):
            if own.name.endswith("_column") and TABLES in own.metadata["of"]:
                wanted = getattr(self.reading, own.name)
                if wanted is not None and wanted.strip().lower() not in known:
                    columns = "; ".join(f"{t.origin}: {listed(t.names)}" for t in self.given)
                    raise LookHopsError(
                        f"{own.name} (--{own.name.replace('_', '-')}): no column is called "
                        f"{wanted!r}. The columns are, in {columns}."
                    )


@dataclass(frozen=True)
class IdColumns:
    """Names of the columns of ids; empty where there is no such table.

    Args:
        source: Of edges: the first end.
        target: Of edges: the second end.
        edges_graph: Of edges: the graph, or none where the nodes say it.
        node: Of nodes: the id.
        nodes_graph: Of nodes: the graph, or none where a node is the same in every graph.
        graph: Of graphs: the id.
    """

    source: str
    target: str
    edges_graph: str | None
    node: str
    nodes_graph: str | None
    graph: str

    @classmethod
    def of(cls, tables: Tables) -> IdColumns:
        """Those with the names that were chosen, remembered or usual."""
        edges, nodes, graphs = tables.edges, tables.nodes, tables.graphs
        nodes_graph = tables.find(nodes, "graph_column", GRAPH_NAMES)
        edges_graph = tables.find(edges, "graph_column", GRAPH_NAMES)
        source = tables.require(edges, "source_column", SOURCE_NAMES, "where an edge begins")
        target = tables.require(edges, "target_column", TARGET_NAMES, "where an edge ends")
        if not nodes_graph and not edges_graph:
            tables.require(edges, "graph_column", GRAPH_NAMES, "to which graph an edge belongs")
        node = graph = ""
        if nodes is not None:
            node = tables.require(nodes, "node_column", NODE_NAMES, "which node a row is")
        if graphs is not None:
            usual = ID_NAMES["graphs"]["graph_column"]
            graph = tables.require(graphs, "graph_column", usual, "which graph a row is")
        return cls(source, target, edges_graph, node, nodes_graph, graph)
