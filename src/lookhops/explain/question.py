"""What is explained, one number of each graph; the parts of a model that give it; their shares."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self, cast

import torch
from torch import Tensor
from torch.nn.functional import one_hot, softplus

from lookhops.core.arrays import gauss_legendre
from lookhops.core.errors import LookHopsError
from lookhops.learners import Fitted, FittedNetwork
from lookhops.tasks import Calibration, Task
from lookhops.tasks.task import Head

#: Points for weighing parts against each other: a smooth function of one number.
POINTS = 32


def find_head(task: Task, target: str | None) -> tuple[int, Head]:
    """The target of this name and its place; without a name the only one."""
    heads = list(task.heads)
    if target is None:
        if len(heads) == 1:
            return 0, heads[0]
        names = ", ".join(head.name for head in heads)
        raise LookHopsError(f"The model answers several targets; name one of them: {names}.")
    for number, head in enumerate(heads):
        if target in (head.name, head.task.name):
            return number, head
    titles = ", ".join(head.title for head in heads)
    raise LookHopsError(f"The model has no target {target!r}, but {titles}.")


@dataclass(frozen=True, eq=False)
class Part:
    """A part of a model's answer: a network, or a learner whose scores are sums."""

    fitted: Fitted
    seed: int
    weight: float  # of its answer among those of the model's parts
    temperature: float  # of its scores; one where the average of several parts is calibrated

    @property
    def leaves(self) -> list[Part]:
        """Itself."""
        return [self]

    def __call__(self, start: Tensor, end: Tensor, classes: bool) -> tuple[Tensor, Tensor, Tensor]:
        """As for :class:`Together`: its shares count as they are."""
        return torch.ones_like(end), start[0], end[0]


@dataclass(frozen=True, eq=False)
class Question:
    r"""The number that is explained of each graph, as a function of a part's scores.

    For a class :math:`c` its log-odds against the others by the calibrated probabilities,

    .. math::
        u = \ln \frac{p_c}{1 - p_c} = \frac{o_c}{T} - \ln \sum_{b \ne c} e^{o_b / T},

    for a number the number itself.
    """

    head: Head  # the target that is explained
    classes: Tensor | None  # of each graph, (g); none for a number

    def select(self, index: Tensor) -> Question:
        """The same of the graphs with these numbers."""
        return replace(self, classes=None if self.classes is None else self.classes[index])

    def of_scores(self, scores: Tensor, temperature: float | Tensor = 1.0) -> Tensor:
        """The number of each graph, float64, shape (..., m).

        Scores are outputs of the target in its units for the graphs, in their order, once or
        several times, shape (..., m, channels); temperatures of several parts (parts, 1, 1).
        """
        if self.classes is None:
            return self.head.task.answers(scores.double(), {})[..., 0]
        times = scores.shape[-2] // max(len(self.classes), 1)
        return log_odds(scores.double() / temperature, self.classes.repeat(times))

    def of_networks(self, parts: Sequence[Part]) -> Callable[[Tensor], Tensor]:
        """The same of the outputs of networks, (networks, m, outputs) to (networks, m)."""
        each = [cast(FittedNetwork, part.fitted) for part in parts]
        device = next(each[0].network.parameters()).device
        targets = [one.target for one in each if one.target is not None]
        fitted = torch.stack(targets).to(device) if targets else None
        temperature = torch.tensor(
            [part.temperature for part in parts], dtype=torch.float64, device=device
        )[:, None, None]

        def numbers(outputs: Tensor) -> Tensor:
            in_units = each[0].task.in_units(outputs, fitted)
            return self.of_scores(in_units[..., self.head.channels], temperature)

        return numbers


@dataclass(frozen=True, eq=False)
class Shares:
    """What nodes and edges have of the number :math:`u` of each graph; all in float64."""

    node: Tensor  # of each node, (parts, n)
    edge: Tensor  # of each edge: that it is there, and what it carries, (parts, e)
    start: Tensor  # the number of the average graph, (parts, g)
    end: Tensor  # the number of the graph, (parts, g)

    @classmethod
    def join(cls, shares: Sequence[Self], dim: int) -> Self:
        """Those of several batches (``dim`` 1), or of several parts of an answer (0)."""
        each = zip(*(vars(one).values() for one in shares), strict=True)
        return cls(*(torch.cat(tensors, dim) for tensors in each))


@dataclass(frozen=True, eq=False)
class PartShares(Shares):
    """Shares of the answers of each part of a model to all graphs."""

    whole: Tensor  # of the graphs as wholes, (parts, g)
    features: Tensor  # of features of whole graphs, less what atoms have of them, (parts, g, f)


def log_odds(logits: Tensor, classes: Tensor) -> Tensor:
    """The log-odds of one class of each row against all others, shape (..., g)."""
    chosen = one_hot(classes, logits.shape[-1]).bool()
    of_class = logits.masked_fill(~chosen, 0).sum(-1)
    return of_class - logits.masked_fill(chosen, -torch.inf).logsumexp(-1)


@dataclass(frozen=True, eq=False)
class Together:
    r"""Parts of an answer whose mean is the answer, as the model has it.

    Of numbers it is the mean :math:`\sum_s q_s u_s`; of log-odds :math:`u_s` those of the mean
    probability, divided by a temperature where it is calibrated (exact for two classes),

    .. math::
        F(u) = \frac1T \, \mathrm{logit}\Bigl(\sum_s q_s \, \mathrm{sigmoid}(u_s)\Bigr).
    """

    parts: Sequence[Part | Together]
    weights: Sequence[float]  # the q of each; they add up to 1
    temperature: float = 1.0

    @classmethod
    def of(
        cls,
        members: Mapping[int, Sequence[Fitted]],
        target: int,
        head: Head,
        calibration: Callable[[int], Calibration],
    ) -> Together:
        """The parts with weight of a model: of its seeds, of their members, of blends."""
        seeds = []
        for seed, fitted in members.items():
            t = float(head.values(calibration(seed)).get("temperature", 1.0))
            each = [[one for one in member.parts(target) if one[0] > 0] for member in fitted]
            alone = len(each) == 1 and len(each[0]) == 1  # then its scores can be calibrated
            share = 1 / (len(members) * len(fitted))
            blends = [
                cls(
                    [Part(one, seed, share * w, t if alone else 1.0) for w, one in parts],
                    [w for w, _ in parts],
                )
                for parts in each
            ]
            seeds.append(cls(blends, [1 / len(blends)] * len(blends), 1.0 if alone else t))
        return cls(seeds, [1 / len(seeds)] * len(seeds))

    @property
    def leaves(self) -> list[Part]:
        """All parts, in the order of shares."""
        return [leaf for part in self.parts for leaf in part.leaves]

    def __call__(self, start: Tensor, end: Tensor, classes: bool) -> tuple[Tensor, Tensor, Tensor]:
        r"""What the shares of each part count for, shape (S, g), and both answers, shape (g).

        Shares of a part, which add up to :math:`u_s - u^0_s`, count

        .. math::
            w_s = \int_0^1 \frac{\partial F}{\partial u_s}\bigl(u^0 + a (u - u^0)\bigr)\, da,

        so that :math:`\sum_s w_s (u_s - u^0_s) = F(u) - F(u^0)`. ``start`` and ``end`` are the
        numbers by each of :attr:`leaves`, shape (S, g); of ``classes`` they are log-odds.
        """
        sizes = [len(one.leaves) for one in self.parts]
        each = zip(self.parts, start.split(sizes), end.split(sizes), strict=True)
        inner, starts, ends = zip(*(one(u0, u, classes) for one, u0, u in each), strict=True)
        first, last = torch.stack(starts), torch.stack(ends)
        q = torch.tensor(self.weights).to(first)[:, None]
        outer = _slopes(first, last, q, classes) / self.temperature
        weight = torch.cat([each * slope for each, slope in zip(inner, outer, strict=True)])
        of_start, of_end = (_mean(u, q, classes) / self.temperature for u in (first, last))
        return weight, of_start, of_end


def _log_mean(u: Tensor, q: Tensor) -> tuple[Tensor, Tensor]:
    r"""Logarithms of :math:`\sum_s q_s \mathrm{sigmoid}(u_s)` and of what it lacks to 1, (g)."""
    return (q.log() - softplus(-u)).logsumexp(0), (q.log() - softplus(u)).logsumexp(0)


def _mean(u: Tensor, q: Tensor, classes: bool) -> Tensor:
    """The mean of numbers, or the log-odds of the mean of probabilities, shape (g)."""
    if not classes or len(u) == 1:
        return (q * u).sum(0)
    true, false = _log_mean(u, q)
    return true - false


def _slopes(start: Tensor, end: Tensor, q: Tensor, classes: bool) -> Tensor:
    """The mean slopes of :func:`_mean` on the straight line between two points, shape (S, g)."""
    if not classes or len(end) == 1:
        return q.expand_as(end)
    found = torch.zeros_like(end)
    for a, weight in gauss_legendre(POINTS):
        u = start + a * (end - start)
        true, false = _log_mean(u, q)
        slope = -softplus(u) - softplus(-u)  # ln of the derivative of the sigmoid
        found += weight * q * (slope - true - false).exp()
    return found
