"""Steps that are recorded once as a CUDA graph and then replayed."""

import gc
from collections.abc import Callable

import torch
from torch import Tensor
from torch.optim import Optimizer

#: A step of training or validation, given its number, a tensor of shape (1) that it may read on
#: the device only: a recorded step must not ask the host.
Step = Callable[[Tensor], None]


class Recorder:
    """Takes a step many times.

    A recorded step always runs over the same memory and costs the host one launch; its number is
    counted on the device. On the CPU, and where shapes depend on the data, the same steps run
    without being recorded.

    Args:
        optimizer: What the steps may change, if anything: warming up leaves no trace in it.
        sums: What the steps add to, on the device where they run.
        fixed_shapes: Whether shapes do not depend on the data.
    """

    def __init__(self, optimizer: Optimizer | None, sums: Tensor, fixed_shapes: bool) -> None:
        self.optimizer = optimizer
        self.parameters: list[Tensor] = optimizer.param_groups[0]["params"] if optimizer else []
        self.number = torch.zeros(1, dtype=torch.long, device=sums.device)
        self.sums = sums
        self.records = fixed_shapes and sums.is_cuda
        self.recorded: dict[str, torch.cuda.CUDAGraph] = {}

    def forget(self, fixed_shapes: bool) -> None:
        """Record every step again, if at all: it runs over other memory."""
        self.recorded.clear()
        self.records = fixed_shapes and self.sums.is_cuda

    def record(self, name: str, step: Step) -> None:
        """Record the step of this name, unless it is: meanwhile the device does nothing else."""
        if self.records and name not in self.recorded:
            self.recorded[name] = self._record(step)

    def run(self, name: str, step: Step, times: int, more: bool = False) -> Tensor:
        """Take the step of this name so many times, numbered from 0; what they added up."""
        self.record(name, step)
        self.number.zero_()
        if not more:
            self.sums.zero_()
        for _ in range(times):
            self.recorded[name].replay() if self.records else self._take(step)
        return self.sums

    def _take(self, step: Step) -> None:
        step(self.number)
        self.number += 1

    def _record(self, step: Step) -> torch.cuda.CUDAGraph:
        before = [
            (value.detach().clone(), {k: moment.clone() for k, moment in self._moments(value)})
            for value in self.parameters
        ]
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(2):
                self.number.zero_()
                self._take(step)
        torch.cuda.current_stream().wait_stream(side)
        self.number.zero_()
        graph = torch.cuda.CUDAGraph()
        was_on = gc.isenabled()
        gc.disable()  # what Python's collector frees on the device would end the recording
        try:
            with torch.cuda.graph(graph):
                self._take(step)
        finally:
            if was_on:
                gc.enable()
        self._put_back(before)
        return graph

    @torch.no_grad()
    def _put_back(self, before: list[tuple[Tensor, dict[str, Tensor]]]) -> None:
        for value, (old, moments) in zip(self.parameters, before, strict=True):
            value.copy_(old)
            for key, moment in self._moments(value):
                moment.copy_(moments[key]) if moments else moment.zero_()

    def _moments(self, value: Tensor) -> list[tuple[str, Tensor]]:
        return [*self.optimizer.state.get(value, {}).items()] if self.optimizer else []
