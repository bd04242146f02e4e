"""What is explained: one number of each graph, in the units of the answer."""

from __future__ import annotations

from dataclasses import dataclass
from math import log

import torch
from torch import Tensor
from torch.nn.functional import one_hot, softplus

from lookhops.errors import LookHopsError
from lookhops.explanations.quadrature import gauss_legendre
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
        if target in (head.name, getattr(head.task, "name", None)):
            return number, head
    known = ", ".join(head.name or getattr(head.task, "name", "class") for head in heads)
    raise LookHopsError(f"The model has no target {target!r}, but {known}.")


@dataclass(frozen=True, eq=False)
class Question:
    r"""The number that is explained of each graph, as a function of a network's outputs.

    For a class :math:`c` its log-odds against the others by the calibrated probabilities,

    .. math::
        u = \ln \frac{p_c}{1 - p_c} = \frac{o_c}{T} - \ln \sum_{b \ne c} e^{o_b / T},

    for a number the number itself.

    Args:
        task: What the model is asked.
        head: The target that is explained.
        classes: The class of each graph, shape (g); none for a number.
    """

    task: Task
    head: Head
    classes: Tensor | None = None

    def select(self, index: Tensor) -> Question:
        """The same of the graphs with these numbers."""
        own = None if self.classes is None else self.classes[index]
        return Question(self.task, self.head, own)

    def of(self, predictor: Predictor, seed: int, outputs: Tensor) -> Tensor:
        """The number of each graph by a network of this seed, float64, shape (g).

        Args:
            predictor: The model.
            seed: The network's.
            outputs: What it gave, shape (g, channels).
        """
        fitted = predictor.checkpoint.fitted.get(seed)
        fitted = None if fitted is None else fitted.to(outputs.device)
        own = self.task.in_units(outputs, fitted)[:, self.head.channels].double()
        if self.classes is None:
            return own[:, 0]
        calibration = self.head.calibration(predictor.checkpoint.calibration(seed))
        return log_odds(own / calibration.get("temperature", 1.0), self.classes)


def log_odds(logits: Tensor, classes: Tensor) -> Tensor:
    """The log-odds of one class of each row against all others, shape (g)."""
    chosen = one_hot(classes, logits.shape[1]).bool()
    own = logits.gather(1, classes[:, None])[:, 0]
    return own - logits.masked_fill(chosen, -torch.inf).logsumexp(1)


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
