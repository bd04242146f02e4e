"""What a model is told: how features of graphs become the columns that it was trained on."""

from lookhops.encoding.encoding import Encoding, ReadOtherwise

__all__ = ["Encoding", "ReadOtherwise"]
