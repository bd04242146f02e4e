"""Networks that are asked together on a GPU, where their step is recorded."""

import torch

from engine_cases import noisy, told  # noqa: F401  the cases' graphs
from inference_cases import InferenceCases


class TestOnGpu(InferenceCases):
    device = torch.device("cuda")
