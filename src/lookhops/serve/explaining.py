"""What spoke for an answer: the rows that are asked for, their shares and their pictures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lookhops.drawing.shares import coloured
from lookhops.drawing.sketch import node_names
from lookhops.errors import LookHopsError
from lookhops.explanations import Attribution, attribute
from lookhops.serve.inputs import Asked
from lookhops.words import MINUS, joined

#: Nodes that a sentence names on each side.
NAMED = 3


def graphs_of(asked: Asked, rows: Sequence[int] | None) -> list[int]:
    """The numbers of the graphs that were read from some rows of the input; by default all.

    Args:
        asked: What was read.
        rows: Numbers of rows, from 0.
    """
    skipped = {row.row: row.reason for row in asked.given.skipped}
    total = len(asked.graphs) + len(skipped)
    if rows is None:
        return list(range(len(asked.graphs)))
    found = []
    kept = [row for row in range(total) if row not in skipped]
    number = {row: i for i, row in enumerate(kept)}
    for row in rows:
        if not 0 <= row < total:
            raise LookHopsError(f"There is no row {row}: the input has {total}, from 0.")
        if row in skipped:
            raise LookHopsError(f"Row {row} gave no graph: {skipped[row]}.")
        found.append(number[row])
    return found


def explanations(asked: Asked, chosen: Sequence[int], target: str | None) -> list[dict[str, Any]]:
    """Each graph's shares, a sentence and a picture, as JSON can hold them."""
    found = attribute(asked.predictor, asked.graphs.select(chosen), target)
    return [_record(found[number]) for number in range(len(found))]


def _record(one: Attribution) -> dict[str, Any]:
    said = sentence(one)
    return {
        "id": one.id,
        "answer": one.answer,
        "unit": one.unit,
        "value": one.value,
        "baseline": one.baseline,
        "whole": one.whole,
        "nodes": one.node.tolist(),
        "nodes_spread": one.node_spread.tolist(),
        "edges": one.edges.tolist(),
        "edges_share": one.edge.tolist(),
        "edges_spread": one.edge_spread.tolist(),
        "said": said,
        "picture": coloured(one.edges, one.node, one.edge, f"{one.id}: {said}", one.smiles),
    }


def sentence(one: Attribution) -> str:
    """The nodes that spoke most for and against an answer, with half of their edges' shares."""
    shares = one.node.copy()
    for end in one.edges.T:
        np.add.at(shares, end, one.edge / 2)
    names = node_names(len(shares), one.smiles)
    order = np.argsort(-np.abs(shares), kind="stable")
    largest = float(np.abs(shares).max(initial=0.0))
    parts = []
    sides = ("for it", "against it") if one.in_log_odds else ("raised by", "lowered by")
    for side, sign in zip(sides, (1, -1), strict=True):
        chosen = [i for i in order if sign * shares[i] > 0.2 * largest][:NAMED]
        if chosen:
            named = [f"{names[i]} {_share(shares[i])}" for i in chosen]
            parts.append(f"{side} {joined(named)}")
    told = f"{one.unit} {_share(one.value)}"
    return f"{told}: {'; '.join(parts)}." if parts else f"{told}: no node speaks for or against it."


def _share(value: float) -> str:
    return f"{value:+.2g}".replace("-", MINUS)
