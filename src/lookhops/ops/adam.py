"""Adam as PyTorch has it, without what only its compiler needs, and on a GPU in one launch."""

from collections.abc import Callable, Iterable, Sequence
from inspect import unwrap
from typing import Any

import torch
from torch import Tensor, optim
from torch.optim.optimizer import Optimizer

from lookhops.ops.gpu import available, tl, triton

BLOCK = 1024  # elements that a program takes
AT_ONCE = 64  # parameters of a launch, whose arguments may take 4 kB


class Adam(optim.Adam):
    """PyTorch's Adam, step for step.

    PyTorch wraps the methods of optimisers for ``torch.compile``, and the first call of any of them
    imports the compiler: seconds, where a small training takes no longer. We do not compile steps,
    so the methods are called as they stand inside. On a GPU a kernel of ours takes the step:
    PyTorch's takes 65,536 elements a program, which leaves most of a GPU idle.

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
        self.learning, self.decay = self._rates(group["lr"]), self._rates(group["weight_decay"])
        # Where the programs of a launch count each other: zero before and after.
        self.done = torch.zeros(len(self.values), dtype=torch.int32, device=self.values[0].device)

    def _rates(self, *rates: float) -> Tensor:
        like = self.values[0]
        dtype = torch.promote_types(like.dtype, torch.float32)
        return torch.tensor(rates, dtype=dtype, device=like.device)

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Move every parameter that has a gradient."""
        if closure is not None or not _fits(self.values):
            return self.step_of_pytorch(closure)
        [group] = self.param_groups
        found: list[list[Tensor]] = [[] for _ in range(6)]
        self._init_group(group, *found)
        values, gradients, means, squares, _, steps = found
        given = (values, [gradient.contiguous() for gradient in gradients], means, squares, steps)
        constants = dict(zip(("BETA1", "BETA2"), group["betas"], strict=True), EPS=group["eps"])
        for first in range(0, len(values), AT_ONCE):
            part = slice(first, first + AT_ONCE)
            sizes = tuple(value.numel() for value in values[part])
            programs = [triton.cdiv(size, BLOCK) for size in sizes]
            starts = tuple(sum(programs[:i]) for i in range(len(programs)))
            tensors = *(tuple(each[part]) for each in given), sizes, starts
            rates = self.learning, self.decay, self.done[part], self.learning.numel()
            _adam_kernel[(sum(programs),)](
                *tensors, *rates, **constants, COUNT=len(sizes), BLOCK=BLOCK, num_warps=4
            )
        return None

    def step_of_pytorch(self, closure: Callable[[], Any] | None) -> Any:
        """The same by PyTorch's own operators, on any device and in any precision."""
        return unwrap(optim.Adam.step)(self, closure)


def _fits(parameters: Sequence[Tensor]) -> bool:
    """Whether the kernel can take these parameters: of one type, on a GPU, not empty."""
    kinds = {(value.dtype, value.is_cuda and value.is_contiguous()) for value in parameters}
    exact = (torch.float32, torch.bfloat16)
    one = len(kinds) == 1 and all(dtype in exact and here for dtype, here in kinds)
    return one and available() and all(value.numel() > 0 for value in parameters)


if triton is not None:

    @triton.jit
    def _adam_kernel(
        values,
        gradients,
        means,
        squares,
        steps,
        sizes,
        starts,
        learning,
        decay,
        done,
        members,
        BETA1: tl.constexpr,
        BETA2: tl.constexpr,
        EPS: tl.constexpr,
        COUNT: tl.constexpr,
        BLOCK: tl.constexpr,
    ):
        """A block of one parameter; the last of its programs to end counts the step."""
        program = tl.program_id(0)
        which = tl.zeros((), tl.int32)
        value, gradient, mean, square = values[0], gradients[0], means[0], squares[0]
        counter, size, start = steps[0], sizes[0], starts[0] + 0
        for i in tl.static_range(1, COUNT):
            here = program >= starts[i]
            which = tl.where(here, i, which)
            value = tl.where(here, values[i], value)
            gradient = tl.where(here, gradients[i], gradient)
            mean = tl.where(here, means[i], mean)
            square = tl.where(here, squares[i], square)
            counter = tl.where(here, steps[i], counter)
            size = tl.where(here, sizes[i], size)
            start = tl.where(here, starts[i], start)
        place = (program - start) * BLOCK + tl.arange(0, BLOCK)
        inside = place < size
        member = place // (size // members)
        rate = tl.load(learning + member, mask=inside, other=0.0).to(tl.float32)
        share = tl.load(decay + member, mask=inside, other=0.0).to(tl.float32)
        now = tl.load(counter) + 1.0
        weight = tl.load(value + place, mask=inside, other=0.0).to(tl.float32)
        slope = tl.load(gradient + place, mask=inside, other=0.0).to(tl.float32)
        first = tl.load(mean + place, mask=inside, other=0.0).to(tl.float32)
        second = tl.load(square + place, mask=inside, other=0.0).to(tl.float32)
        slope += share * weight
        first += (1.0 - BETA1) * (slope - first)
        second = BETA2 * second + (1.0 - BETA2) * slope * slope
        long = 1.0 / (1.0 - _power(BETA1, now)).to(tl.float32)
        wide = 1.0 / tl.sqrt((1.0 - _power(BETA2, now)).to(tl.float32))
        weight -= rate * long * first / (tl.sqrt(second) * wide + EPS)
        tl.store(value + place, weight.to(value.dtype.element_ty), mask=inside)
        tl.store(mean + place, first.to(mean.dtype.element_ty), mask=inside)
        tl.store(square + place, second.to(square.dtype.element_ty), mask=inside)
        programs = (size + BLOCK - 1) // BLOCK
        tl.debug_barrier()  # every thread of this program has read the count
        if tl.atomic_add(done + which, 1) == programs - 1:  # and so have the others
            tl.store(counter, now)
            tl.store(done + which, 0)

    @triton.jit
    def _power(BASE: tl.constexpr, exponent):
        """A number to the power of a whole one, in double precision: 1 - 0.999 keeps its digits."""
        left = exponent.to(tl.int32)
        factor = tl.full((), BASE, tl.float64)
        found = tl.full((), 1.0, tl.float64)
        for _ in tl.static_range(24):  # a count in single precision goes no further
            found = tl.where(left % 2 == 1, found * factor, found)
            factor *= factor
            left = left // 2
        return found
