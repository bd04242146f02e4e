"""The Triton kernels of the layers, under Triton's interpreter."""

from kernel_cases import interpret


def test_kernels_are_their_plain_lines():
    interpret("nn")
