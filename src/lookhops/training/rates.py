"""What members of one stack may differ in, and an optimiser that takes one rate for each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from torch import Tensor

from lookhops.core.options import Architecture, Protocol
from lookhops.ops.adam import Adam


@dataclass(frozen=True)
class Rates:
    """The options of a training that shape nothing: networks that differ in them stack.

    Args:
        learning_rate: Learning rate of Adam.
        weight_decay: Weight decay of Adam.
        dropout: Share of the features that is dropped between layers.
    """

    learning_rate: float
    weight_decay: float
    dropout: float

    @classmethod
    def of(cls, architecture: Architecture, protocol: Protocol) -> Rates:
        """Those of an architecture and a protocol."""
        return cls(protocol.learning_rate, protocol.weight_decay, architecture.dropout)

    def applied(
        self, architecture: Architecture, protocol: Protocol
    ) -> tuple[Architecture, Protocol]:
        """The same architecture and protocol with these rates."""
        return replace(architecture, dropout=self.dropout), replace(
            protocol, learning_rate=self.learning_rate, weight_decay=self.weight_decay
        )


class MemberAdam(Adam):
    r"""Adam with a learning rate and a weight decay for each member of a stack.

    PyTorch's takes one rate for all of a parameter. A step of it with the rate 1 moves a parameter
    :math:`\theta` by :math:`u`, which does not depend on the rate; of this each member :math:`m`
    takes its share, where there is no kernel that takes one rate for each:

    .. math::
        \theta_m \leftarrow \theta_m + \eta_m u_m, \qquad
        u = \mathrm{Adam}_1(\nabla_m + \lambda_m \theta_m)

    The rates are tensors on the device of the parameters, which a recorded step reads.

    Args:
        parameters: With a leading axis of members, shape (members, ...).
        rates: Of each member.
        options: Of :class:`torch.optim.Adam`.
    """

    def __init__(
        self, parameters: Iterable[Tensor], rates: Sequence[Rates], **options: Any
    ) -> None:
        super().__init__(parameters, lr=1.0, **options)
        self.learning = self._rates(*(own.learning_rate for own in rates))
        self.decay = self._rates(*(own.weight_decay for own in rates))

    def step_of_pytorch(self, closure: Callable[[], Any] | None) -> None:
        """The formula above."""
        assert closure is None
        moved = [value for value in self.values if value.grad is not None]
        for value in moved:
            value.grad.addcmul_(value, _along(self.decay, value))  # type: ignore[union-attr]
        before = [value.clone() for value in moved]
        super().step_of_pytorch(closure)
        for value, old in zip(moved, before, strict=True):
            value.copy_(old.lerp_(value, _along(self.learning, value)))


def _along(each: Tensor, value: Tensor) -> Tensor:
    """One number a member, shaped to multiply a parameter."""
    return each.view(-1, *[1] * (value.dim() - 1))
