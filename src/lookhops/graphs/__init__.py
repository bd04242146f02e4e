"""Graphs: many graphs in a few flat tensors, and the forms that they come from and go to."""

from lookhops.graphs.choosing import Skipped, concatenate, in_input_order
from lookhops.graphs.features import Features
from lookhops.graphs.graphs import SUFFIX, Graphs
from lookhops.graphs.targets import Target

__all__ = ["SUFFIX", "Features", "Graphs", "Skipped", "Target", "concatenate", "in_input_order"]
