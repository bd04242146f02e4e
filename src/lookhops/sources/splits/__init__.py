"""Splits of a set of graphs into training, validation and test parts."""

from lookhops.sources.splits.given import read_splits, write_splits
from lookhops.sources.splits.plan import SplitPlan
from lookhops.sources.splits.split import PARTS, Split, split

__all__ = ["PARTS", "Split", "SplitPlan", "read_splits", "split", "write_splits"]
