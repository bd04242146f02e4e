"""Every learner by its name, the names of models with their options, and which is recommended."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from typing import Any

from lookhops.core.errors import LookHopsError
from lookhops.core.options import CLASSICAL, FINGERPRINT, RECOMMENDED, Architecture, Classical
from lookhops.core.schema import AtLeast, located, read
from lookhops.graphs import Graphs
from lookhops.learners.blend import Blend
from lookhops.learners.gp import GaussianProcess
from lookhops.learners.learner import Learner, types_of
from lookhops.learners.network import Network
from lookhops.learners.tabular import TABULAR
from lookhops.learners.wl import WL, WLOptimalAssignment
from lookhops.nn import GraphNetwork
from lookhops.nn.others import (
    find_convolution,
    find_pooling,
    is_other,
    own_options,
    with_own_options,
)
from lookhops.nn.registry import CONVOLUTIONS, find, reads_k
from lookhops.sources.rdkit.descriptors import is_descriptor
from lookhops.tasks import Task

KINDS: list[type[Learner]] = [Network, GaussianProcess, Blend, WL, WLOptimalAssignment, *TABULAR]
#: Every learner by its name. A new one is a file of this package and an entry of ``KINDS``.
LEARNERS: dict[str, type[Learner]] = {kind.name: kind for kind in KINDS}
#: What ``Learner.to_dict`` gives.
SAVED = AtLeast({"name": str, "options": Any})


def learner_from_dict(values: Any, path: str = "learner") -> Learner:
    """The learner that :meth:`~lookhops.learners.Learner.to_dict` wrote, checked."""
    saved: Any = read(SAVED, values, path)
    with located(path):
        return find("learner", LEARNERS, saved["name"]).from_options(saved["options"])


# -------------------------------------------------------------------- names

#: What a name of a model stands for.
Model = Architecture | Classical
#: The recommended model before the graphs are known that decide which it is.
UNDECIDED = Classical("recommended")


def learner_of(model: Learner | Model | str) -> Learner:
    """The learner of a model, or of its name."""
    if isinstance(model, Learner):
        return model
    if isinstance(model, str):
        model = parse_model(model)
    if isinstance(model, Classical):
        if model == UNDECIDED:
            raise LookHopsError("recommended depends on the graphs: name a model, such as network.")
        name, *options = model.classical.split("/")
        kind = find("model", LEARNERS, name)
        given = _given(options, kind.option_types())
        return kind.from_options(kind().options | given, "")
    return Network(model)


def parse_model(text: str) -> Model:
    """A model from its name on the command line.

    A network is ``conv[+pool][/option=value...]``: ``licheb+lookhops``, ``cheb``,
    ``licheb/k=3/fingerprint=5``; the options are the fields of :class:`~lookhops.nn.Architecture`,
    by default the paper's. A layer of another library, ``pyg:GATv2Conv`` or ``tgp:kmis``, takes the
    options of its own class that stand right after it; others are the network's:
    ``pyg:GATv2Conv/heads=4+lookhops/ratio=0.8``. ``network`` is the network that `lookhops train`
    begins with, and takes options too. ``recommended`` is the model that
    :func:`~lookhops.learners.registry.recommend` chooses by the graphs; with options it is
    ``network`` with these. ``blend`` takes the options of ``gp`` and those of a network.
    ``fingerprint`` is the linear reading of exact neighbourhoods alone, with the options
    ``fingerprint`` (hops), ``totals`` and ``edges``. Every other learner has its own name, and the
    fields of its class as options.
    """
    try:
        name, options = _network_options(text.strip())
        if name == "recommended" and not options:
            return UNDECIDED
        if name in ("blend", *CLASSICAL):
            return learner_of(Classical("/".join([name, *options]))).model
        start, types = _without_options(name)
        of_layers = dict.fromkeys(own_options(start.conv, start.pool))
        given = _given(options, of_layers | types)
        architecture = replace(start, **given)
        if "k" in given and not reads_k(architecture.conv, architecture.pool):
            why = "does" if is_other(architecture.conv) else "looks one hop and does"
            raise LookHopsError(f"{name} {why} not read k; leave it out.")
        network = GraphNetwork.from_architecture(1, 2, architecture, num_edge_labels=2)
        if given.get("edges") == "use" and not network.takes_edges:
            raise LookHopsError(f"{name} takes nothing of edges but where they are; leave it out.")
    except LookHopsError as error:
        raise LookHopsError(f"Model {text!r}: {error}") from error
    return architecture


def _given(options: Sequence[str], types: Mapping[str, Any]) -> dict[str, Any]:
    """The values of options that are written ``name=value``."""
    if options and not types:
        raise LookHopsError("it has no options: leave them out.")
    given: dict[str, Any] = {}
    for option in options:
        field, equals, value = option.partition("=")
        if not equals or field in given:
            raise LookHopsError("options are written name=value, each once.")
        given[field] = option_value(field, value, find("option", types, field))
    return given


def _network_options(text: str) -> tuple[str, list[str]]:
    """A model's name with the options of layers of other libraries, and the network's options."""
    name, *more = text.split("/")
    conv, plus, pool = name.partition("+")
    options: list[str] = []
    if is_other(conv):  # whose options stand before the plus
        before, plus, after = text.partition("+")
        name, *options = before.split("/")
        conv, options = with_own_options(find_convolution(name).kind, name, options)
        pool, *more = after.split("/")
    if is_other(pool):
        pool, more = with_own_options(find_pooling(pool).kind, pool, more)
    return f"{conv}{plus}{pool}", [*options, *more]


def _without_options(name: str) -> tuple[Architecture, dict[str, str]]:
    """The network of a name, and the types of the options that it takes."""
    types = types_of(Architecture)
    if name in ("network", "recommended"):
        return RECOMMENDED, types
    if name == "fingerprint":
        read_by_it = ("fingerprint", "totals", "edges", "bins")
        return FINGERPRINT, {option: types[option] for option in read_by_it}
    conv, plus, pool = name.partition("+")
    if not plus and not is_other(conv):
        others = dict.fromkeys(("recommended", "network", "fingerprint", "blend", *CLASSICAL))
        find("model", {**CONVOLUTIONS, **others}, name)
    del types["conv"], types["pool"]
    return Architecture(conv=conv, pool=pool if plus else "none"), types


def option_value(name: str, text: str, kind: str) -> Any:
    """The value of an option, by the type of its field."""
    if kind.endswith("| None") and text == "none":
        return None
    what, convert = TYPES[kind.split()[0]]
    try:
        return convert(text)
    except (KeyError, ValueError) as error:
        raise LookHopsError(f"{name} is {what}, not {text!r}.") from error


def _finite(text: str) -> float:
    value = float(text)
    if not isfinite(value):
        raise ValueError
    return value


#: What the types of an architecture's fields are called, and how their values are read.
TYPES: dict[str, tuple[str, Callable[[str], Any]]] = {
    "bool": ("true or false", {"true": True, "false": False}.__getitem__),
    "float": ("a number", _finite),
    "int": ("a whole number", int),
    "str": ("text", str),
}


# -------------------------------------------------------------------- what is recommended

#: Up to so many training molecules the process alone is recommended.
MOST_ALONE = 3_000
#: How many hops apart the atoms of a pair are at most that the process compares in molecules.
PAIRS = 20
#: The best partner of the process for numbers of molecules: the paper's layers, plain and wide.
PLAIN = replace(RECOMMENDED, pool="none", normalize=False, hidden=256, fingerprint=None)


@dataclass(frozen=True)
class Recommendation:
    """A learner, and the reason for it in a sentence without its full stop."""

    learner: Learner
    why: str

    @property
    def said(self) -> str:
        """Both in a line."""
        name = self.learner.name if self.learner.has_epochs else self.learner.spelled
        return f"{name} ({self.learner.title}): {self.why}"


def recommend(graphs: Graphs, task: Task, training_graphs: int) -> Recommendation:
    """The model that is recommended for a set, of which so many graphs are fitted on.

    One rule, by the kind and the number of the graphs: docs/model.md has the measurements that it
    follows from.
    """
    features = graphs.whole
    described = any(map(is_descriptor, features.number_names))
    more = bool(features.label_names) or not all(map(is_descriptor, features.number_names))
    process = GaussianProcess(pairs=PAIRS if described else 0)
    numbers = not any(head.task.class_names for head in task.heads)
    network = PLAIN if described and numbers else RECOMMENDED
    few = f"{training_graphs:,} training graphs"
    if training_graphs > process.exact_graphs:
        return Recommendation(
            Network(network), f"{few} are too many to solve a Gaussian process exactly"
        )
    if described and not more and training_graphs <= MOST_ALONE:
        return Recommendation(
            process, f"on {few}, molecules with descriptors, a network beside it adds little"
        )
    why = f"on {few} of this kind both together are better than each"
    if described and more:
        why = "the effect of a column can depend on the structure, which a network can learn"
        why = f"on {few} with columns, {why}"
    return Recommendation(Blend(network, process), why)
