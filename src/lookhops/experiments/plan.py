"""The plan: which models are trained on which data sets, with which seeds and protocol."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from lookhops.errors import LookHopsError
from lookhops.graphs import Graphs
from lookhops.nn import RECOMMENDED, Architecture, GraphClassifier
from lookhops.training import Protocol


@dataclass(frozen=True)
class Cell:
    """One cell of a table: a model on a data set, one run for each seed of the protocol.

    Args:
        dataset: Name of the data set.
        model: What to call the model.
        architecture: The model.
        protocol: How it is trained; its seeds are the runs of the cell.
    """

    dataset: str
    model: str
    architecture: Architecture
    protocol: Protocol

    def key(self, graphs: Graphs) -> Key:
        """What the cell's runs are stored under, given the graphs of its data set."""
        return Key(graphs.fingerprint, canonical(self.architecture), canonical(self.protocol))


@dataclass(frozen=True)
class Key:
    """What decides a run besides its seed: the graphs, the network and the protocol.

    Args:
        fingerprint: Of the graphs: their names do not matter, what they are does.
        architecture: Canonical JSON.
        protocol: Canonical JSON, without the seeds.
    """

    fingerprint: str
    architecture: str
    protocol: str


def canonical(config: Architecture | Protocol) -> str:
    """A configuration as JSON text that is equal for equal configurations; seeds are left out."""
    values = asdict(config)
    values.pop("seeds", None)
    return json.dumps(values, sort_keys=True, separators=(",", ":"))


def architecture_from(text: str) -> Architecture:
    """The architecture that :func:`canonical` wrote; options it lacks have their defaults."""
    return Architecture(**_known(Architecture, json.loads(text)))


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


def cross(
    datasets: Sequence[str], models: Iterable[tuple[str, Architecture]], protocol: Protocol
) -> list[Cell]:
    """Every model on every data set, model after model."""
    return [Cell(data, name, model, protocol) for name, model in models for data in datasets]


def without_repeats(cells: Iterable[Cell]) -> list[Cell]:
    """The cells, each once: a model that stands in two tables is trained once."""
    seen: dict[tuple[str, Architecture, Protocol], Cell] = {}
    for cell in cells:
        seen.setdefault((cell.dataset, cell.architecture, cell.protocol), cell)
    return list(seen.values())


def parse_model(text: str) -> Architecture:
    """A network from its name on the command line: ``conv[+pool][/option=value...]``.

    ``licheb+lookhops``, ``cheb``, ``licheb+lookhops/k=3/edge_ratio=0.7``: the options are the
    fields of :class:`~lookhops.nn.Architecture`, by default the paper's. ``recommended`` is the
    network that `lookhops train` begins with, and takes options too.
    """
    layers, *options = text.strip().split("/")
    conv, _, pool = layers.partition("+")
    values: dict[str, Any] = {"conv": conv, "pool": pool or "none"}
    types = {field.name: str(field.type) for field in fields(Architecture)}
    if layers == "recommended":
        values = asdict(RECOMMENDED)
    else:
        types = {name: kind for name, kind in types.items() if name not in values}
    for option in options:
        name, equals, value = option.partition("=")
        if not equals or name not in types:
            raise LookHopsError(
                f"Model {text!r}: options are written name=value, with a name of "
                f"{', '.join(types)}."
            )
        values[name] = _value(text, name, value, types[name])
    try:
        architecture = Architecture(**values)
        GraphClassifier.from_architecture(1, 2, architecture)
    except LookHopsError as error:
        raise LookHopsError(f"Model {text!r}: {error}") from error
    return architecture


def _value(model: str, name: str, text: str, kind: str) -> Any:
    """The value of an option, by the type of its field."""
    words = {"none": None, "true": True, "false": False}
    if "str" not in kind and text.lower() in words:
        return words[text.lower()]
    try:
        if "float" in kind:
            return float(text)
        return int(text) if "int" in kind else text
    except ValueError as error:
        raise LookHopsError(f"Model {model!r}: {name} is a number, not {text!r}.") from error


def parse_models(text: str) -> dict[str, Architecture]:
    """Models from names with commas between, each once, in their order."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise LookHopsError("Name at least one model, such as licheb+lookhops.")
    return {name: parse_model(name) for name in names}
