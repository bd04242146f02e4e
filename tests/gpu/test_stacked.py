"""The stacked engine on a GPU, where its steps are recorded, against the plain one on the CPU."""

# ruff: noqa: F811  fixtures are arguments

import pytest
import torch

from engine_cases import EXACT, StackedCases, exactly, noisy, told  # noqa: F401  the cases' graphs
from lookhops.nn import Architecture
from lookhops.ops import light_layer
from lookhops.training import batches as capacity


class TestStackedOnGpu(StackedCases):
    device = torch.device("cuda")

    @pytest.mark.parametrize("edges", ["ignore", "use"])
    def test_steps_with_links_are_recorded_unless_these_find_no_room(
        self, told, edges, monkeypatch
    ):
        architecture = Architecture(pool="asap", hidden=16, layers=2, ratio=0.7, edges=edges)
        stack = self.stack(told, architecture, exactly(seeds=(11, 22)))
        losses = [(stack.epoch(number), stack.validate()[0]) for number in (1, 2)]
        assert set(stack.recorder.recorded) == {"train", "val"}
        monkeypatch.setattr(capacity, "MOST_PAIRS", 0)
        other = self.stack(told, architecture, exactly(seeds=(11, 22)))
        again = [(other.epoch(number), other.validate()[0]) for number in (1, 2)]
        assert not other.recorder.recorded
        torch.testing.assert_close(losses, again, **EXACT)

    @pytest.mark.parametrize("conv", ["licheb", "limixhop"])
    @pytest.mark.parametrize("pool", ["none", "lookhops", "topk"])
    def test_layers_in_one_kernel_as_for_many_graphs(self, noisy, conv, pool, monkeypatch):
        monkeypatch.setattr(light_layer, "FEWEST", 1)
        self.test_a_stack_is_each_seed_in_the_plain_engine(noisy, conv, pool)
