"""Adam as PyTorch has it, without what only its compiler needs, and on a GPU in one launch."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from inspect import unwrap
from typing import Any

import torch
from torch import Tensor, optim
from torch.optim.optimizer import Optimizer

from lookhops.training import adam_kernels


class Adam(optim.Adam):
    """PyTorch's Adam, step for step.

    PyTorch wraps the methods of optimisers for ``torch.compile``, and the first call of any of them
    imports the compiler: seconds, where a small training takes no longer. We do not compile steps,
    so the methods are called as they stand inside. On a GPU a kernel of our own takes the step.

    Args:
        parameters: All of one group.
        options: Of :class:`torch.optim.Adam`: ``lr``, ``weight_decay``, ``betas``, ``eps``, and how
            it is computed.
    """

    add_param_group = unwrap(Optimizer.add_param_group)
    zero_grad = unwrap(Optimizer.zero_grad)

    def __init__(self, parameters: Iterable[Tensor], **options: Any) -> None:
        super().__init__(parameters, **options)
        [group] = self.param_groups
        self.values: list[Tensor] = group["params"]
        #: One for all, or one for each slice of the parameters' first axis.
        self.learning, self.decay = self._told(group["lr"]), self._told(group["weight_decay"])
        # Where the programs of a launch count each other.
        self.done = torch.zeros(len(self.values), dtype=torch.int32, device=self.values[0].device)

    def _told(self, *rates: float) -> Tensor:
        like = self.values[0]
        dtype = torch.promote_types(like.dtype, torch.float32)
        return torch.tensor(rates, dtype=dtype, device=like.device)

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Move every parameter that has a gradient."""
        if closure is not None or not adam_kernels.fits(self.values):
            return self.step_of_pytorch(closure)
        [group] = self.param_groups
        found: list[list[Tensor]] = [[] for _ in range(6)]
        self._init_group(group, *found)
        values, gradients, means, squares, _, steps = found
        rates, options = (self.learning, self.decay), (group["betas"], group["eps"])
        adam_kernels.step(values, gradients, means, squares, steps, *rates, self.done, *options)
        return None

    def step_of_pytorch(self, closure: Callable[[], Any] | None) -> Any:
        """The same by PyTorch's own operators, on any device and in any precision."""
        return unwrap(optim.Adam.step)(self, closure)
