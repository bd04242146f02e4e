"""How features of graphs become the columns that a model was trained on."""

from lookhops.encoding.encoding import Encoding, ReadOtherwise

__all__ = ["Encoding", "ReadOtherwise"]
