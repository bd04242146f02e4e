"""A Gaussian process over the hops of exact neighbourhoods and over columns of whole graphs."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, ClassVar, Self

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from lookhops.core.errors import LookHopsError
from lookhops.core.options import LOSSES
from lookhops.core.schema import check_fields, option
from lookhops.core.tensors import Expected, check_tensors, codes, named_parts, offsets, part_of
from lookhops.encoding import Encoding
from lookhops.graphs import Graphs
from lookhops.learners.gp_solve import (
    ClassProcess,
    TargetProcess,
    fit_link,
    solve,
    solve_inducing,
    weights_by_evidence,
)
from lookhops.learners.gp_terms import Terms, assignment_terms, process_terms
from lookhops.learners.kernels import GraphColumns, GraphRows, Group, Kernels
from lookhops.learners.learner import FITTED, Fitted, Learner
from lookhops.learners.scorers import side_by_side
from lookhops.sources.splits import Split
from lookhops.tasks import Task
from lookhops.tasks.task import Head

#: The variance of an answer looks at no more training graphs than this.
VARIANCE_GRAPHS = 4_000
#: The average training graph is the mean of about so many.
USUAL_GRAPHS = 1_000
#: A kernel with a smaller share of the prior variance is not listed among what was chosen.
LEAST_SHARE = 1e-3


class Approximate(UserWarning):
    """A training part is too large for an exact answer."""


@dataclass(frozen=True, eq=False)
class FittedProcess(Fitted):
    """A Gaussian process that was fitted on a training part."""

    is_sum: ClassVar[bool] = True

    columns: GraphColumns
    kernels: Kernels  # of any graphs and the reference graphs
    targets: tuple[TargetProcess, ...]
    #: For each training graph the outputs of a process fitted on all others, NaN where its target
    #: is blank, and the variance of these; none when it was read from a file.
    left_out: Tensor | None = None
    left_out_variance: Tensor | None = None

    def rows(self, graphs: Graphs) -> GraphRows:
        """What the kernels read of graphs."""
        return GraphRows.of(graphs, self.learner.hops, self.columns(graphs), self.learner.pairs)

    def outputs(self, graphs: Graphs) -> Tensor:
        answers = self.answers(self.rows(graphs), self.targets)
        each = answers.split([len(one.mean) for one in self.targets], 1)
        pairs = zip(self.targets, each, strict=True)
        return side_by_side([one.outputs(answer).numpy() for one, answer in pairs], self.task)

    def answers(self, rows: GraphRows, targets: Sequence[TargetProcess]) -> Tensor:
        """The standardised answers to some targets, shape (g, c of all)."""
        coefficients = torch.cat([one.coefficients for one in targets], 1)
        weights = torch.cat([one.weights[:, None].expand(-1, len(one.mean)) for one in targets], 1)
        answers = torch.zeros(len(rows), coefficients.shape[1], dtype=torch.float64)
        for part, kernels in self.kernels.blocks(rows):
            for kernel, weight in zip(kernels, weights, strict=True):
                answers[part] += (kernel @ coefficients) * weight
        return answers

    def terms(self, graphs: Graphs, target: int) -> Terms:
        return process_terms(self, graphs.to("cpu"), target)

    @cached_property
    def usual(self) -> list[Tensor]:
        """For each target what references have of each hop and of pairs in the mean, (parts, c)."""
        count = len(self.kernels.references)
        sample = self.kernels.references.select(torch.arange(0, count, -(-count // USUAL_GRAPHS)))
        found = []
        for one in self.targets:
            each = assignment_terms(self.kernels, sample, one.coefficients, one.weights)
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
            variance = one.weights @ prior + one.noise
            for part, across in kernels.weighted(rows, one.weights):
                seen = torch.linalg.solve_triangular(factor, across.T, upper=False)
                variance[part] -= seen.square().sum(0)
            variance = variance.clamp(min=one.noise) * one.spread**2
            found.append(variance[:, None].expand(-1, len(one.mean)))
        return torch.cat(found, 1)

    @cached_property
    def _factors(self) -> list[tuple[Kernels, Tensor]]:
        """For each target the kernels of what its variance looks at, and the factor of these."""
        found = []
        for one in self.targets:
            kernels = self.kernels.select(one.known.nonzero().flatten()[:VARIANCE_GRAPHS])
            covariance = kernels.covariance(one.weights, one.noise)
            factor, failed = torch.linalg.cholesky_ex(covariance)
            if int(failed):
                raise LookHopsError(
                    "The covariance of the process' training graphs is not that of any graphs: "
                    "the model is damaged; train it again."
                )
            found.append((kernels, factor))
        return found

    def tensors(self) -> dict[str, Tensor]:
        """The reference graphs' counts, the columns' scale, and each target's coefficients."""
        references = self.kernels.references
        found = {"codes": references.codes, "node_ptr": references.node_ptr}
        if references.pairs is not None:
            found["pairs"], found["pair_ptr"] = references.pairs
        groups = {name: one.tensors() for name, one in self.columns.groups.items()}
        targets = {f"target{number}": one.tensors() for number, one in enumerate(self.targets)}
        return found | named_parts({"values": references.columns, **groups, **targets})

    @classmethod
    def from_tensors(
        cls, learner: Any, task: Task, encoding: Encoding, tensors: Mapping[str, Tensor]
    ) -> Self:
        tensors = {name: value for name, value in tensors.items() if name != FITTED}
        table = {
            "node_ptr": offsets("graphs", into="codes"),
            "codes": codes("nodes", learner.hops + 1),
        }
        if learner.pairs:
            table |= {"pair_ptr": offsets("graphs", into="pairs"), "pairs": codes("pairs")}
        widths = GraphColumns(encoding, {}).widths
        names = [name for name in widths if f"{name}.spread" in tensors]
        for name in names:
            varying = int((tensors[f"{name}.spread"] > 0).sum())
            table |= named_parts({name: Group.table(columns=widths[name])})
            table[f"values.{name}"] = Expected(("graphs", varying), "float32")
        kernels = learner.hops + 1 + (learner.hops > 0) + (learner.pairs > 0) + 3 * len(names)
        kinds = {}
        for number, head in enumerate(task.heads):
            kind = ClassProcess if head.task.class_names else TargetProcess
            of_target = kind.table(kernels=kernels, channels=head.task.out_channels)
            kinds[f"target{number}"] = kind
            table |= named_parts({f"target{number}": of_target})
        check_tensors(tensors, table)
        groups = {name: Group(**part_of(tensors, name)) for name in names}
        columns = GraphColumns(encoding, groups)
        pairs = (tensors["pairs"], tensors["pair_ptr"]) if learner.pairs else None
        values = part_of(tensors, "values")
        references = GraphRows(tensors["codes"], tensors["node_ptr"], values, pairs)
        targets = tuple(kind(**part_of(tensors, name)) for name, kind in kinds.items())
        for number, one in enumerate(targets):
            if not bool(one.known.any()):
                raise LookHopsError(f"its target {number} is not known of any graph")
        return cls(learner, task, encoding, columns, Kernels(references, columns.medians), targets)


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
    reads_whole = True

    hops: int = option(5, least=0, most=1000)
    pairs: int = option(0, least=0, most=1000)
    evidence_graphs: int = option(600, least=2)
    exact_graphs: int = option(20_000, least=2)
    inducing_graphs: int = option(4_000, least=2)

    def __post_init__(self) -> None:
        check_fields(self)

    @property
    def title(self) -> str:
        return f"Gaussian process, {self.hops} hops"

    def check(self, graphs: Graphs, task: Task) -> None:
        """Refuse losses other than the squared error: the evidence is that of normal noise."""
        for head in task.heads:
            if head.task.loss in LOSSES and head.task.loss != "mse":
                raise LookHopsError(
                    f"gp is fitted by its evidence, not by the loss {head.task.loss!r}; leave it "
                    "out."
                )

    def fit(self, graphs: Graphs, task: Task, split: Split, seed: int) -> FittedProcess:
        training = graphs.select(split.train).to("cpu")
        generator = torch.Generator().manual_seed(seed)
        order = torch.randperm(len(training), generator=generator)
        encoding = self.encoding(graphs)
        columns = GraphColumns.fit(encoding, training, order)
        rows = GraphRows.of(training, self.hops, columns(training), self.pairs)
        kernels = every = Kernels(rows, columns.medians)
        if len(rows) > self.exact_graphs:
            kernels = every.select(order[: self.inducing_graphs].sort().values)
            warnings.warn(
                f"{graphs.name}: {len(rows):,} training graphs are more than {self.exact_graphs:,}:"
                f" {len(kernels.references):,} of them stand for all.",
                Approximate,
                stacklevel=2,
            )
        target = task.targets(training).cpu()
        found = [
            self._fit_target(head, head.target(target), every, kernels, order)
            for head in task.heads
        ]
        targets, outputs, variances = zip(*found, strict=True)
        return FittedProcess(
            self,
            task,
            encoding,
            columns,
            kernels,
            targets,
            side_by_side([output.numpy() for output in outputs], task),
            torch.cat(variances, 1),
            chosen=_shares(kernels, targets, task),
        )

    def _fit_target(
        self, head: Head, y: Tensor, every: Kernels, kernels: Kernels, order: Tensor
    ) -> tuple[TargetProcess, Tensor, Tensor]:
        """The process of one target, its leave-one-out outputs and their variance.

        ``every`` has the kernels of all training graphs, ``kernels`` those of the graphs that
        answers are made of: the same, or inducing ones.
        """
        has_target, width = head.task.known(y), head.task.out_channels
        wanted = y[has_target][:, None]
        if head.task.class_names:
            wanted = one_hot(y[has_target].long(), width).double()
        mean = wanted.mean(0)
        spread = float((wanted - mean).square().mean().sqrt()) or 1.0
        wanted = (wanted - mean) / spread
        first = order[has_target[order]][: self.evidence_graphs].sort().values
        evidence = every.select(first)
        gram = evidence.full(evidence.references)
        weights, noise = weights_by_evidence(gram, wanted[has_target.cumsum(0)[first] - 1])
        measured = every if bool(has_target.all()) else every.select(has_target.nonzero().flatten())
        if kernels is every:  # of which those without the target are left out
            answering = has_target
            solution = solve(measured.covariance(weights, noise), wanted)
        else:
            answering = torch.ones(len(kernels.references), dtype=torch.bool)
            inducing = kernels.covariance(weights, 0.0)
            blocks = partial(kernels.weighted, measured.references, weights)
            solution = solve_inducing(inducing, blocks, wanted, noise)
        coefficients = torch.zeros(len(answering), width, dtype=torch.float64)
        coefficients[answering] = solution.coefficients
        scale = torch.tensor([noise, spread], dtype=torch.float64)
        process = TargetProcess(weights, scale[0], mean, scale[1], coefficients, answering)
        if head.task.class_names:
            left_out = process.scores(solution.left_out)
            slope, offsets = fit_link(left_out, y[has_target].long(), head.task.class_weights)
            process = ClassProcess(**vars(process), slope=slope, offsets=offsets)
        outputs = torch.full((len(y), width), torch.nan, dtype=torch.float64)
        variance = outputs.clone()
        outputs[has_target] = process.outputs(solution.left_out)
        variance[has_target] = solution.left_out_variance[:, None] * process.spread**2
        return process, outputs, variance


def _shares(kernels: Kernels, targets: Sequence[TargetProcess], task: Task) -> dict[str, float]:
    """Each kernel's share of the variance before anything is known, and the noise, by target."""
    prior, found = kernels.diagonal(kernels.references).mean(1), dict[str, float]()
    for head, one in zip(task.heads, targets, strict=True):
        parts = [*(one.weights * prior).tolist(), float(one.noise)]
        total = float((one.weights * prior).sum()) + float(one.noise)
        for name, part in zip([*kernels.names, "noise"], parts, strict=True):
            if part / total >= LEAST_SHARE:
                found[head.key(f"share of {name}")] = round(part / total, 4)
    return found
