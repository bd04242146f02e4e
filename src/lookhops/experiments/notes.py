"""Notes on a data set, kept beside its runs: its size, its classes, its information gain."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lookhops.errors import LookHopsError
from lookhops.models.graph_counts import SIZE, check_graph_counts
from lookhops.schema import AtLeast, Count, read

#: What kinds of notes hold; ``command ...`` is the command line that asked for runs.
FIT = AtLeast({**dict.fromkeys(("a", "b", "mse"), float), "r2": float | None})
CURVE = dict.fromkeys(("k", "gain"), Sequence[float])
NOTES = {
    "data": AtLeast({**SIZE, "classes": Count}),
    "gain": AtLeast({**CURVE, "suggested_k": int | None, "fit": FIT}),
}


def check_note(kind: str, value: Any) -> Any:
    """The value of a note, or a sentence that says what is wrong with it."""
    if kind == "graphs":
        check_graph_counts(value, kind)
    elif kind in NOTES:
        read(NOTES[kind], value, kind)
    elif kind.startswith("command"):
        read(str, value, kind)
    if kind == "gain" and not 0 < len(value["k"]) == len(value["gain"]):
        raise LookHopsError("gain has not one number for each k")
    return value
