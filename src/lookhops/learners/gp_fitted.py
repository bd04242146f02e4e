"""A Gaussian process that was fitted: what it answers, how sure it is, and what is saved of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import inf
from typing import Any, ClassVar, Self

import torch
from torch import Tensor

from lookhops.core.errors import LookHopsError
from lookhops.encoding import Encoding
from lookhops.graphs import Graphs
from lookhops.learners.gp_columns import GraphColumns
from lookhops.learners.gp_solve import Link, Weights
from lookhops.learners.gp_terms import assignment_terms, process_terms
from lookhops.learners.kernels import GraphRows, Kernels
from lookhops.learners.learner import Fitted, Terms
from lookhops.learners.targets import side_by_side
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
            "noise": torch.tensor(self.weights.noise, dtype=torch.float64),
            "mean": self.mean,
            "spread": torch.tensor(self.spread, dtype=torch.float64),
            "coefficients": self.coefficients,
            "known": self.known,
        }
        if self.link is not None:
            found["slope"] = torch.tensor(self.link.slope, dtype=torch.float64)
            found["offsets"] = self.link.offsets
        return found

    @classmethod
    def from_tensors(
        cls, tensors: Mapping[str, Tensor], prefix: str, is_classes: bool
    ) -> TargetProcess:
        """The process that :meth:`tensors` gave, whose names begin with a prefix."""
        own = {
            name.removeprefix(prefix): value
            for name, value in tensors.items()
            if name.startswith(prefix)
        }
        link = Link(float(own["slope"]), own["offsets"]) if is_classes else None
        weights = Weights(own["weights"], float(own["noise"]))
        mean, spread = own["mean"], float(own["spread"])
        return cls(weights, mean, spread, own["coefficients"], own["known"].bool(), link)


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
        some = self.kernels.references.select(torch.arange(0, count, -(-count // USUAL_GRAPHS)))
        found = []
        for one in self.targets:
            each = assignment_terms(self.kernels, some, one.coefficients, one.weights.kernels)
            found.append(torch.stack([own.sum(0) for own in each]) / len(some))
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
            some = one.known.nonzero().flatten()[:VARIANCE_GRAPHS]
            references = self.kernels.references.select(some)
            kernels = Kernels(references, self.kernels.medians)
            covariance = covariance_of(kernels, one.weights)
            found.append((kernels, torch.linalg.cholesky(covariance)))
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
        """A process of these tensors, after their names, shapes and values were checked."""
        try:
            columns = GraphColumns.from_tensors(tensors, encoding)
            values = {
                name.removeprefix("values."): z
                for name, z in tensors.items()
                if name.startswith("values.")
            }
            pairs = (tensors["pairs"], tensors["pair_ptr"]) if learner.pairs else None
            references = GraphRows(tensors["codes"], tensors["node_ptr"], values, pairs)
            targets = tuple(
                TargetProcess.from_tensors(tensors, f"target{number}.", bool(head.task.class_names))
                for number, head in enumerate(task.heads)
            )
        except KeyError as error:
            raise LookHopsError(f"it lacks the parameter {error}") from error
        except (ValueError, RuntimeError, TypeError) as error:
            raise LookHopsError(f"its parameters do not fit together ({error})") from error
        _check(learner.hops, references, columns, targets, task)
        kernels = Kernels(references, columns.medians)
        return cls(task, columns, kernels, targets, pairs=learner.pairs)


def _check(
    hops: int,
    references: GraphRows,
    columns: GraphColumns,
    targets: Sequence[TargetProcess],
    task: Task,
) -> None:
    """Refuse parameters that do not fit together."""
    codes, node_ptr = references.codes, references.node_ptr
    count = node_ptr.numel() - 1
    pairs, pair_ptr = references.pairs or (codes.new_empty(0), node_ptr * 0)
    named = {name: (count, group.width) for name, group in columns.groups.items()}
    channels = [head.task.out_channels for head in task.heads]
    kernels = hops + 1 + (hops > 0) + (references.pairs is not None) + 3 * len(named)
    sound = {
        "codes": codes.dtype == torch.int64 and codes.dim() == 2,
        "hops": codes.dim() == 2 and codes.shape[1] == hops + 1,
        "node_ptr": count > 0 and _are_offsets(node_ptr, count, len(codes)),
        "pairs": pairs.dtype == torch.int64 and pairs.dim() == 1,
        "pair_ptr": _are_offsets(pair_ptr, count, len(pairs)),
        "values": {name: tuple(z.shape) for name, z in references.columns.items()} == named
        and all(bool(z.isfinite().all()) for z in references.columns.values()),
        "columns": all(group.is_sound for group in columns.groups.values()),
    }
    for number, (one, width) in enumerate(zip(targets, channels, strict=True)):
        shapes = {
            "weights": (one.weights.kernels, (kernels,)),
            "mean": (one.mean, (width,)),
            "coefficients": (one.coefficients, (count, width)),
            "known": (one.known, (count,)),
        }
        if one.link is not None:
            shapes["offsets"] = one.link.offsets, (width,)
        for name, (value, shape) in shapes.items():
            sound[f"target{number}.{name}"] = tuple(value.shape) == shape and bool(
                value.isfinite().all()
            )
        sound[f"target{number}.noise"] = 0 < one.weights.noise < inf and bool(one.known.any())
        sound[f"target{number}.spread"] = 0 < one.spread < inf
        sound[f"target{number}.slope"] = one.link is None or 0 < one.link.slope < inf
    if wrong := [name for name, holds in sound.items() if not holds]:
        raise LookHopsError(f"its parameter {wrong[0]!r} does not fit the others")


def _are_offsets(ptr: Tensor, count: int, size: int) -> bool:
    """Whether these are offsets of so many graphs into so many elements."""
    if ptr.shape != (count + 1,) or ptr.dtype != torch.int64:
        return False
    return int(ptr[0]) == 0 and int(ptr[-1]) == size and bool((ptr.diff() >= 0).all())


def covariance_of(kernels: Kernels, weights: Weights) -> Tensor:
    """The covariance of the references' targets, shape (m, m)."""
    count = len(kernels.references)
    found = torch.empty(count, count, dtype=torch.float64)
    for part, block in kernels.weighted(kernels.references, weights.kernels):
        found[part] = block
    found.diagonal().add_(weights.noise)
    return found
