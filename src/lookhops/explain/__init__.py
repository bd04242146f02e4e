"""Which parts of a graph an answer rests on."""

from lookhops.explain.attributions import Attribution, Attributions, attribute

__all__ = ["Attribution", "Attributions", "attribute"]
