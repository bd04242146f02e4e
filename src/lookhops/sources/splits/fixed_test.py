"""A test set that came apart: joined to the other graphs, so that one set holds all."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lookhops.core.errors import LookHopsError
from lookhops.graphs import Graphs
from lookhops.graphs.choosing import concatenate
from lookhops.graphs.column_finder import called
from lookhops.graphs.targets import Target, pack_targets, read_target, target_columns
from lookhops.sources.splits.groups import SAME, canonical, codes_of


def with_test_set(graphs: Graphs, test: Graphs) -> tuple[Graphs, Tensor]:
    """Both as one set, and the numbers of the test graphs in it.

    Molecules of either that are the same are known to be so.

    Args:
        graphs: Graphs to train on and to stop by.
        test: Graphs to test on, with the same features and targets; classes are found by name.
    """
    if graphs.y is None or test.y is None or not len(test):
        raise LookHopsError(
            f"{test.name}: a test set has graphs with the targets of {graphs.name}."
        )
    test = replace(test, **pack_targets([target_in(one, test) for one in graphs.targets]))
    both = concatenate([graphs, test])
    columns = {
        name: np.concatenate((column, test.columns[name]))
        for name, column in graphs.columns.items()
        if name in test.columns and name != SAME
    }
    if "smiles" in columns:
        columns[SAME] = codes_of(map(canonical, columns["smiles"])).numpy()
    return replace(both, columns=columns), torch.arange(len(graphs), len(both))


def target_in(target: Target, test: Graphs) -> tuple[Target, NDArray[np.float64]]:
    """A target, and its values in other graphs: classes by their names, numbers as they are."""
    assert test.y is not None
    found = {own.name: (own, values) for own, values in target_columns(test.y, test.targets)}
    name = called(target.name, found)
    if name is None:
        known = ", ".join(found)
        raise LookHopsError(f"{test.name}: there is no target {target.name!r}; it has {known}.")
    own, values = found[name]
    if own.classes == target.classes:
        return target, values
    names = {float(number): name for number, name in enumerate(own.classes)}
    cells = [None if np.isnan(value) else names.get(value, value) for value in values]
    kind = "classes" if target.classes else "numbers"
    place = f"{test.name}, graph {{}}".format
    return read_target(target.name, cells, kind, target.classes or None, place)
