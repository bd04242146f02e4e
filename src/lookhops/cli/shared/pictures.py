"""Explanations as JSON and as pictures, each under a name of its own."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lookhops.models.explain import Explanation


def with_pictures(found: Iterable[Explanation], folder: Path | None) -> Iterator[dict[str, Any]]:
    """Explanations as JSON can hold them; where there is a folder, with a ``picture`` in it."""
    from lookhops.files import write_text

    taken: set[str] = set()
    for explanation in found:
        record = explanation.as_json()
        if folder is not None:
            record["picture"] = _new_name(explanation.id, taken)
            write_text(folder / record["picture"], explanation.picture())
        yield record


def _new_name(graph_id: str, taken: set[str]) -> str:
    """A file name from an id: safe on every system, and not among those that are taken."""
    stem = re.sub(r"[^\w.+-]+", "-", graph_id).strip("-.")[:80] or "graph"
    name, number = f"{stem}.svg", 2
    while name.lower() in taken:
        name, number = f"{stem}-{number}.svg", number + 1
    taken.add(name.lower())
    return name
