"""What PyG's edge_index must be, and what is said where it is not."""

from __future__ import annotations

import torch
from torch import Tensor

from lookhops.core.errors import LookHopsError


def check_edge_index(edge_index: Tensor, num_nodes: int, edge_weight: Tensor | None) -> None:
    """Refuse what is no ``edge_index`` of so many nodes, or weights of other edges."""
    if not isinstance(edge_index, Tensor) or edge_index.layout != torch.strided:
        kind = edge_index.layout if isinstance(edge_index, Tensor) else type(edge_index).__name__
        raise LookHopsError(f"edge_index must be a dense tensor of shape (2, e), not {kind}.")
    if edge_index.dim() != 2 or edge_index.shape[0] != 2:
        raise LookHopsError(f"edge_index must have shape (2, e), not {tuple(edge_index.shape)}.")
    if edge_index.dtype not in (torch.int64, torch.int32):
        raise LookHopsError(f"edge_index must hold 64- or 32-bit integers, not {edge_index.dtype}.")
    if edge_weight is not None and edge_weight.numel() != edge_index.shape[1]:
        raise LookHopsError(
            f"There are {edge_index.shape[1]} edges but {edge_weight.numel()} edge weights."
        )
    # Reading the values would wait for a GPU, and cannot be compiled.
    if edge_index.numel() and edge_index.device.type == "cpu" and not torch.compiler.is_compiling():
        low, high = (int(end) for end in edge_index.aminmax())
        if low < 0 or high >= num_nodes:
            raise LookHopsError(
                f"edge_index names node {low if low < 0 else high}, "
                f"but x has {num_nodes} rows, numbered 0 to {num_nodes - 1}."
            )
