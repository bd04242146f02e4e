"""The plan: which models are trained on which data sets, with which seeds and protocol."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from typing import Any

from lookhops.core.errors import LookHopsError
from lookhops.graphs import Graphs
from lookhops.learners import Model, learner_of, parse_model
from lookhops.learners.names import option_value
from lookhops.runs.keys import RunKey
from lookhops.sources.splits import SplitPlan
from lookhops.training import Protocol


@dataclass(frozen=True)
class Cell:
    """One cell of a table: a model on a data set, one run for each seed of the protocol.

    Args:
        dataset: Name of the data set.
        model: What to call the model.
        architecture: The model.
        protocol: How it is trained; its seeds are the runs of the cell.
        splits: The splits of these seeds and perhaps more; by default the protocol's are drawn.
    """

    dataset: str
    model: str
    architecture: Model
    protocol: Protocol
    splits: SplitPlan | None = None

    def key(self, graphs: Graphs) -> RunKey:
        """What the cell's runs are stored under, given the graphs of its data set."""
        return RunKey.of(graphs, self.architecture, self.protocol, self.splits)


@dataclass(frozen=True)
class Entry:
    """A model that takes part in a comparison.

    Args:
        model: The model.
        training: The options of its training that are not those of the others, by name.
    """

    model: Model
    training: tuple[tuple[str, Any], ...] = ()

    def protocol(self, shared: Protocol) -> Protocol:
        """The shared protocol with its own options."""
        return replace(shared, **dict(self.training))


def without_repeats(cells: Iterable[Cell]) -> list[Cell]:
    """The cells, each once: a model that stands in two tables is trained once."""
    seen: dict[tuple[str, Model, Protocol], Cell] = {}
    for cell in cells:
        seen.setdefault((cell.dataset, cell.architecture, cell.protocol), cell)
    return list(seen.values())


#: The options of a protocol that a model may have for itself: all but those that draw the splits.
OF_TRAINING = {
    own.name: str(own.type)
    for own in fields(Protocol)
    if own.name not in ("seeds", "fractions", "split", "folds")
}


def parse_entry(text: str) -> Entry:
    """A model from its name, whose options may be those of its training too: ``gcn/members=5``."""
    name, *options = text.strip().split("/")
    own = [option for option in options if option.partition("=")[0] in OF_TRAINING]
    model = parse_model("/".join([name, *(option for option in options if option not in own)]))
    if own and not learner_of(model).has_epochs:
        raise LookHopsError(f"Model {text!r}: {name} is not trained; leave out {own[0]}.")
    given: dict[str, Any] = {}
    for option in own:
        field, _, value = option.partition("=")
        if field in given:
            raise LookHopsError(f"Model {text!r}: {field} is given twice.")
        given[field] = option_value(field, value, OF_TRAINING[field])
    return Entry(model, tuple(sorted(given.items())))


def parse_models(text: str) -> dict[str, Entry]:
    """Models from names with commas between, each once, in their order."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise LookHopsError("Name at least one model, such as licheb+lookhops.")
    models: dict[str, Entry] = {}
    for name in dict.fromkeys(names):
        model = parse_entry(name)
        if same := [other for other, known in models.items() if known == model]:
            raise LookHopsError(f"{same[0]} and {name} are the same network: name it once.")
        models[name] = model
    return models
