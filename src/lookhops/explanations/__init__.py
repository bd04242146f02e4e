"""Which parts of a graph an answer rests on, and how true such explanations are."""

from lookhops.explanations.attribution import Attribution
from lookhops.explanations.attributions import Attributions, attribute

__all__ = ["Attribution", "Attributions", "attribute"]
