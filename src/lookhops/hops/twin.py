"""Second derivatives of hand-written functions: those of their plain twins."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


def differentiate(
    outputs: Sequence[Tensor], inputs: Sequence[Tensor | None], grads: Sequence[Tensor | None]
) -> list[Tensor | None]:
    """The gradients of the inputs, differentiable themselves.

    A hand-written ``backward`` that is asked to be differentiable, in which gradients are enabled
    then, computes its plain twin again and gives what this makes of it.

    Args:
        outputs: What the twin made of the inputs.
        inputs: Saved inputs; none, and those without gradient, get none.
        grads: The gradient of each output, or none.
    """
    given = [pair for pair in zip(outputs, grads, strict=True) if pair[1] is not None]
    wanted = [x for x in inputs if x is not None and x.requires_grad]
    found = iter(
        torch.autograd.grad(
            [output for output, _ in given],
            wanted,
            [grad for _, grad in given],
            create_graph=True,
            allow_unused=True,
        )
    )
    return [next(found) if x is not None and x.requires_grad else None for x in inputs]
