"""What a run is stored under: equal where the run would be the same."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any

from lookhops.core.errors import LookHopsError
from lookhops.core.options import Classical
from lookhops.core.schema import decode, read
from lookhops.graphs import Graphs
from lookhops.learners import Model, learner_of
from lookhops.nn import Architecture
from lookhops.sources.splits import SplitPlan
from lookhops.sources.splits.plan import resolved, source_of
from lookhops.training import Protocol

#: In the text of an architecture, beside its fields: the digest of layers that a user registered.
LAYERS = "layers_of_ones_own"
#: In the text of a protocol, beside its fields: what decides the splits besides it and the graphs.
SPLITS = "splits"


@dataclass(frozen=True)
class RunKey:
    """What decides a run besides its seed: the graphs, the model and the protocol.

    Args:
        fingerprint: Of the graphs: their names do not matter, what they are does.
        architecture: The model.
        protocol: How it is trained; its seeds are left out, and of a classical model all that does
            not draw its splits.
        layers: What :func:`own_layers` says of the network.
        splits: The ``source`` of a :class:`~lookhops.sources.splits.SplitPlan`.
    """

    fingerprint: str
    architecture: Model
    protocol: Protocol
    layers: str | None = None
    splits: str | None = None

    def __post_init__(self) -> None:
        read_of_it = learner_of(self.architecture).read_of(self.protocol)
        object.__setattr__(self, "protocol", read_of_it)

    @classmethod
    def of(
        cls,
        graphs: Graphs,
        architecture: Model,
        protocol: Protocol,
        plan: SplitPlan | None = None,
    ) -> RunKey:
        """The key of these graphs, this model and this protocol, on these splits or drawn ones."""
        protocol = resolved(graphs, protocol) if plan is None else protocol
        splits = source_of(graphs, protocol) if plan is None else plan.source
        layers = learner_of(architecture).layers
        return cls(graphs.fingerprint, architecture, protocol, layers, splits)

    @property
    def texts(self) -> tuple[str, str, str]:
        """Fingerprint, architecture and protocol as the columns of a store: canonical JSON."""
        layers = {LAYERS: self.layers} if self.layers else {}
        model = canonical_json(asdict(self.architecture) | layers)
        splits = {SPLITS: self.splits} if self.splits else {}
        return self.fingerprint, model, canonical(self.protocol, **splits)

    @classmethod
    @cache
    def from_texts(cls, fingerprint: str, architecture: str, protocol: str) -> RunKey:
        """The key of such columns; options that they lack have their defaults."""
        values = decode(architecture, "architecture")
        layers = values.pop(LAYERS, None) if isinstance(values, dict) else None
        model = read_model(values)
        options = decode(protocol, "protocol")
        splits = options.pop(SPLITS, None) if isinstance(options, dict) else None
        training = read(Protocol, options, "protocol")
        beside = {f"architecture.{LAYERS}": layers, f"protocol.{SPLITS}": splits}
        for name, value in beside.items():
            if value is not None and not isinstance(value, str):
                raise LookHopsError(f"{name} is not text")
        return cls(fingerprint, model, training, layers, splits)


def read_model(values: Any) -> Model:
    """The model that ``asdict`` wrote."""
    if isinstance(values, dict) and "classical" in values:
        return read(Classical, values, "architecture")
    return read(Architecture, values, "architecture")


def canonical(config: Model | Protocol, **beside: str) -> str:
    """A configuration as JSON text that is equal for equal configurations; seeds are left out."""
    values = asdict(config)
    values.pop("seeds", None)
    return canonical_json(values | beside)


def canonical_json(values: Any) -> str:
    """JSON text that is equal for equal values."""
    return json.dumps(values, sort_keys=True, separators=(",", ":"))
