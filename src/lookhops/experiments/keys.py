"""What a run is stored under: texts that are equal where the run would be the same."""

from __future__ import annotations

import hashlib
import inspect
import json
from dataclasses import asdict, dataclass, fields
from typing import Any

from lookhops.errors import LookHopsError
from lookhops.graphs import Graphs
from lookhops.nn import Architecture, GraphNetwork
from lookhops.nn.registry import BUILT_IN, CONVOLUTIONS, POOLINGS
from lookhops.training import Protocol

#: In a key, beside the fields of the architecture: what its registered layers are.
LAYERS = "layers_of_ones_own"


@dataclass(frozen=True)
class Key:
    """What decides a run besides its seed: the graphs, the network and the protocol.

    Args:
        fingerprint: Of the graphs: their names do not matter, what they are does.
        architecture: Canonical JSON; layers that are not ours are known by more than their names.
        protocol: Canonical JSON, without the seeds.
    """

    fingerprint: str
    architecture: str
    protocol: str

    @classmethod
    def of(cls, graphs: Graphs, architecture: Architecture, protocol: Protocol) -> Key:
        """The key of these graphs, this network and this protocol."""
        network = key_text(architecture, own_layers(architecture))
        return cls(graphs.fingerprint, network, canonical(protocol))


def canonical(config: Architecture | Protocol) -> str:
    """A configuration as JSON text that is equal for equal configurations; seeds are left out."""
    values = asdict(config)
    values.pop("seeds", None)
    return _json(values)


def key_text(architecture: Architecture, layers: str | None) -> str:
    """What a :class:`Key` has of an architecture.

    Args:
        architecture: The network.
        layers: What :func:`own_layers` says of it.
    """
    return _json(asdict(architecture) | ({LAYERS: layers} if layers else {}))


def own_layers(architecture: Architecture) -> str | None:
    """A digest of a network's layers where the user registered them; of ours the names suffice.

    So a layer that is defined anew under an old name is trained anew.
    """
    if {architecture.conv, architecture.pool} <= BUILT_IN:
        return None
    if architecture.conv not in CONVOLUTIONS or architecture.pool not in POOLINGS:
        return None  # training will say so
    model = GraphNetwork.from_architecture(3, 2, architecture)
    kinds = dict.fromkeys(type(module) for module in model.modules())
    said = [repr(model), *map(_source, kinds)]
    return hashlib.sha256("\n".join(said).encode()).hexdigest()[:16]


def layers_of(text: str) -> str | None:
    """The digest of a user's layers, from the text of an architecture."""
    found = json.loads(text).get(LAYERS)
    return None if found is None else str(found)


def completed(text: str) -> str:
    """The text of an architecture as this version writes it: options it lacks have defaults."""
    return key_text(architecture_from(text), layers_of(text))


def _json(values: dict[str, Any]) -> str:
    return json.dumps(values, sort_keys=True, separators=(",", ":"))


def _source(kind: type) -> str:
    if kind.__module__.split(".")[0] in ("torch", "lookhops"):  # known by their names
        return ""
    try:
        return inspect.getsource(kind)
    except (OSError, TypeError):  # typed at a prompt
        return kind.__qualname__


def architecture_from(text: str) -> Architecture:
    """The architecture of a :class:`Key`; options it lacks have their defaults."""
    values = json.loads(text)
    values.pop(LAYERS, None)
    return Architecture(**_known(Architecture, values))


def protocol_from(text: str) -> Protocol:
    """The protocol that :func:`canonical` wrote, with the paper's seeds."""
    values = _known(Protocol, json.loads(text))
    values["fractions"] = tuple(values.get("fractions", Protocol().fractions))
    return Protocol(**values)


def _known(kind: type, values: dict[str, Any]) -> dict[str, Any]:
    names = {field.name for field in fields(kind)}
    if strange := sorted(set(values) - names):
        raise LookHopsError(
            f"An option {strange[0]!r} of {kind.__name__} is not known to this version of LookHops."
        )
    return values
