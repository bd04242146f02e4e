"""What spoke for an answer: the rows that are asked for, their shares and their pictures."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Any

from lookhops.core.errors import LookHopsError
from lookhops.explain import Attribution, attribute
from lookhops.explain.attribution import common_limit
from lookhops.explain.drawing.shares import draw_shares
from lookhops.serve.inputs import Asked
from lookhops.serve.models import ServedModel

#: Graphs that are explained at a time.
AT_A_TIME = 4


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


async def explanations(
    model: ServedModel, asked: Asked, chosen: Sequence[int], target: str | None
) -> list[dict[str, Any]]:
    """Each graph's shares as ``lookhops explain`` gives them, with a picture (SVG).

    Few graphs at a time: others get their turn between them.
    """
    found: list[Attribution] = []
    for start in range(0, len(chosen), AT_A_TIME):
        part = asked.graphs.select(chosen[start : start + AT_A_TIME])
        shares = await model.batcher.call(partial(attribute, asked.predictor, part, target))
        found += [shares[number] for number in range(len(shares))]
    return await asyncio.to_thread(_records, found)


def _records(found: Sequence[Attribution]) -> list[dict[str, Any]]:
    limit = common_limit(found)
    return [{**one.as_json(), "picture": draw_shares(one, limit, one.unit)} for one in found]
