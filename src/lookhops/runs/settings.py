"""What decides a training, where two trainings differ in it, and what else is kept of one."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any

from lookhops.core.errors import LookHopsError
from lookhops.core.options import AS_USUAL, Protocol, Reading
from lookhops.core.schema import read
from lookhops.encoding import Encoding
from lookhops.graphs import Graphs
from lookhops.nn import Architecture
from lookhops.sources.splits import Split


def settings_of(
    graphs: Graphs,
    architecture: Architecture,
    protocol: Protocol,
    splits: Mapping[int, Split],
) -> dict[str, Any]:
    """Everything that decides a training run, as JSON can hold it."""
    digest = hashlib.sha256()
    for seed, split in splits.items():
        for part in ("train", "val", "test"):
            index = getattr(split, part).cpu().numpy().astype("<i8")
            digest.update(f"{seed} {part} {len(index)} ".encode() + index.tobytes())
    return {
        "architecture": _plain(architecture),
        "protocol": _plain(protocol),
        "data": {
            "name": graphs.name,
            "featuriser": graphs.featuriser,
            "num_features": graphs.num_features,
            "label_sizes": list(graphs.nodes.label_sizes),
            "graphs": len(graphs),
            "class_names": list(graphs.class_names),
            "fingerprint": graphs.fingerprint,
            "splits": digest.hexdigest()[:16],
        },
        "encoding": Encoding.fit(graphs, architecture.reads_edges).to_dict(),
    }


def _plain(config: Architecture | Protocol) -> dict[str, Any]:
    """A configuration as JSON gives it back."""
    values = asdict(config)
    return {
        key: list(value) if isinstance(value, tuple) else value for key, value in values.items()
    }


def difference(stored: Mapping[str, Any], given: Mapping[str, Any]) -> str:
    """In words, where two settings differ; empty where they do not."""
    found = []
    last = [settings.get("final", False) for settings in (stored, given)]
    if last[0] != last[1]:
        found.append("final {} there, {} here".format(*last))
    kinds: dict[str, Any] = {"architecture": Architecture, "protocol": Protocol}
    for part in ("architecture", "protocol", "data"):
        there, here = stored.get(part, {}), given[part]
        if part in kinds:  # options that came later have their defaults
            with suppress(LookHopsError):
                there = _plain(read(kinds[part], there))
        for key in {**here, **there}:
            if there.get(key) != here.get(key):
                found.append(f"{key} {there.get(key)!r} there, {here.get(key)!r} here")
    return "; ".join(found)


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
