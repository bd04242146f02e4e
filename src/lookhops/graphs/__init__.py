"""Graphs: many graphs in a few flat tensors, and the forms that they come from and go to."""

from lookhops.graphs.graphs import SUFFIX, Graphs
from lookhops.graphs.joining import concatenate

__all__ = ["SUFFIX", "Graphs", "concatenate"]
