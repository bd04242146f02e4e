"""The Triton kernels of the hops, under Triton's interpreter."""

import ctypes
import sys

import pytest
import torch

from kernel_cases import interpret
from lookhops.ops import kernels


def test_kernels_are_their_plain_lines():
    interpret("hops")


@pytest.mark.parametrize("driver", [True, False])
def test_triton_is_loaded_where_a_driver_is(monkeypatch, driver):
    def load(name):
        if not driver:
            raise OSError(name)

    monkeypatch.setattr(ctypes, "CDLL", load)
    monkeypatch.setattr(torch.version, "hip", None)
    monkeypatch.delitem(sys.modules, "triton", raising=False)
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    assert kernels._wanted() is driver
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    assert kernels._wanted()
