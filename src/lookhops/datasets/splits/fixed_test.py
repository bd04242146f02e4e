"""A test set that came apart: joined to the other graphs, so that one set holds all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from lookhops.datasets.splits.groups import SAME
from lookhops.datasets.splits.split import has_classes
from lookhops.errors import LookHopsError
from lookhops.graphs import Graphs
from lookhops.graphs.choosing import concatenate


def with_test_set(graphs: Graphs, test: Graphs) -> tuple[Graphs, Tensor]:
    """Both as one set, and the numbers of the test graphs in it.

    Args:
        graphs: Graphs to train on and to stop by.
        test: Graphs to test on, with the same features and targets; classes are found by name.
    """
    if (graphs.y is None) != (test.y is None) or not len(test):
        raise LookHopsError(
            f"{test.name}: a test set has graphs with the targets of {graphs.name}."
        )
    if has_classes(graphs):
        test = _same_classes(graphs, test)
    both = concatenate([graphs, test])
    columns = {
        name: np.concatenate((column, _renumbered(name, len(graphs))(test.columns[name])))
        for name, column in graphs.columns.items()
        if name in test.columns
    }
    numbers = torch.arange(len(graphs), len(both))
    return replace(both, columns=columns), numbers


def _same_classes(graphs: Graphs, test: Graphs) -> Graphs:
    """The test graphs with the numbers that their classes have among the others."""
    known = {name: number for number, name in enumerate(graphs.class_names)}
    assert test.y is not None
    present = [test.class_names[c] for c in test.y.unique().tolist() if c >= 0]
    if strange := [name for name in present if name not in known]:
        raise LookHopsError(
            f"{test.name}: class {strange[0]!r} is not among those of {graphs.name} "
            f"({', '.join(graphs.class_names)}); a model cannot learn it there."
        )
    numbers = torch.tensor([*(known.get(name, -1) for name in test.class_names), -1])
    return replace(test, y=numbers.to(test.y.device)[test.y], class_names=graphs.class_names)


def _renumbered(name: str, start: int) -> Callable[[np.ndarray], np.ndarray]:
    """Numbers of graphs count on from those of the first set; other columns stay."""
    return (lambda column: column + start) if name == SAME else (lambda column: column)
