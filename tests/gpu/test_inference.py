"""Networks that are asked together on a GPU, where their step is recorded."""

import numpy as np
import torch

from engine_cases import noisy, told  # noqa: F401  the cases' graphs
from inference_cases import InferenceCases
from lookhops.neighbourhoods import SimilarityIndex
from lookhops.sources.hop_tasks import hop_task


class TestOnGpu(InferenceCases):
    device = torch.device("cuda")


def test_the_most_similar_graph_is_as_similar_as_on_the_cpu():
    graphs = hop_task(2, size=120, seed=1)
    index = SimilarityIndex.of(graphs[:90])
    assert np.array_equal(index.nearest(graphs.to("cuda")), index.nearest(graphs))
