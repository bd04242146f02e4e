"""Every Triton kernel against the few lines of PyTorch that it stands for, on a GPU."""

import pytest

from kernel_cases import LARGE, SMALL

CASES = {name: case for room in (*SMALL.values(), LARGE) for name, case in room.items()}


@pytest.mark.parametrize("name", CASES)
def test_kernels_are_their_plain_lines(name):
    CASES[name]("cuda")
