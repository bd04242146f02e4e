"""Graphs from tables: one of edges, and where there are any, one of nodes and one of graphs.

Nothing loops over rows or graphs: ids of all tables become numbers by one hash table, a node is the
pair (graph, node id) as one number, and the ends of all edges are looked up at once.
"""

from lookhops.graphs.tables.packing import packed

__all__ = ["packed"]
