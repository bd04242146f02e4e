"""The stacked engine on the CPU, where its steps are not recorded."""

import torch

from engine_cases import StackedCases, noisy, told  # noqa: F401  the cases' graphs


class TestStackedOnCpu(StackedCases):
    device = torch.device("cpu")
