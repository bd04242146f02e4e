"""Every Triton kernel against the few lines of PyTorch that it stands for, on a GPU."""

import pytest

from kernel_cases import LARGE, SMALL

CASES = {**SMALL["hops"], **SMALL["nn"], **LARGE}


@pytest.mark.parametrize("name", CASES)
def test_kernels_are_their_plain_lines(name):
    CASES[name]("cuda")
