"""What a recorded step may not do: ask the host for a value, or let values decide shapes.

:func:`check` takes the step that a GPU would take, in a process of its own: Triton's kernels run
under its interpreter, and every tensor says that it lies on a GPU.
"""

import os
import subprocess
import sys
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

#: Operators that read a value on the host, or whose results are as many as the data has.
REFUSED = {
    "_local_scalar_dense",
    "nonzero",
    "masked_select",
    "_unique2",
    "unique_dim",
    "unique_consecutive",
    "bincount",
    "repeat_interleave",
}


class FixedShapes(TorchDispatchMode):
    """Refuses what a recorded step may not do, and notes which operators made which shapes."""

    def __init__(self) -> None:
        super().__init__()
        self.made: list[tuple[Any, ...]] = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        name, masks = func.overloadpacket.__name__, (torch.bool, torch.uint8)
        by_mask = name in ("index", "index_put", "index_put_") and any(
            index is not None and index.dtype in masks for index in args[1]
        )
        assert name not in REFUSED, f"{name} asks the host"
        assert not by_mask, f"{name} by a mask asks the host"
        found = func(*args, **(kwargs or {}))
        shapes = [tuple(x.shape) for x in tree_leaves(found) if isinstance(x, Tensor)]
        self.made.append((str(func), *shapes))
        return found


def check(pool: str, edges: bool = False) -> None:
    """See that a training step with this pooling could be recorded, with features of edges or none.

    Two batches that have little in common but their capacity must make the same shapes, and have
    the gradients that they have on the CPU.
    """
    pytest.importorskip("triton", reason="needs triton, which has no build for this machine")
    done = subprocess.run(
        [sys.executable, __file__, pool, "use" if edges else "ignore"],
        env={**os.environ, "TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=1800,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def _steps(pool: str, edges: str) -> None:
    from engine_cases import graphs_with_noise, tell_edges
    from kernel_cases import patch_once
    from lookhops.core.options import Protocol
    from lookhops.nn import Architecture
    from lookhops.ops.gpu import available
    from lookhops.sources.splits import split
    from lookhops.tasks import task_of
    from lookhops.training import batches as capacity
    from lookhops.training.stacked import StackedEngine

    patch_once()
    capacity.NODE_STEP = capacity.EDGE_STEP = 8  # the interpreter takes long for padding too
    graphs = tell_edges(graphs_with_noise())
    seeds, protocol = (1, 2), Protocol(seeds=(1, 2), batch_size=3)
    architecture = Architecture(pool=pool, hidden=8, layers=3, edges=edges)
    splits = [split(graphs, seed) for seed in seeds]
    rest = splits, seeds, architecture, protocol, torch.device("cpu")
    engine = StackedEngine(graphs, task_of(graphs), *rest)
    engine._reserve(engine.plans["train"])
    batches = engine.plans["train"][:, :2].unbind(1)
    plain = [_gradients(engine, index) for index in batches]
    available.cache_clear()
    torch.cuda.is_available = lambda: True
    torch.Tensor.is_cuda = property(lambda self: True)
    made = []
    for index, expected in zip(batches, plain, strict=True):
        with FixedShapes() as mode:
            found = _gradients(engine, index)
        torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-5)
        made.append(mode.made)
    assert made[0] == made[1]


def _gradients(engine: Any, index: Tensor) -> dict[str, Tensor]:
    """What the training step of a batch, shape (members, size), gives for each weight."""
    weights = engine.stack.now
    given = index, engine.capacity, weights, engine.feed, engine.key
    output, target, real, _ = engine._outputs(*given)
    losses, _ = engine.task.losses(output, target, engine.fitted, real)
    found = torch.autograd.grad(losses.sum(), list(weights.values()), allow_unused=True)
    pairs = zip(weights, found, strict=True)
    return {name: grad for name, grad in pairs if grad is not None}


if __name__ == "__main__":
    _steps(*sys.argv[1:])
