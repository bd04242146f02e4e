"""Adam as PyTorch has it, without what only its compiler needs."""

from __future__ import annotations

from collections.abc import Callable
from inspect import unwrap
from typing import Any

import torch
from torch import optim
from torch.optim.optimizer import Optimizer


class Adam(optim.Adam):
    """PyTorch's Adam, step for step.

    PyTorch wraps the methods of optimisers for ``torch.compile``, and the first call of any of them
    imports the compiler: seconds, where a small training takes no longer. We do not compile steps,
    so the methods are called as they stand inside.
    """

    add_param_group = unwrap(Optimizer.add_param_group)
    zero_grad = unwrap(Optimizer.zero_grad)

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Move every parameter that has a gradient."""
        return unwrap(optim.Adam.step)(self, closure)
