"""Where a model comes from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lookhops.core.options import AS_USUAL, Reading


@dataclass(frozen=True)
class Provenance:
    """Where a model comes from, kept with it; nothing in it decides the training.

    Args:
        reading: How the graphs were read: new ones are read so too.
        command: The command line that asked for the model, for whoever wants it again.
        information: The hop information that chose k, as JSON can hold it.
    """

    reading: Reading = AS_USUAL
    command: str | None = None
    information: Mapping[str, Any] | None = None


UNKNOWN = Provenance()
