"""Columns of tables, found by the names that were chosen, remembered or usual."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NoReturn

from lookhops.core.errors import LookHopsError
from lookhops.core.options import AS_USUAL, Reading

#: Usual names of the columns with the two ends of an edge.
SOURCE_NAMES = ("source", "src", "from", "source_id", "from_id", "from_node", "sender", "u")
TARGET_NAMES = ("target", "dst", "to", "target_id", "to_id", "to_node", "receiver", "v")
#: The same of what is to be learnt.
LABEL_NAMES = ("class", "label", "y", "target")


@dataclass(frozen=True)
class ColumnFinder:
    """Finds the columns of one table.

    Args:
        origin: The table, for messages.
        reading: A column that it names must be there.
        remembered: A column that it names is looked for before those with usual names.
    """

    origin: object
    reading: Reading = AS_USUAL
    remembered: Reading = AS_USUAL

    def find(
        self, header: Iterable[str], option: str, usual: Sequence[str], strict: bool = True
    ) -> str | None:
        """The column that an option names, else the first with one of the usual names, else none.

        Args:
            header: Names of the columns; an exact match comes before one in another case.
            option: A field of :class:`Reading`.
            usual: Names in lower case, the likeliest first.
            strict: Refuse a table without the column that ``reading`` names.
        """
        named = [column for column in header if column]
        wanted, before = getattr(self.reading, option), getattr(self.remembered, option)
        if wanted is not None:
            found = called(wanted, named)
            if found or strict:
                return found or self._refuse(named, option, wanted)
        names = usual if before is None else (before, *usual)
        return next((found for name in names if (found := called(name, named))), None)

    def _refuse(self, named: Sequence[str], option: str, wanted: str) -> NoReturn:
        raise LookHopsError(
            f"{self.origin}: no column is called {wanted!r}; the columns are {listed(named)}. "
            f"Choose one of them for {option} (--{option.replace('_', '-')})."
        )


def called(name: str, names: Iterable[str]) -> str | None:
    """The one among these names that is called so, else so in another case, or none."""
    known = list(names)
    if name in known:
        return name
    lower = name.strip().lower()
    return next((one for one in known if one.lower() == lower), None)


def listed(header: Sequence[str]) -> str:
    """Names of columns for a message: the first twenty, and how many more there are."""
    shown = [column for column in header if column]
    more = f" and {len(shown) - 20} more" if len(shown) > 20 else ""
    return ", ".join(shown[:20]) + more
