"""Attributes that are computed when first wanted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

import torch

Value = TypeVar("Value")


class cached(Generic[Value]):
    """As :func:`functools.cached_property`, for tensors that are kept across calls of a layer.

    ``cached_property`` takes a lock before Python 3.12, which ``torch.compile`` cannot follow. And
    a tensor that was first computed in inference mode could never be used in training.
    """

    def __init__(self, compute: Callable[[Any], Value]) -> None:
        self.compute = compute
        self.name = compute.__name__
        self.__doc__ = compute.__doc__

    def __get__(self, owner: object | None, kind: type) -> Value:
        if owner is None:
            return self  # type: ignore[return-value]  # asked of the class, for its docstring
        value = outside_inference(lambda: self.compute(owner))
        setattr(owner, self.name, value)  # found before this descriptor from now on
        return value


def outside_inference(compute: Callable[[], Value]) -> Value:
    """What ``compute`` gives, as tensors that training can use too."""
    if torch.compiler.is_compiling() or not torch.is_inference_mode_enabled():
        return compute()
    with torch.inference_mode(False):
        return compute()
