"""A Gaussian process over the hops of exact neighbourhoods and over columns of whole graphs."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from lookhops.core.errors import LookHopsError
from lookhops.core.options import LOSSES, check_fields, option
from lookhops.graphs import Graphs
from lookhops.learners.gp_fitted import FittedProcess, GraphColumns, TargetProcess, covariance_of
from lookhops.learners.gp_solve import (
    Link,
    Solution,
    Weights,
    solve,
    solve_inducing,
    weights_by_evidence,
)
from lookhops.learners.kernels import GraphRows, Kernels
from lookhops.learners.learner import Fitted, Learner
from lookhops.learners.scorers import side_by_side
from lookhops.sources.splits import Split
from lookhops.tasks import Task
from lookhops.tasks.task import Head

#: A kernel with a smaller share of the prior variance is not listed among what was chosen.
LEAST_SHARE = 1e-3


class Approximate(UserWarning):
    """A training part is too large for an exact answer."""


@dataclass(frozen=True)
class GaussianProcess(Learner):
    """A Gaussian process whose kernel is a weighted sum over hops and over columns of graphs.

    Weights and noise are those of the largest marginal likelihood of some training graphs; then
    one solve takes all of them. Classes are asked as indicators, and leave-one-out answers say what
    probability an answer stands for.

    Args:
        hops: How far exact neighbourhoods are looked at.
        pairs: How many hops apart two nodes are at most that are compared as a pair; 0 leaves
            pairs out.
        evidence_graphs: How many training graphs give the weights.
        exact_graphs: The most training graphs that are solved exactly: 20,000 take 5 GB.
        inducing_graphs: Of more, so many graphs stand for all.
    """

    name: ClassVar[str] = "gp"
    fitted: ClassVar[type[Fitted]] = FittedProcess
    explains: ClassVar[bool] = True

    hops: int = option(5, least=0, most=1000)
    pairs: int = option(0, least=0, most=1000)
    evidence_graphs: int = option(600, least=2)
    exact_graphs: int = option(20_000, least=2)
    inducing_graphs: int = option(4_000, least=2)

    def __post_init__(self) -> None:
        check_fields(self)

    @property
    def title(self) -> str:
        """What pages call it."""
        return f"Gaussian process, {self.hops} hops"

    @property
    def reads_whole(self) -> bool:
        """Features of whole graphs have kernels."""
        return True

    def check(self, graphs: Graphs, task: Task) -> None:
        """Refuse losses other than the squared error: the evidence is that of normal noise."""
        for head in task.heads:
            if head.task.loss in LOSSES and head.task.loss != "mse":
                raise LookHopsError(
                    f"gp is fitted by its evidence, not by the loss {head.task.loss!r}; leave it "
                    "out."
                )

    def fit(self, graphs: Graphs, task: Task, split: Split, seed: int) -> FittedProcess:
        """Fit on the training part; the validation part is not read."""
        training = graphs.select(split.train).to("cpu")
        generator = torch.Generator().manual_seed(seed)
        order = torch.randperm(len(training), generator=generator)
        columns = GraphColumns.fit(graphs, training, order)
        values = columns(training)
        rows = GraphRows.of(training, self.hops, values, self.pairs)
        medians = columns.medians
        references = rows
        if len(rows) > self.exact_graphs:
            some = order[: self.inducing_graphs]
            references = rows.select(some.sort().values)
            warnings.warn(
                f"{graphs.name}: {len(rows):,} training graphs are more than {self.exact_graphs:,}:"
                f" {len(some):,} of them stand for all.",
                Approximate,
                stacklevel=2,
            )
        fit = _Fit(self, rows, references, medians, order)
        target = task.targets(training).cpu()
        found = [fit.target(head, target) for head in task.heads]
        targets, outputs, variances = zip(*found, strict=True)
        kernels = Kernels(references, medians)
        return FittedProcess(
            task,
            columns,
            kernels,
            targets,
            _chosen(kernels, targets, task),
            side_by_side([own.numpy() for own in outputs], task),
            torch.cat(variances, 1),
            self.pairs,
        )


@dataclass(frozen=True, eq=False)
class _Fit:
    """What the targets of one training part share.

    Args:
        learner: The options.
        rows: The training graphs.
        references: Those that answers are made of: all, or the inducing ones.
        medians: The median squared distance of each group of columns.
        order: Numbers of the training graphs in random order.
    """

    learner: GaussianProcess
    rows: GraphRows
    references: GraphRows
    medians: Mapping[str, float]
    order: Tensor

    def target(self, head: Head, target: Tensor) -> tuple[TargetProcess, Tensor, Tensor]:
        """The process of one target, its leave-one-out outputs and their variance."""
        y = head.target(target)
        known = head.task.known(y)
        width = head.task.out_channels
        wanted = y[known].double()[:, None]
        if head.task.class_names:
            wanted = torch.nn.functional.one_hot(y[known], width).double()
        mean = wanted.mean(0)
        spread = float((wanted - mean).square().mean().sqrt()) or 1.0
        wanted = (wanted - mean) / spread
        mine = self.order[known[self.order]][: self.learner.evidence_graphs].sort().values
        weights = self._weights(mine, wanted[known.cumsum(0)[mine] - 1])
        solution, of = self._solve(known, wanted, weights)
        coefficients = torch.zeros(len(self.references), width, dtype=torch.float64)
        coefficients[of] = solution.coefficients
        left_out = mean + spread * solution.left_out
        link = None
        if head.task.class_names:
            link = Link.fit(left_out, y[known], head.task.class_weights)
        one = TargetProcess(weights, mean, spread, coefficients, of, link)
        outputs = torch.full((len(self.rows), width), torch.nan, dtype=torch.float64)
        variance = outputs.clone()
        outputs[known] = one.outputs(solution.left_out)
        variance[known] = solution.left_out_variance[:, None] * spread**2
        return one, outputs, variance

    def _weights(self, graphs: Tensor, wanted: Tensor) -> Weights:
        """The weights by the evidence of these training graphs."""
        kernels = Kernels(self.rows.select(graphs), self.medians)
        return weights_by_evidence(kernels.full(kernels.references), wanted)

    def _solve(self, known: Tensor, wanted: Tensor, weights: Weights) -> tuple[Solution, Tensor]:
        """The solution for the training graphs that have a target, and which references it names.

        Where all training graphs are references, those without the target are left out.
        """
        rows = self.rows if bool(known.all()) else self.rows.select(known.nonzero().flatten())
        if self.references is self.rows:
            return solve(covariance_of(Kernels(rows, self.medians), weights), wanted), known
        kernels = Kernels(self.references, self.medians)
        inducing = covariance_of(kernels, Weights(weights.kernels, 0.0))
        found = solve_inducing(
            inducing, lambda: kernels.weighted(rows, weights.kernels), wanted, weights.noise
        )
        return found, torch.ones(len(self.references), dtype=torch.bool)


def _chosen(kernels: Kernels, targets: Sequence[TargetProcess], task: Task) -> dict[str, float]:
    """Each kernel's share of the variance before anything is known, and the noise, by target."""
    prior, found = kernels.diagonal(kernels.references).mean(1), dict[str, float]()
    for head, one in zip(task.heads, targets, strict=True):
        parts = one.weights.kernels * prior
        total = float(parts.sum()) + one.weights.noise
        names, values = [*kernels.names, "noise"], [*parts.tolist(), one.weights.noise]
        shares = dict(zip(names, values, strict=True))
        found |= {
            head.key(f"share of {name}"): round(share / total, 4)
            for name, share in shares.items()
            if share / total >= LEAST_SHARE
        }
    return found
