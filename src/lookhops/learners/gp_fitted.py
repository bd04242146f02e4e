"""A Gaussian process that was fitted: what it answers, how sure it is, and what is saved of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Self

import torch
from torch import Tensor

from lookhops.core.errors import LookHopsError
from lookhops.core.tensors import Expected, check_tensors, codes, numbers, offsets, positive
from lookhops.encoding import Encoding
from lookhops.graphs import Graphs
from lookhops.learners.gp_columns import GraphColumns
from lookhops.learners.gp_solve import Link, Weights
from lookhops.learners.gp_terms import assignment_terms, process_terms
from lookhops.learners.kernels import GraphRows, Kernels
from lookhops.learners.learner import FITTED, Fitted, Terms, with_prefix
from lookhops.learners.scorers import side_by_side
from lookhops.tasks import Task

#: The variance of an answer looks at no more training graphs than this.
VARIANCE_GRAPHS = 4_000
#: The average training graph is the mean of about so many.
USUAL_GRAPHS = 1_000


@dataclass(frozen=True, eq=False)
class TargetProcess:
    """The process of one target.

    Args:
        weights: Of the kernels and the noise, for targets of variance 1.
        mean: What is added to answers, shape (c): one number, or the share of each class.
        spread: What answers are multiplied by before.
        coefficients: Of each reference graph, shape (m, c); 0 where its target is blank.
        known: Whether a reference graph has the target, shape (m).
        link: Of classes, what turns answers into log-probabilities.
    """

    weights: Weights
    mean: Tensor
    spread: float
    coefficients: Tensor
    known: Tensor
    link: Link | None

    def outputs(self, standardised: Tensor) -> Tensor:
        """Log-probabilities of classes, or numbers in the target's units."""
        answers = self.mean + self.spread * standardised
        return answers if self.link is None else self.link(answers)

    def scores(self, standardised: Tensor) -> Tensor:
        """Numbers in the target's units, or logits of classes, which are linear in these."""
        answers = self.mean + self.spread * standardised
        return answers if self.link is None else self.link.slope * answers + self.link.offsets

    @property
    def score_scale(self) -> float:
        """What :meth:`scores` multiplies by."""
        return self.spread * (1.0 if self.link is None else self.link.slope)

    def tensors(self) -> dict[str, Tensor]:
        """All of it as named tensors."""
        found = {
            "weights": self.weights.kernels,
            "noise": _scalar(self.weights.noise),
            "mean": self.mean,
            "spread": _scalar(self.spread),
            "coefficients": self.coefficients,
            "known": self.known,
        }
        if self.link is not None:
            found |= {"slope": _scalar(self.link.slope), "offsets": self.link.offsets}
        return found

    @classmethod
    def from_tensors(cls, found: Mapping[str, Tensor]) -> TargetProcess:
        """The process that :meth:`tensors` gave."""
        link = Link(float(found["slope"]), found["offsets"]) if "slope" in found else None
        weights = Weights(found["weights"], float(found["noise"]))
        mean, spread = found["mean"], float(found["spread"])
        return cls(weights, mean, spread, found["coefficients"], found["known"], link)


def _scalar(value: float) -> Tensor:
    return torch.tensor(value, dtype=torch.float64)


@dataclass(frozen=True, eq=False)
class FittedProcess(Fitted):
    """A Gaussian process that was fitted on a training part.

    Args:
        task: What was asked.
        columns: The columns that it reads.
        kernels: Its kernels, with the reference graphs.
        targets: The process of each target.
        chosen: The share of each kernel in the prior variance, and the noise.
        left_out: For each training graph the outputs of a process fitted on all others, shape
            (graphs, task.out_channels), NaN where its target is blank; none when it was read from
            a file.
        left_out_variance: The variance of these answers, of the same shape.
        pairs: How many hops apart the nodes of compared pairs are at most, 0 where none are.
    """

    is_sum: ClassVar[bool] = True

    task: Task
    columns: GraphColumns
    kernels: Kernels
    targets: tuple[TargetProcess, ...]
    chosen: Mapping[str, Any] = field(default_factory=dict)
    left_out: Tensor | None = None
    left_out_variance: Tensor | None = None
    pairs: int = 0

    def rows(self, graphs: Graphs) -> GraphRows:
        """What the kernels read of graphs."""
        hops = self.kernels.references.codes.shape[1] - 1
        return GraphRows.of(graphs, hops, self.columns(graphs), self.pairs)

    def outputs(self, graphs: Graphs) -> Tensor:
        """As for :class:`Fitted`, in time that is linear in the graphs."""
        return self._side_by_side(self.answers(self.rows(graphs), self.targets))

    def answers(self, rows: GraphRows, targets: Sequence[TargetProcess]) -> Tensor:
        """The standardised answers to some targets, shape (g, c of all)."""
        coefficients = torch.cat([one.coefficients for one in targets], 1)
        weights = torch.cat(
            [one.weights.kernels[:, None].expand(-1, len(one.mean)) for one in targets], 1
        )
        answers = torch.zeros(len(rows), coefficients.shape[1], dtype=torch.float64)
        for part, kernels in self.kernels.blocks(rows):
            for kernel, weight in zip(kernels, weights, strict=True):
                answers[part] += (kernel @ coefficients) * weight
        return answers

    def _side_by_side(self, standardised: Tensor) -> Tensor:
        """The outputs of each target, from answers of all."""
        each = standardised.split([len(one.mean) for one in self.targets], 1)
        pairs = zip(self.targets, each, strict=True)
        return side_by_side([one.outputs(answers).numpy() for one, answers in pairs], self.task)

    def terms(self, graphs: Graphs, target: int) -> Terms:
        """The scores of a target as sums (:func:`~lookhops.learners.gp_terms.process_terms`)."""
        return process_terms(self, graphs.to("cpu"), target)

    @cached_property
    def usual(self) -> list[Tensor]:
        """For each target what references have of each hop and of pairs in the mean, (parts, c)."""
        count = len(self.kernels.references)
        sample = self.kernels.references.select(torch.arange(0, count, -(-count // USUAL_GRAPHS)))
        found = []
        for one in self.targets:
            each = assignment_terms(self.kernels, sample, one.coefficients, one.weights.kernels)
            found.append(torch.stack([part.sum(0) for part in each]) / len(sample))
        return found

    def variance(self, graphs: Graphs) -> Tensor:
        r"""The variance of each number, noise included, shape (g, task.out_channels).

        .. math::
            \sigma^2(x) = k(x, x) - k(x, Z) \, C^{-1} k(Z, x) + \sigma^2_{noise}.

        Of classes it is the variance of the answer to an indicator (0 or 1), of counts that of the
        count, not of its logarithm. With more than 4,000
        reference graphs it is that of the first 4,000 alone: never too small.
        """
        rows = self.rows(graphs)
        prior, found = self.kernels.diagonal(rows), []
        for one, (kernels, factor) in zip(self.targets, self._factors, strict=True):
            variance = one.weights.kernels @ prior + one.weights.noise
            for part, across in kernels.weighted(rows, one.weights.kernels):
                seen = torch.linalg.solve_triangular(factor, across.T, upper=False)
                variance[part] -= seen.square().sum(0)
            variance = variance.clamp(min=one.weights.noise) * one.spread**2
            found.append(variance[:, None].expand(-1, len(one.mean)))
        return torch.cat(found, 1)

    @cached_property
    def _factors(self) -> list[tuple[Kernels, Tensor]]:
        """For each target the kernels of what its variance looks at, and the factor of these."""
        found = []
        for one in self.targets:
            first = one.known.nonzero().flatten()[:VARIANCE_GRAPHS]
            references = self.kernels.references.select(first)
            kernels = Kernels(references, self.kernels.medians)
            factor, failed = torch.linalg.cholesky_ex(covariance_of(kernels, one.weights))
            if int(failed):
                raise LookHopsError(
                    "The covariance of the process' training graphs is not that of any graphs: "
                    "the model is damaged; train it again."
                )
            found.append((kernels, factor))
        return found

    # ---------------------------------------------------------------- storing

    def tensors(self) -> dict[str, Tensor]:
        """The reference graphs' counts, the columns' scale, and each target's coefficients."""
        references = self.kernels.references
        found = {"codes": references.codes, "node_ptr": references.node_ptr}
        if references.pairs is not None:
            found["pairs"], found["pair_ptr"] = references.pairs
        found |= {f"values.{name}": z for name, z in references.columns.items()}
        found |= self.columns.tensors()
        for number, one in enumerate(self.targets):
            found |= {f"target{number}.{name}": value for name, value in one.tensors().items()}
        return found

    @classmethod
    def from_tensors(
        cls, learner: Any, task: Task, encoding: Encoding, tensors: Mapping[str, Tensor]
    ) -> Self:
        """A process of these tensors, after their names, types, shapes and values were checked."""
        check_tensors(tensors, _table(learner, task, encoding, tensors), besides=[FITTED])
        for number in range(len(task.heads)):
            if not bool(tensors[f"target{number}.known"].any()):
                raise LookHopsError(f"its target {number} is not known of any graph")
        columns = GraphColumns.from_tensors(tensors, encoding)
        values = {name: tensors[f"values.{name}"] for name in columns.groups}
        pairs = (tensors["pairs"], tensors["pair_ptr"]) if learner.pairs else None
        references = GraphRows(tensors["codes"], tensors["node_ptr"], values, pairs)
        targets = [
            TargetProcess.from_tensors(with_prefix(f"target{number}.", tensors))
            for number in range(len(task.heads))
        ]
        kernels = Kernels(references, columns.medians)
        return cls(task, columns, kernels, tuple(targets), pairs=learner.pairs)


def _table(
    learner: Any, task: Task, encoding: Encoding, tensors: Mapping[str, Tensor]
) -> dict[str, Expected]:
    """What the tensors of a process of these options must be."""
    found = {
        "node_ptr": offsets("graphs", into="codes"),
        "codes": codes("nodes", learner.hops + 1),
    }
    if learner.pairs:
        found |= {"pair_ptr": offsets("graphs", into="pairs"), "pairs": codes("pairs")}
    kernels = learner.hops + 1 + (learner.hops > 0) + (learner.pairs > 0)
    for name, width in GraphColumns.widths(encoding).items():
        if (spread := tensors.get(f"{name}.spread")) is not None:
            kernels += 3
            found[f"{name}.median"] = positive()
            found[f"{name}.mean"] = numbers(width)
            found[f"{name}.spread"] = numbers(width, low=0)
            found[f"values.{name}"] = Expected(("graphs", int((spread > 0).sum())), "float32")
    for number, head in enumerate(task.heads):
        width = head.task.out_channels
        of_target = {
            "weights": numbers(kernels, low=0),
            "noise": positive(),
            "mean": numbers(width),
            "spread": positive(),
            "coefficients": numbers("graphs", width),
            "known": Expected(("graphs",), "bool"),
        }
        if head.task.class_names:
            of_target |= {"slope": positive(), "offsets": numbers(width)}
        found |= {f"target{number}.{name}": own for name, own in of_target.items()}
    return found


def covariance_of(kernels: Kernels, weights: Weights) -> Tensor:
    """The covariance of the references' targets, shape (m, m)."""
    count = len(kernels.references)
    found = torch.empty(count, count, dtype=torch.float64)
    for part, block in kernels.weighted(kernels.references, weights.kernels):
        found[part] = block
    found.diagonal().add_(weights.noise)
    return found
