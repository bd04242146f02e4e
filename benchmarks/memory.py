"""Peak memory of one training step of LiCheb and of PyG's ChebConv, hop by hop.

LOOKHOPS_DATA names the folder of NCI1.zip. A batch of 256 graphs goes through a hidden layer of 128
channels, forward and backward. Peak: every allocation and release that PyTorch's CPU allocator
reports to its profiler, added up in order; the highest sum, above what lay there before the step.
Saved: the tensors that the forward pass keeps for the backward pass, each counted once, without
parameters and input.
"""

import os
import sys
from collections.abc import Callable
from pathlib import Path

import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor, nn
from torch.profiler import ProfilerActivity, profile
from torch_geometric.data import Batch
from torch_geometric.nn import ChebConv

import lookhops
from lookhops.nn import LiChebConv

GRAPHS, CHANNELS, MEGABYTE = 256, 128, 2**20


def peak_of(step: Callable[[], None]) -> int:
    """The most bytes that were allocated at once while ``step`` ran."""
    step()  # what is allocated once and kept belongs to no step
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        step()
    assert profiler.profiler is not None
    events = profiler.profiler.kineto_results.events()
    changes = [event for event in events if event.name() == "[memory]"]
    changes.sort(key=lambda event: event.start_ns())
    now = highest = 0
    for event in changes:
        now += event.nbytes()
        highest = max(highest, now)
    return highest


def saved_by(layer: nn.Module, x: Tensor, edge_index: Tensor) -> int:
    """Bytes that the forward pass keeps for the backward pass, beside parameters and input."""
    given = {x.data_ptr(), edge_index.data_ptr(), *(p.data_ptr() for p in layer.parameters())}
    sizes: dict[int, int] = {}

    def note(tensor: Tensor) -> Tensor:
        if tensor.data_ptr() not in given:
            sizes[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        out = layer(x, edge_index)
    del out
    return sum(sizes.values())


def training_step(layer: nn.Module, x: Tensor, edge_index: Tensor) -> Callable[[], None]:
    upstream = torch.randn(len(x), CHANNELS)

    def step() -> None:
        x.grad = None
        layer.zero_grad()
        layer(x, edge_index).backward(upstream)
        x.grad = None
        layer.zero_grad()

    return step


def main() -> None:
    if not (Path(os.environ.get("LOOKHOPS_DATA", "")) / "NCI1.zip").is_file():
        sys.exit("memory.py: set LOOKHOPS_DATA to a folder with NCI1.zip")
    torch.manual_seed(0)
    graphs = lookhops.load("NCI1")
    graphs = graphs[torch.randperm(len(graphs))[:GRAPHS]]
    edge_index = Batch.from_data_list(graphs.to_pyg()).edge_index
    x = torch.randn(graphs.num_nodes, CHANNELS, requires_grad=True)
    # The order of the edges, and of the edges turned round, is NumPy's memory: not in the events.
    indices = 2 * 4 * (graphs.num_edges + graphs.num_nodes)

    table = Table(
        title=f"NCI1, {GRAPHS} graphs: {graphs.num_nodes:,} nodes, {graphs.num_edges:,} edges, "
        f"{CHANNELS} channels; megabytes",
        title_justify="left",
    )
    for heading in ("k", "ChebConv peak", "LiCheb peak", "of it", "ChebConv saved", "LiCheb saved"):
        table.add_column(heading, justify="right")
    for k in range(1, 9):
        theirs, ours = ChebConv(CHANNELS, CHANNELS, k + 1), LiChebConv(CHANNELS, CHANNELS, k)
        peak = peak_of(training_step(theirs, x, edge_index))
        mine = peak_of(training_step(ours, x, edge_index)) + indices
        saved = [saved_by(layer, x, edge_index) for layer in (theirs, ours)]
        sizes = [f"{size / MEGABYTE:.1f}" for size in (peak, mine, *saved)]
        table.add_row(str(k), *sizes[:2], f"{mine / peak:.0%}", *sizes[2:])
    Console(width=100).print(table)


if __name__ == "__main__":
    main()
