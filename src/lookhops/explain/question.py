"""What is explained: one number of each graph, in the units of the answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import log

import torch
from torch import Tensor
from torch.nn.functional import one_hot, softplus

from lookhops.core.errors import LookHopsError
from lookhops.explain.path import gauss_legendre
from lookhops.models.predictor import Predictor
from lookhops.tasks import Task
from lookhops.tasks.task import Head

#: Points for weighing networks against each other: a smooth function of one number.
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
    known = ", ".join(head.title for head in heads)
    raise LookHopsError(f"The model has no target {target!r}, but {known}.")


@dataclass(frozen=True, eq=False)
class Question:
    r"""The number that is explained of each graph, as a function of networks' outputs.

    For a class :math:`c` its log-odds against the others by the calibrated probabilities,

    .. math::
        u = \ln \frac{p_c}{1 - p_c} = \frac{o_c}{T} - \ln \sum_{b \ne c} e^{o_b / T},

    for a number the number itself.

    Args:
        task: What the model is asked.
        head: The target that is explained.
        classes: The class of each graph, shape (g); none for a number.
        fitted: What the task took from the training part of each network, shape (networks, f).
        temperature: The :math:`T` of each network, shape (networks, 1, 1); one where a seed has
            several, whose average is calibrated (:func:`all_together`).
    """

    task: Task
    head: Head
    classes: Tensor | None
    fitted: Tensor | None
    temperature: Tensor

    @classmethod
    def to(
        cls, predictor: Predictor, head: Head, classes: Tensor | None, seeds: Sequence[int]
    ) -> Question:
        """The question to networks of these seeds, one of each."""
        checkpoint = predictor.checkpoint
        known = [one for seed in seeds if (one := checkpoint.fitted.get(seed)) is not None]
        alone = {seed: len(predictor.members[seed]) == 1 for seed in seeds}
        temperature = [
            temperature_of(predictor, head, seed) if alone[seed] else 1.0 for seed in seeds
        ]
        return cls(
            checkpoint.task,
            head,
            classes,
            torch.stack(known).to(predictor.device) if known else None,
            torch.tensor(temperature, dtype=torch.float64, device=predictor.device)[:, None, None],
        )

    def select(self, index: Tensor) -> Question:
        """The same of the graphs with these numbers."""
        return replace(self, classes=None if self.classes is None else self.classes[index])

    def of(self, outputs: Tensor) -> Tensor:
        """The number of each graph by each network, float64, shape (networks, m).

        Args:
            outputs: What they gave for the graphs, in their order, once or several times, shape
                (networks, m, channels).
        """
        numbers = self.task.in_units(outputs, self.fitted)[..., self.head.channels].double()
        if self.classes is None:
            return self.head.task.answers(numbers, {})[..., 0]
        times = numbers.shape[1] // max(len(self.classes), 1)
        return log_odds(numbers / self.temperature, self.classes.repeat(times))


def temperature_of(predictor: Predictor, head: Head, seed: int) -> float:
    """What the answers of a seed to one target were calibrated with; one where they were not."""
    return float(head.calibration(predictor.checkpoint.calibration(seed)).get("temperature", 1.0))


def log_odds(logits: Tensor, classes: Tensor) -> Tensor:
    """The log-odds of one class of each row against all others, shape (..., g)."""
    chosen = one_hot(classes, logits.shape[-1]).bool()
    of_class = logits.masked_fill(~chosen, 0).sum(-1)
    return of_class - logits.masked_fill(chosen, -torch.inf).logsumexp(-1)


def together(values: Tensor, classes: bool) -> Tensor:
    r"""What several networks answer together, shape (g).

    Of numbers the mean; of log-odds :math:`u_s` those of the mean probability,
    :math:`\mathrm{logit}\bigl(\tfrac1S \sum_s \mathrm{sigmoid}(u_s)\bigr)`.

    Args:
        values: Of each network, shape (S, g).
        classes: Whether they are log-odds.
    """
    if not classes or len(values) == 1:
        return values.mean(0)
    return torch.logsumexp(-softplus(-values), 0) - torch.logsumexp(-softplus(values), 0)


def weights_of(start: Tensor, end: Tensor, classes: bool) -> Tensor:
    r"""What the shares of each network count for in the answer of all, shape (S, g).

    .. math::
        w_s = \int_0^1 \frac{\partial F}{\partial u_s}\bigl(u^0 + a (u - u^0)\bigr)\, da

    with :func:`together` as :math:`F`, so that
    :math:`\sum_s w_s (u_s - u^0_s) = F(u) - F(u^0)`. Of one network, and of numbers,
    :math:`1 / S`.

    Args:
        start: The :math:`u^0` of each network, shape (S, g).
        end: The :math:`u`, of the same shape.
        classes: Whether they are log-odds.
    """
    if not classes or len(end) == 1:
        return torch.full_like(end, 1 / len(end))
    found = torch.zeros_like(end)
    for a, weight in gauss_legendre(POINTS):
        u = start + a * (end - start)
        true = torch.logsumexp(-softplus(-u), 0) - log(len(u))  # ln P
        false = torch.logsumexp(-softplus(u), 0) - log(len(u))  # ln(1 - P)
        slope = -softplus(u) - softplus(-u)  # ln of the derivative of the sigmoid
        found += weight * (slope - true - false).exp() / len(u)
    return found


def all_together(
    start: Tensor, end: Tensor, classes: bool, temperatures: Sequence[tuple[int, float]]
) -> tuple[Tensor, Tensor, Tensor]:
    r"""What the networks of all seeds answer together, as the model does.

    The members of a seed are averaged, their log-odds :math:`U` divided by the seed's temperature
    where there are several (exact for two classes), and then the seeds averaged.

    Args:
        start: The number of the average graph by each network, seed after seed, shape (S, g).
        end: The number of the graph, of the same shape.
        classes: Whether they are log-odds.
        temperatures: Of each seed how many networks it has, and its temperature.

    Returns:
        What the shares of each network count for, shape (S, g), and the two numbers, shape (g).
    """
    sizes = [size for size, _ in temperatures]
    weights, ends = [], []
    for u0, u, (size, t) in zip(start.split(sizes), end.split(sizes), temperatures, strict=True):
        t = t if size > 1 else 1.0
        weights.append(weights_of(u0, u, classes) / t)
        ends.append(torch.stack((together(u0, classes), together(u, classes))) / t)
    u0, u = torch.stack(ends, 1)
    seeds = weights_of(u0, u, classes)
    found = torch.cat([inner * outer for inner, outer in zip(weights, seeds, strict=True)])
    return found, together(u0, classes), together(u, classes)
