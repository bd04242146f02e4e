"""The processes that train one model together, each on its share of every batch."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor

from lookhops.core.errors import LookHopsError

T = TypeVar("T")


class WorkerLost(LookHopsError):
    """Another worker ended, or the connection to it broke."""


class SaidByFirst(LookHopsError):
    """An error that the first worker has met and says itself."""


@dataclass(frozen=True)
class Workers:
    r"""The workers of a training, seen from one of them; by default it is alone.

    Every worker has all graphs and the same weights. Of each batch of :math:`b` graphs it takes a
    share, and the gradients are added up, so that all take the step of the whole batch:

    .. math::
        \nabla = \sum_r \frac{w_r}{\sum_s w_s} \nabla L_r

    with :math:`L_r` the mean loss over the share of worker :math:`r` and :math:`w_r` its weight.
    What is random follows from seeds, epochs and the numbers of nodes, not from the worker: the
    answer is that of one process within rounding.

    Args:
        rank: Number of this worker, from 0.
        count: How many there are.
    """

    rank: int = 0
    count: int = 1

    @classmethod
    def joined(cls) -> Workers:
        """Those of the present process group; alone where there is none."""
        if dist.is_available() and dist.is_initialized():
            return cls(dist.get_rank(), dist.get_world_size())
        return cls()

    @property
    def alone(self) -> bool:
        return self.count == 1

    @property
    def is_first(self) -> bool:
        """Whether this worker writes and speaks for all."""
        return self.rank == 0

    @property
    def recordable(self) -> bool:
        """Whether what workers tell each other can be part of a recorded step."""
        return self.alone or dist.get_backend() == "nccl"

    def share(self, index: Tensor) -> Tensor:
        """This worker's share of the graphs of batches, shape (..., b / workers)."""
        return index if self.alone else index[..., self.rank :: self.count]

    def add(self, *tensors: Tensor) -> None:
        if self.alone:
            return
        flat = torch.cat([tensor.detach().flatten() for tensor in tensors])
        with _others():
            dist.all_reduce(flat)
        with torch.no_grad():
            for tensor, summed in zip(
                tensors, flat.split([tensor.numel() for tensor in tensors]), strict=True
            ):
                tensor.copy_(summed.view_as(tensor))

    def add_gradients(self, parameters: Iterable[Tensor]) -> None:
        if not self.alone:
            self.add(*(value.grad for value in parameters if value.grad is not None))

    def any(self, here: bool) -> bool:
        if self.alone:
            return here
        found: list[Any] = [None] * self.count
        with _others():
            dist.all_gather_object(found, here)
        return any(found)

    def from_first(self, make: Callable[[], T]) -> T:
        """What ``make`` gives, or raises, at the first worker; the others do not call it."""
        if self.alone:
            return make()
        made: list[Any] = [None, None]
        failed: BaseException | None = None
        if self.is_first:
            try:
                made[0] = make()
            except LookHopsError as error:
                failed, made[1] = error, str(error)
        with _others():
            dist.broadcast_object_list(made, src=0)
        if failed is not None:
            raise failed
        if made[1] is not None:
            raise SaidByFirst(made[1])
        return made[0]


ALONE = Workers()


@contextmanager
def joining(device: str = "auto") -> Iterator[Workers]:
    """The workers that ``torchrun`` started, of which this process is one; else it is alone.

    Args:
        device: On which kind of device they train: each takes the GPU of its own number.
    """
    if int(os.environ.get("WORLD_SIZE", "1")) == 1 or "RANK" not in os.environ:
        yield ALONE
        return
    on_gpu = torch.cuda.is_available() and not device.startswith("cpu")
    if on_gpu:
        local, here = int(os.environ.get("LOCAL_RANK", "0")), torch.cuda.device_count()
        if local >= here:
            raise LookHopsError(
                f"Worker {local} of this machine has no GPU of its own: there are {here}; start "
                f"torchrun with --nproc-per-node {here}."
            )
        torch.cuda.set_device(local)
    with _others():
        dist.init_process_group("nccl" if on_gpu else "gloo")
    yield Workers.joined()
    dist.destroy_process_group()  # not after an error, where it may wait for one that is gone


@contextmanager
def _others() -> Iterator[None]:
    try:
        yield
    except LookHopsError:
        raise
    except RuntimeError as error:
        raise WorkerLost(
            "Another worker of this training was lost: it ended, or does not answer. The state "
            "after the last epoch that was written is kept; the same command with --resume goes on."
        ) from error
