"""A blend of a Gaussian process and a network: the validation part says how much each counts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self, cast

import torch
from torch import Tensor
from torch.nn.functional import nll_loss

from lookhops.core.errors import LookHopsError
from lookhops.core.options import Architecture, Protocol
from lookhops.core.tensors import check_tensors, named_parts, numbers, part_of
from lookhops.encoding import Encoding
from lookhops.encoding.preprocessing import PreparedGraphs
from lookhops.graphs import Graphs
from lookhops.learners.gp import FittedProcess, GaussianProcess
from lookhops.learners.learner import Fitted
from lookhops.learners.network import FittedNetwork, Network, NetworkLearner
from lookhops.learners.scorers import LEAST, side_by_side
from lookhops.sources.splits import SplitPlan
from lookhops.tasks import Task
from lookhops.tasks.task import Head
from lookhops.training.runs import NotFinite, Run
from lookhops.training.workers import ALONE

#: Begins, with a dot, the names of the process' tensors; those of the network have their own.
PROCESS = "process"
#: The weight of the network in the answer to each target.
WEIGHT = "blend.weight"
#: Weights that are tried for classes.
GRID = torch.linspace(0, 1, 41, dtype=torch.float64)


@dataclass(frozen=True, eq=False)
class FittedBlend(Fitted):
    """A trained network and a Gaussian process, fitted on the same part, that answer together."""

    shared: ClassVar[tuple[str, ...]] = (*Fitted.shared, f"{PROCESS}.", WEIGHT)

    part: FittedNetwork
    process: FittedProcess  # members of a seed share it
    weight: Tensor  # of the network in the answer to each target, from 0 to 1, shape (targets)

    def parts(self, target: int) -> list[tuple[float, Fitted]]:
        weight = float(self.weight[target])
        return [(weight, self.part), (1 - weight, self.process)]

    def variance(self, graphs: Graphs) -> Tensor:
        return self.process.variance(graphs)

    def to(self, device: torch.device) -> Self:
        self.part.to(device)
        return self

    def tensors(self) -> dict[str, Tensor]:
        of_process = named_parts({PROCESS: self.process.tensors()})
        return {**self.part.tensors(), WEIGHT: self.weight, **of_process}

    @classmethod
    def from_tensors(
        cls, learner: Any, task: Task, encoding: Encoding, tensors: Mapping[str, Tensor]
    ) -> Self:
        weight = {name: value for name, value in tensors.items() if name == WEIGHT}
        check_tensors(weight, {WEIGHT: numbers(len(task.heads), low=0, high=1)})
        of_process = part_of(tensors, PROCESS)
        others = (f"{PROCESS}.", WEIGHT)
        of_network = {name: value for name, value in tensors.items() if not name.startswith(others)}
        process = FittedProcess.from_tensors(learner.process, task, encoding, of_process)
        read_by_network = learner.encoding_of_network(encoding)
        part = FittedNetwork.from_tensors(learner.network, task, read_by_network, of_network)
        return cls(learner, task, encoding, part, process, weight[WEIGHT])


@dataclass(frozen=True)
class Blend(NetworkLearner):
    r"""A Gaussian process and a network, whose answers are averaged with weights.

    The answer is :math:`w \, n + (1 - w) \, g` with the network's :math:`n` (of its members
    together) and the process' :math:`g`: probabilities of classes, numbers, or rates of counts.
    Each target has its own :math:`w`, which the validation part chooses: of numbers by least
    squares in :math:`[0, 1]`, of classes by log loss. In the blend's name both have their options:
    ``blend/hops=3/hidden=256``.
    """

    name: ClassVar[str] = "blend"
    fitted: ClassVar[type[Fitted]] = FittedBlend
    configurations: ClassVar[Mapping[str, type]] = {
        "process": GaussianProcess,
        "architecture": Architecture,
    }

    process: GaussianProcess = GaussianProcess()  # noqa: RUF009 -- it is frozen

    @property
    def network(self) -> Network:
        """The network, as a learner."""
        return Network(self.architecture)

    @property
    def title(self) -> str:
        return f"{self.process.title}, and {self.network.title}"

    @property
    def reads_edges(self) -> bool:
        return not self.ignores_edges

    @property
    def reads_whole(self) -> bool:
        return self.process.reads_whole or self.network.reads_whole

    def encoding_of_network(self, encoding: Encoding) -> Encoding:
        """The columns that the network reads of those of the blend."""
        edges = encoding.edges if self.network.reads_edges else None
        whole = encoding.whole if self.network.reads_whole else None
        return replace(encoding, edges=edges, whole=whole)

    def check(self, graphs: Graphs, task: Task) -> None:
        self.process.check(graphs, task)
        self.network.check(graphs, task)

    def train_on(
        self, graphs: Graphs, protocol: Protocol, task: Task, plan: SplitPlan, **how: Any
    ) -> list[Run]:
        """Train the networks as they are alone, then fit a process for each seed.

        A training that is resumed goes on with its networks, and fits the processes again: they
        follow from the split and the seed.
        """
        if not how.get("workers", ALONE).alone:
            raise LookHopsError(f"{self.name} is fitted in one process: leave out the workers.")
        try:
            runs = self.network.train(graphs, protocol, task=task, splits=plan, **how)
        except NotFinite as error:
            error.runs = [self._blended(graphs, task, run) for run in error.runs]
            raise
        return [self._blended(graphs, task, run) for run in runs]

    def _blended(self, graphs: Graphs, task: Task, run: Run) -> Run:
        """The run of networks with the process beside them; of one without answers it counts alone.

        The weights are chosen on the answers to validation graphs that had no say in the epoch,
        where there are such: the others are a little better than those to new graphs.
        """
        if self.ignores_edges:
            graphs = graphs.without_edge_features()
        process = self.process.run(graphs, task, run.split, run.seed)
        beside = named_parts({PROCESS: process.weights})
        weight = torch.zeros(len(task.heads), dtype=torch.float64)
        if not run.predictions:
            return replace(run, beside={WEIGHT: weight, **beside})
        of_process = {**process.predictions, "unseen": process.predictions["val"]}
        target = task.targets(graphs).cpu()[run.split.val]
        weight = weights_by_validation(task, target, run.unseen, of_process["unseen"])

        def blended(one: Run) -> Run:
            outputs = {
                name: blend(task, weight, of_network, of_process[name])
                for name, of_network in one.predictions.items()
            }
            return replace(one, predictions=outputs)

        chosen = {
            head.key("weight of the network"): round(float(of_target), 4)
            for head, of_target in zip(task.heads, weight, strict=True)
        }
        return replace(
            blended(run),
            members=tuple(blended(one) for one in run.members),
            variance=process.variance,
            chosen={**chosen, **process.chosen},
            beside={WEIGHT: weight, **beside},
        )

    def prepare(self, graphs: Graphs, encoding: Encoding) -> PreparedGraphs:
        return self.network.prepare(graphs, self.encoding_of_network(encoding))

    def together(self, fitted: Sequence[Fitted]) -> Callable[[PreparedGraphs], list[Tensor]]:
        """All networks are asked at once, and each process once."""
        each = cast(Sequence[FittedBlend], fitted)
        networks = self.network.together([one.part for one in each])

        def outputs(prepared: PreparedGraphs) -> list[Tensor]:
            graphs, processes = prepared.graphs.to("cpu"), dict[int, Tensor]()
            found = []
            for one, of_network in zip(each, networks(prepared), strict=True):
                key = id(one.process.kernels.references.codes)  # members of a seed share it
                if key not in processes:
                    processes[key] = one.process.outputs(graphs)
                found.append(blend(one.task, one.weight, of_network.cpu(), processes[key]))
            return found

        return outputs


def weights_by_validation(task: Task, target: Tensor, network: Tensor, process: Tensor) -> Tensor:
    """The weight of the network in the answer to each target, shape (targets), float64.

    The target is that of the validation graphs, the outputs of both are those for them.
    """
    found = []
    for head in task.heads:
        y = head.target(target)
        has_target = head.task.known(y)
        pair = _answers(head, network)[has_target], _answers(head, process)[has_target]
        best = _by_log_loss if head.task.class_names else _by_least_squares
        found.append(best(*pair, y[has_target]) if len(y[has_target]) else torch.zeros(()).double())
    return torch.stack(found)


def _by_log_loss(network: Tensor, process: Tensor, y: Tensor) -> Tensor:
    """The weight of the lowest log loss, the smallest of equal ones."""
    mixed = torch.lerp(process, network, GRID[:, None, None]).clamp(min=LEAST).log()
    losses = torch.stack([nll_loss(log_p, y.long()) for log_p in mixed])
    return GRID[losses.argmin()]


def _by_least_squares(network: Tensor, process: Tensor, y: Tensor) -> Tensor:
    """The weight of the least squared error; 0 where both answer the same."""
    apart = network[:, 0] - process[:, 0]
    best = apart @ (y - process[:, 0]) / (apart @ apart)
    return best.clamp(0, 1).nan_to_num(0)


def blend(task: Task, weight: Tensor, network: Tensor, process: Tensor) -> Tensor:
    """The outputs of both together, with the network's weight for each target."""
    each = []
    for head, of_network in zip(task.heads, weight, strict=True):
        mixed = torch.lerp(_answers(head, process), _answers(head, network), of_network)
        if head.task.class_names:
            mixed = mixed.clamp(min=torch.finfo(torch.float32).tiny).log()
        each.append(mixed.numpy())
    return side_by_side(each, task)


def _answers(head: Head, outputs: Tensor) -> Tensor:
    """Probabilities of a target's classes, or numbers in its units, float64."""
    return head.task.answers(outputs[:, head.channels], {}).double()
