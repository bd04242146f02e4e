"""The network as a learner: it fits many runs at once, and is asked many networks at once."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any, ClassVar, Self, cast

import torch
from torch import Tensor

from lookhops.core.options import FINGERPRINT, RECOMMENDED, Architecture, Classical, Protocol
from lookhops.core.schema import located
from lookhops.core.tensors import Expected, check_tensors, named_parts, part_of
from lookhops.encoding import Encoding
from lookhops.encoding.preprocessing import PreparedGraphs, Preprocessing
from lookhops.graphs import Graphs
from lookhops.learners.learner import (
    FITTED,
    PREPROCESSING,
    Fitted,
    Learner,
    fitted_of,
    fitted_target,
    options_in_words,
)
from lookhops.nn import GraphNetwork
from lookhops.nn.others import is_other
from lookhops.nn.registry import BUILT_IN, is_known, network_name, reads_k
from lookhops.sources.splits import Split
from lookhops.tasks import Task
from lookhops.training import train
from lookhops.training.device import threads_of, unweighted
from lookhops.training.inference import Ensemble
from lookhops.training.runs import Run
from lookhops.training.trainer import train_on_all

#: Weights lie between minus this and this: products of some of them are finite.
LARGEST_WEIGHT = 1e18


def _weight(weight: Tensor, dtype: torch.dtype) -> Expected:
    """What a weight like this must be in a network of a type."""
    dtype = dtype if weight.is_floating_point() else weight.dtype
    name = str(dtype).removeprefix("torch.")
    return Expected(tuple(weight.shape), name, -LARGEST_WEIGHT, LARGEST_WEIGHT)


@dataclass(frozen=True, eq=False)
class FittedNetwork(Fitted):
    """One trained network."""

    network: GraphNetwork
    preprocessing: Preprocessing  # what else was fitted on its training part
    target: Tensor | None = None  # what the task took from it, where outputs need that

    def tensors(self) -> dict[str, Tensor]:
        target = {} if self.target is None else {FITTED: self.target}
        beside = named_parts({PREPROCESSING: self.preprocessing.tensors()})
        return {**self.network.state_dict(), **beside, **target}

    @classmethod
    def from_tensors(
        cls, learner: Any, task: Task, encoding: Encoding, tensors: Mapping[str, Tensor]
    ) -> Self:
        """A network with these weights, after its names and shapes are those of the options."""
        beside = part_of(tensors, PREPROCESSING)
        with located("what its encoding fitted"):
            check_tensors(beside, Preprocessing.table(learner.architecture, encoding, beside))
        preprocessing = Preprocessing.from_tensors(beside)
        make = partial(
            GraphNetwork.from_architecture,
            encoding.width,
            task.out_channels,
            learner.architecture,
            **{**preprocessing.sizes, **encoding.sizes},
        )
        # On no device: what a file says may be far larger than what it holds.
        with torch.device("meta"):
            expected = make().state_dict()
        weights = {name: w for name, w in tensors.items() if not name.startswith(cls.shared)}
        dtypes = [w.dtype for w in weights.values() if w.is_floating_point()]
        dtype = dtypes[0] if dtypes else torch.float32
        check_tensors(weights, {name: _weight(w, dtype) for name, w in expected.items()})
        network = make()
        network.to(dtype).load_state_dict(weights)
        target = fitted_target(task, tensors)
        return cls(learner, task, encoding, network.eval(), preprocessing, target)

    def to(self, device: torch.device) -> Self:
        self.network.to(device)
        return self


@dataclass(frozen=True)
class NetworkLearner(Learner):
    """A learner with a network of an architecture, which is trained in epochs."""

    has_epochs: ClassVar[bool] = True
    explains: ClassVar[bool] = True

    architecture: Architecture = RECOMMENDED

    @property
    def registered(self) -> list[str]:
        """Its layers that come neither with LookHops nor with a library that it knows."""
        names = self.architecture.conv, self.architecture.pool
        return [name for name in names if name not in BUILT_IN and not is_other(name)]

    @property
    def ignores_edges(self) -> bool:
        return self.architecture.edges == "ignore"

    @property
    def layers(self) -> str | None:
        """A digest of its layers where the user registered them; of ours the names suffice.

        A layer that is redefined under an old name is trained again.
        """
        names = self.architecture.conv, self.architecture.pool
        if {*names} <= BUILT_IN or not is_known(*names):
            return None  # training says what is not known
        model = GraphNetwork.from_architecture(3, 2, self.architecture, num_edge_labels=2)
        kinds = dict.fromkeys(type(module) for module in model.modules())
        said = [repr(model), *map(_source, kinds)]
        return hashlib.sha256("\n".join(said).encode()).hexdigest()[:16]

    def check(self, graphs: Graphs, task: Task) -> None:
        """An architecture that cannot be says so before anything is trained."""
        unweighted(graphs, task, self.architecture)

    def fit(self, graphs: Graphs, task: Task, split: Split, seed: int) -> Fitted:
        """Train one network by the paper's protocol."""
        [run] = self.train(graphs, Protocol((seed,)), task=task, splits=[split])
        return fitted_of(self, task, self.encoding(graphs), run)[0]

    def read_of(self, protocol: Protocol) -> Protocol:
        """All of it but its seeds and how batches are brought to the device."""
        plain = Protocol()
        return replace(protocol, seeds=plain.seeds, stream=plain.stream)

    def threads(self, graphs: Graphs, protocol: Protocol) -> int:
        return threads_of(graphs, self.architecture, protocol)

    def prepare(self, graphs: Graphs, encoding: Encoding) -> PreparedGraphs:
        return PreparedGraphs.of(graphs, self.architecture, encoding)


@dataclass(frozen=True)
class Network(NetworkLearner):
    """A :class:`~lookhops.nn.GraphNetwork`, trained by the engines."""

    name: ClassVar[str] = "network"
    fitted: ClassVar[type[Fitted]] = FittedNetwork
    trains_on_all: ClassVar[bool] = True
    configurations: ClassVar[Mapping[str, type]] = {"architecture": Architecture}

    @property
    def reads_edges(self) -> bool:
        return self.architecture.reads_edges

    @property
    def reads_whole(self) -> bool:
        """Whether features of whole graphs are looked at: totals are read with them."""
        return self.architecture.totals

    @property
    def title(self) -> str:
        return network_name(asdict(self.architecture))

    @property
    def spelled(self) -> str:
        """Its layers and its options: ``licheb+lookhops/k=3``."""
        conv, pool = self.architecture.conv, self.architecture.pool
        text, usual = conv if pool == "none" else f"{conv}+{pool}", Architecture(conv, pool)
        if conv == "none":
            text, usual = "fingerprint", FINGERPRINT
        options = self.options
        if not reads_k(conv, pool):
            del options["k"]
        return "/".join([text, *options_in_words(options, asdict(usual))])

    @property
    def model(self) -> Architecture | Classical:
        return self.architecture

    @property
    def network_architecture(self) -> Architecture:
        return self.architecture

    def train(self, graphs: Graphs, protocol: Protocol | None = None, **how: Any) -> list[Run]:
        return train(graphs, self.architecture, protocol, **how)

    def train_on_all(self, graphs: Graphs, protocol: Protocol, epochs: int, **how: Any) -> Run:
        return train_on_all(graphs, self.architecture, protocol, epochs, **how)

    def together(self, fitted: Sequence[Fitted]) -> Callable[[PreparedGraphs], list[Tensor]]:
        each = cast(Sequence[FittedNetwork], fitted)
        ensemble = ensemble_of(each)

        def outputs(prepared: PreparedGraphs) -> list[Tensor]:
            found = zip(each, ensemble.outputs(prepared), strict=True)
            return [one.task.in_units(output, one.target) for one, output in found]

        return outputs


def ensemble_of(fitted: Sequence[FittedNetwork]) -> Ensemble:
    """Networks that are asked about the same graphs."""
    networks, preprocessing = [one.network for one in fitted], [one.preprocessing for one in fitted]
    return Ensemble(networks, preprocessing, fitted[0].encoding)


def _source(kind: type) -> str:
    if kind.__module__.split(".")[0] in ("torch", "lookhops"):  # known by their names
        return ""
    try:
        return inspect.getsource(kind)
    except (OSError, TypeError):  # typed at a prompt
        return kind.__qualname__
