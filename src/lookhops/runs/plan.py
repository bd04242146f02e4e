"""The plan: which models are trained on which data sets, and what a run is stored under."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields, replace
from functools import cache, cached_property
from typing import Any

from lookhops.core.errors import LookHopsError
from lookhops.core.options import RECOMMENDED, Classical
from lookhops.core.schema import decode, read
from lookhops.graphs import Graphs
from lookhops.learners import Model, learner_of, parse_model
from lookhops.learners.registry import UNDECIDED, option_value
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
    """What decides a run besides its seed: the graphs, the model and the protocol."""

    fingerprint: str  #: of the graphs: their names do not matter, what they are does
    architecture: Model
    #: How it is trained; its seeds are left out, and of a classical model all that does not draw
    #: its splits.
    protocol: Protocol
    layers: str | None = None  #: a digest of the layers that a user registered, if it has any
    splits: str | None = None  #: the ``source`` of a :class:`~lookhops.sources.splits.SplitPlan`

    def __post_init__(self) -> None:
        read_of_it = learner_of(self.architecture).read_of(self.protocol)
        object.__setattr__(self, "protocol", read_of_it)

    @classmethod
    def of(
        cls, graphs: Graphs, architecture: Model, protocol: Protocol, plan: SplitPlan | None = None
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
        for name, value in ((f"architecture.{LAYERS}", layers), (f"protocol.{SPLITS}", splits)):
            if value is not None:
                read(str, value, name)
        return cls(fingerprint, model, training, layers, splits)


def read_model(values: Any) -> Model:
    """The model that ``asdict`` wrote."""
    if isinstance(values, dict) and "classical" in values:
        return read(Classical, values, "architecture")
    return read(Architecture, values, "architecture")


def canonical(config: Model | Protocol, **beside: str) -> str:
    """A configuration as JSON text that is equal for equal configurations; seeds are left out."""
    values = {name: value for name, value in asdict(config).items() if name != "seeds"}
    return canonical_json(values | beside)


def canonical_json(values: Any) -> str:
    """JSON text that is equal for equal values."""
    return json.dumps(values, sort_keys=True, separators=(",", ":"))


@dataclass(frozen=True, eq=False)
class Cell:
    """One cell of a table: a model on a data set, one run for each seed of the protocol.

    ``splits`` are those of these seeds and perhaps more; by default the protocol's are drawn.
    """

    graphs: Graphs
    model: str
    architecture: Model
    protocol: Protocol
    splits: SplitPlan | None = None

    @property
    def dataset(self) -> str:
        return self.graphs.name

    @cached_property
    def key(self) -> RunKey:
        return RunKey.of(self.graphs, self.architecture, self.protocol, self.splits)

    def without_graphs(self) -> Cell:
        """The same to be sent to a process that has the graphs."""
        return replace(self, graphs=None)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Entry:
    """A model that takes part in a comparison, with its own options of training, by name."""

    model: Model
    training: tuple[tuple[str, Any], ...] = ()

    def protocol(self, shared: Protocol) -> Protocol:
        return replace(shared, **dict(self.training))


#: The options of a protocol that a model may have for itself: all but those that draw the splits.
OF_TRAINING = {
    option.name: str(option.type)
    for option in fields(Protocol)
    if option.name not in ("seeds", "fractions", "split", "folds")
}


def parse_entry(text: str) -> Entry:
    """A model from its name, whose options may be those of its training too: ``gcn/members=5``."""
    name, *options = text.strip().split("/")
    training = [option for option in options if option.partition("=")[0] in OF_TRAINING]
    model = parse_model("/".join([name, *(option for option in options if option not in training)]))
    if training and model == UNDECIDED:
        model = RECOMMENDED  # who chooses how it is trained wants the network
    if training and not learner_of(model).has_epochs:
        raise LookHopsError(f"Model {text!r}: {name} is not trained; leave out {training[0]}.")
    given: dict[str, Any] = {}
    for option in training:
        field, _, value = option.partition("=")
        if field in given:
            raise LookHopsError(f"Model {text!r}: {field} is given twice.")
        given[field] = option_value(field, value, OF_TRAINING[field])
    return Entry(model, tuple(sorted(given.items())))


def parse_models(text: str) -> dict[str, Entry]:
    """Models from names with commas between, each once, in their order."""
    names: dict[Entry, str] = {}
    for name in dict.fromkeys(part.strip() for part in text.split(",") if part.strip()):
        entry = parse_entry(name)
        if (other := names.setdefault(entry, name)) != name:
            raise LookHopsError(f"{other} and {name} are the same network: name it once.")
    if not names:
        raise LookHopsError("Name at least one model, such as licheb+lookhops.")
    return {name: entry for entry, name in names.items()}
