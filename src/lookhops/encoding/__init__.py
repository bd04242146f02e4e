"""How features of graphs become the columns that a model was trained on."""

from lookhops.encoding.encoding import Encoding, FeatureMissing, ReadOtherwise

__all__ = ["Encoding", "FeatureMissing", "ReadOtherwise"]
