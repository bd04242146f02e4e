"""The Triton kernels that lay out batches, under Triton's interpreter."""

from kernel_cases import interpret


def test_kernels_are_their_plain_lines():
    interpret("training")
