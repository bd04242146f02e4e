"""What a model is told of edges: their weights, numbers and one-hot labels."""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan

import torch
from torch import Tensor

from lookhops.core.errors import LookHopsError
from lookhops.encoding.columns import Columns, told_numbers
from lookhops.encoding.scale import Scale
from lookhops.graphs import Graphs
from lookhops.graphs.indexing import take

#: Names of a number of edges that is their weight: it multiplies them, and is no feature.
WEIGHTS = ("weight", "edge_weight")


def weight_column(columns: Columns) -> int | None:
    """Which of the numbers is the weight; none where there is none."""
    found = [number for number, name in enumerate(columns.attributes) if name in WEIGHTS]
    return found[0] if found else None


def number_columns(columns: Columns) -> list[int]:
    """Which of the numbers are features: all but the weight."""
    weight = weight_column(columns)
    return [number for number in range(len(columns.attributes)) if number != weight]


def edge_columns(
    columns: Columns,
    graphs: Graphs,
    edge: Tensor | None,
    dtype: torch.dtype,
    scale: Scale | None = None,
    blanks: Sequence[str] = (),
) -> Tensor:
    """Numbers but the weight, which of them are blank, then one-hot labels, shape (m, f).

    Args:
        columns: Those of the model.
        graphs: Graphs whose features are in these columns.
        edge: Numbers of the edges, shape (m); none means all.
        dtype: Type of the columns.
        scale: The scale of the numbers; by default they are told as they are.
        blanks: The numbers that have a column more, which says where they are blank.
    """
    attributes, labels = graphs.edge_attributes, graphs.edge_labels
    if edge is not None:
        attributes, labels = take(attributes, edge), take(labels, edge)
    if attributes is not None:
        attributes = told_numbers(attributes, columns.attributes, blanks, dtype, scale)
    weight = weight_column(columns)
    if attributes is not None and weight is not None:
        # Not by a list of numbers, which would have to be copied to a GPU.
        attributes = torch.cat((attributes[:, :weight], attributes[:, weight + 1 :]), 1)
    return columns.told(attributes, labels, graphs.edge_label_sizes, dtype)


def edge_weight(
    columns: Columns, graphs: Graphs, edge: Tensor | None, dtype: torch.dtype
) -> Tensor | None:
    """The weights of edges, shape (m), or none where they have none; arguments as above."""
    column = weight_column(columns)
    if column is None or graphs.edge_attributes is None:
        return None
    weight = graphs.edge_attributes[:, column]
    return (weight if edge is None else weight[edge]).to(dtype)


def check_weights(columns: Columns, graphs: Graphs) -> None:
    """Refuse weights that are below zero or blank."""
    weight = edge_weight(columns, graphs, None, torch.float64)
    if weight is not None and not bool((weight >= 0).all()):
        name = columns.attributes[weight_column(columns) or 0]
        edge = int((~(weight >= 0)).nonzero()[0])
        graph, wrong = int(graphs.batch[graphs.target[edge]]), float(weight[edge])
        called = graphs.columns["id"][graph] if "id" in graphs.columns else graph
        raise LookHopsError(
            f"{graphs.name}: an edge of graph {str(called)!r} has "
            f"{f'no {name}' if isnan(wrong) else f'the {name} {wrong:g}'}; a weight is a number "
            "from 0 up. Rename the column to have it read as a feature, or use --edges ignore."
        )
