"""The precision of training: types, products and layers, the same for every engine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

import torch


def dtype_of(precision: str) -> torch.dtype:
    """Type of the weights, the features and the losses."""
    return torch.float64 if precision == "float64" else torch.float32


@contextmanager
def dense_products(precision: str) -> Iterator[None]:
    """Dense products of the block round as the precision says; afterwards as before."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high" if precision == "tf32" else "highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def layers(precision: str, device: torch.device) -> AbstractContextManager[object]:
    """Layers that run in the block run in bfloat16 where the precision says so."""
    return torch.autocast(device.type, torch.bfloat16, enabled=precision == "bfloat16")
