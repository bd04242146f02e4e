"""The protocol of everything that can be fitted: a learner, and what it has fitted."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import torch
from torch import Tensor

from lookhops.core.errors import LookHopsError
from lookhops.core.options import OF_SPLITS, Architecture, Classical, Protocol
from lookhops.core.schema import read
from lookhops.core.tensors import check_tensors, named_parts, numbers
from lookhops.encoding import Encoding
from lookhops.encoding.preprocessing import PreparedGraphs
from lookhops.graphs import Graphs
from lookhops.sources.splits import Split, SplitPlan
from lookhops.tasks import Task, task_of
from lookhops.training.runs import Run, draw_splits

if TYPE_CHECKING:
    from lookhops.learners.gp_terms import Terms

#: Begins, with a dot, the names of tensors that an encoding fitted, beside the weights.
PREPROCESSING = "learnt"
#: Of tasks that need it to answer: what was taken from the training part.
FITTED = "fitted"


@dataclass(frozen=True, eq=False)
class Fitted(ABC):
    """What a learner has fitted on one training part; :meth:`tensors` is all that is saved of it.

    Graphs that it is asked about have the columns of the training graphs
    (:meth:`~lookhops.encoding.Encoding.read`).
    """

    learner: Any  # what fitted it
    task: Task
    encoding: Encoding  # the columns of the training graphs, as far as it reads them
    #: What the validation part chose, by name, as JSON can hold it.
    chosen: Mapping[str, Any] = field(default_factory=dict, kw_only=True)

    #: Whether its scores are sums over parts of a graph, which :meth:`terms` gives.
    is_sum: ClassVar[bool] = False
    #: How the names of tensors begin that all members of a seed share.
    shared: ClassVar[tuple[str, ...]] = (f"{PREPROCESSING}.", FITTED)

    def outputs(self, graphs: Graphs) -> Tensor:
        """Log-probabilities of classes, or numbers in their units, of all targets side by side.

        In main memory, shape (g, task.out_channels). By default what :meth:`Learner.together` gives
        of this one alone.
        """
        prepared = self.learner.prepare(graphs, self.encoding)
        outputs: Tensor = self.learner.together([self])(prepared)[0]
        return outputs

    @abstractmethod
    def tensors(self) -> dict[str, Tensor]:
        """All that :meth:`outputs` needs besides the learner, the task and the encoding."""

    @classmethod
    @abstractmethod
    def from_tensors(
        cls, learner: Any, task: Task, encoding: Encoding, tensors: Mapping[str, Tensor]
    ) -> Self:
        """What :meth:`tensors` gave, checked: tensors that do not fit are a ``LookHopsError``.

        A model folder adds :data:`FITTED`, which only a network reads.
        """

    def variance(self, graphs: Graphs) -> Tensor | None:
        """The variance of each number, shape (g, task.out_channels); none where it is not known."""
        return None

    def parts(self, target: int) -> list[tuple[float, Fitted]]:
        """What answers to a target are the mean of, each with its weight: by default itself."""
        return [(1.0, self)]

    def terms(self, graphs: Graphs, target: int) -> Terms:
        """The scores of the target with this number as sums, where :attr:`is_sum` says so."""
        raise NotImplementedError

    def to(self, device: torch.device) -> Fitted:
        """The same where it computes on this device; by default it stays in main memory."""
        return self


class Learner(ABC):
    """Whatever can be fitted to graphs and asked. Subclasses are frozen dataclasses of options.

    Fields that :attr:`configurations` names have options of their own, which are the learner's.
    """

    configurations: ClassVar[Mapping[str, type]] = {}
    name: ClassVar[str]  #: In names of models, in ``config.json`` and in stores.
    fitted: ClassVar[type[Fitted]]  #: What :meth:`fit` gives.
    #: Whether it is trained in epochs, as a network: then it reads all of a :class:`Protocol`.
    has_epochs: ClassVar[bool] = False
    #: Whether it can be trained on all graphs for a number of epochs that others have found.
    trains_on_all: ClassVar[bool] = False
    #: Whether its answers can be shared out among nodes and edges.
    explains: ClassVar[bool] = False

    @property
    def title(self) -> str:
        """What pages call it."""
        return self.name

    @property
    def reads_edges(self) -> bool:
        """Whether features of edges are looked at."""
        return True

    @property
    def reads_whole(self) -> bool:
        """Whether features of whole graphs are looked at."""
        return False

    @property
    def options(self) -> dict[str, Any]:
        """Its options by name, as JSON can hold them."""
        found: dict[str, Any] = asdict(self)  # type: ignore[call-overload]
        for name in self.configurations:
            found |= found.pop(name)
        return found

    @property
    def spelled(self) -> str:
        """Its name with the options that are not the usual, as `lookhops compare` reads it."""
        return "/".join([self.name, *options_in_words(self.options, type(self)().options)])

    @property
    def model(self) -> Architecture | Classical:
        """What plans and stores have of it."""
        return Classical(self.spelled)

    @property
    def registered(self) -> list[str]:
        """The names that it is made of and a user has registered; a plugin has them."""
        return []

    @property
    def ignores_edges(self) -> bool:
        """Whether graphs are alike to it whatever their edges carry."""
        return False

    @property
    def network_architecture(self) -> Architecture:
        """The architecture of its networks; a learner without any is refused by name."""
        raise LookHopsError(
            f"{self.name} is no network, and only networks can be embedded, exported and looked "
            "into: train one with --model network"
        )

    @property
    def layers(self) -> str | None:
        """A digest of what a user registered and it is made of; none where its name suffices."""
        return None

    def encoding(self, graphs: Graphs) -> Encoding:
        """The columns of these graphs, as far as it reads them."""
        return Encoding.fit(graphs, self.reads_edges, self.reads_whole)

    def threads(self, graphs: Graphs, protocol: Protocol) -> int:
        """How many threads one run is worth; where it is one, others do not change its numbers."""
        return 1

    def check(self, graphs: Graphs, task: Task) -> None:  # noqa: B027 -- many learn from any graphs
        """Raise one ``LookHopsError`` where it cannot be fitted to these graphs on any split."""

    @abstractmethod
    def fit(self, graphs: Graphs, task: Task, split: Split, seed: int) -> Fitted:
        """Fit on the training part; the validation part may choose, the test part is not read.

        The graphs are all of them; the seed is that of all that is random.
        """

    def train(
        self,
        graphs: Graphs,
        protocol: Protocol | None = None,
        *,
        task: Task | None = None,
        splits: SplitPlan | Sequence[Split] | None = None,
        device: str | torch.device = "auto",
        **how: Any,
    ) -> list[Run]:
        """Fit once for each seed of the protocol, and test each once.

        Arguments are those of :func:`~lookhops.training.train`; a learner without epochs reads none
        of the further ones.
        """
        protocol = protocol or Protocol()
        task = task or task_of(graphs, protocol.class_weights, protocol.loss)
        self.check(graphs, task)
        plan = draw_splits(graphs, task, protocol, splits)
        return self.train_on(graphs, protocol, task, plan, device=device, **how)

    def train_on(
        self, graphs: Graphs, protocol: Protocol, task: Task, plan: SplitPlan, **how: Any
    ) -> list[Run]:
        """The same with all that has a default decided."""
        return [self.run(graphs, task, part, seed) for seed, part in plan.splits.items()]

    def run(self, graphs: Graphs, task: Task, split: Split, seed: int) -> Run:
        """Fit on a split, and ask about its other parts."""
        fitted = self.fit(graphs, task, split, seed)
        both = graphs.select(torch.cat((split.val, split.test)))

        def by_part(values: Tensor) -> dict[str, Tensor]:
            parts = values.split([len(split.val), len(split.test)])
            return dict(zip(("val", "test"), parts, strict=True))

        variance = mean_variance([fitted], both, task)
        return Run(
            seed,
            split,
            weights=fitted.tensors(),
            predictions=by_part(fitted.outputs(both)),
            variance={} if variance is None else by_part(variance),
            fitted=task.fit(task.targets(graphs).cpu()[split.train]),
            chosen=fitted.chosen,
        )

    def train_on_all(self, graphs: Graphs, protocol: Protocol, epochs: int, **how: Any) -> Run:
        """What has epochs as :func:`~lookhops.training.trainer.train_on_all` has it."""
        raise NotImplementedError

    def read_of(self, protocol: Protocol) -> Protocol:
        """The protocol with its defaults wherever it does not decide a run besides the seed."""
        return replace(Protocol(), **{name: getattr(protocol, name) for name in OF_SPLITS})

    def prepare(self, graphs: Graphs, encoding: Encoding) -> PreparedGraphs:
        """Graphs in the columns of the encoding, with what all fitted ones need to know of them."""
        return PreparedGraphs(graphs)

    def together(self, fitted: Sequence[Fitted]) -> Callable[[PreparedGraphs], list[Tensor]]:
        """What gives the :meth:`Fitted.outputs` of each for graphs that :meth:`prepare` gave."""
        return lambda prepared: [one.outputs(prepared.graphs) for one in fitted]

    @classmethod
    def option_types(cls) -> dict[str, str]:
        """The options that its name may have, and their types."""
        kinds = cls.configurations.values() or [cls]
        return {name: kind for options in kinds for name, kind in types_of(options).items()}

    @classmethod
    def from_options(cls, options: Any, path: str = "options") -> Self:
        """The learner of these options, checked; errors name the ``path``."""
        if not cls.configurations:
            return read(cls, options, path)
        given = dict(read(Mapping[str, Any], options, path))
        parts: dict[str, Any] = {}
        for name, kind in cls.configurations.items():
            values = {option: given.pop(option) for option in types_of(kind) if option in given}
            parts[name] = read(kind, values, path)
        read(kind, given, path)  # which refuses what is left
        return cls(**parts)

    def to_dict(self) -> dict[str, Any]:
        """Its name and its options, as JSON can hold them."""
        return {"name": self.name, "options": self.options}


def types_of(options: Any) -> dict[str, str]:
    """The type of each option of a dataclass, as it is written there."""
    return {field.name: str(field.type) for field in fields(options)}


def options_in_words(options: Mapping[str, Any], usual: Mapping[str, Any]) -> list[str]:
    """The options that are not the usual: ``["k=3", "edges=use"]``."""
    return [
        f"{name}={str(value).lower()}" for name, value in options.items() if value != usual[name]
    ]


def shared_tensors(run: Run, task: Task) -> dict[str, Tensor]:
    """What all members of a run share beside their own tensors: it is saved once."""
    found = {**named_parts({PREPROCESSING: run.preprocessing.tensors()}), **run.beside}
    if task.num_fitted and run.fitted is not None:
        found[FITTED] = run.fitted
    return found


def in_parts(tensors: Mapping[str, Tensor], parts: Iterable[str]) -> list[dict[str, Tensor]]:
    """The tensors of each part, whose name stands before a dot; others are refused."""
    found: dict[str, dict[str, Tensor]] = {part: {} for part in parts}
    for key, value in tensors.items():
        part, _, name = key.partition(".")
        if part in found:
            found[part][name] = value
        elif key != FITTED:
            raise LookHopsError(f"it also has the parameter {key!r}")
    return list(found.values())


def fitted_target(task: Task, tensors: Mapping[str, Tensor]) -> Tensor | None:
    """What the task took from a training part, checked; none where its answers need nothing."""
    if not task.num_fitted:
        return None
    found = {FITTED: tensors[FITTED]} if FITTED in tensors else {}
    check_tensors(found, {FITTED: numbers(task.num_fitted)})
    return found[FITTED]


def fitted_of(learner: Learner, task: Task, encoding: Encoding, run: Run) -> list[Fitted]:
    """What a run has fitted: one, or several members."""
    shared = shared_tensors(run, task)
    return [
        learner.fitted.from_tensors(learner, task, encoding, {**one.weights, **shared})
        for one in run.networks
    ]


def mean_variance(fitted: Sequence[Fitted], graphs: Graphs, task: Task) -> Tensor | None:
    """The mean of the variances of members, float64; none where one has none, or of classes."""
    if all(head.task.class_names for head in task.heads):
        return None
    found = [one.double() for member in fitted if (one := member.variance(graphs)) is not None]
    return torch.stack(found).mean(0) if len(found) == len(fitted) else None
