"""What decides a training, where two trainings differ in it, and what else is kept of one."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from lookhops.core.options import AS_USUAL, Protocol, Reading
from lookhops.encoding import Encoding
from lookhops.graphs import Graphs
from lookhops.learners import Learner
from lookhops.sources.splits import Split


def settings_of(
    graphs: Graphs,
    learner: Learner,
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
        "learner": learner.to_dict(),
        "protocol": _plain(protocol),
        "data": {
            "name": graphs.name,
            "featuriser": graphs.featuriser,
            "graphs": len(graphs),
            "class_names": list(graphs.class_names),
            "fingerprint": graphs.fingerprint,
            "splits": digest.hexdigest()[:16],
        },
        "encoding": Encoding.fit(graphs, learner.reads_edges, learner.reads_whole).to_dict(),
    }


def _plain(protocol: Protocol) -> dict[str, Any]:
    """A protocol as JSON gives it back."""
    values = asdict(protocol)
    return {
        key: list(value) if isinstance(value, tuple) else value for key, value in values.items()
    }


def difference(stored: Mapping[str, Any], given: Mapping[str, Any]) -> str:
    """In words, where two settings differ; empty where they do not."""
    there, here = _options(stored), _options(given)
    return "; ".join(
        f"{key} {there.get(key)!r} there, {here.get(key)!r} here"
        for key in {**here, **there}
        if there.get(key) != here.get(key)
    )


def _options(settings: Mapping[str, Any]) -> dict[str, Any]:
    """All that settings say, by name."""
    learner = settings["learner"]
    return {
        "final": settings.get("final", False),
        "model": learner["name"],
        **learner["options"],
        **settings["protocol"],
        **settings["data"],
    }


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
