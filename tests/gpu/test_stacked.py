"""The stacked engine on a GPU, where its steps are recorded, against the plain one on the CPU."""

import torch

from engine_cases import StackedCases, noisy, told  # noqa: F401  the cases' graphs


class TestStackedOnGpu(StackedCases):
    device = torch.device("cuda")
