"""Which parts of a graph an answer rests on."""

from lookhops.explain.attribution import Attribution
from lookhops.explain.attributions import Attributions, attribute

__all__ = ["Attribution", "Attributions", "attribute"]
