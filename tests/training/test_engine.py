"""What engines share."""

import pytest
import torch

from lookhops.core.errors import LookHopsError
from lookhops.nn import Architecture
from lookhops.sources.splits import split
from lookhops.tasks import task_of
from lookhops.training import Protocol
from lookhops.training.engine import EagerEngine
from lookhops.training.stacked import StackedEngine


@pytest.mark.parametrize("kind", [EagerEngine, StackedEngine])
def test_a_state_of_another_version_is_refused(tasks, kind):
    rest = Architecture(hidden=4, layers=1), Protocol(seeds=(11,)), torch.device("cpu")
    engine = kind(tasks, task_of(tasks), [split(tasks, 11)], [11], *rest)
    old = {key.removeprefix("11."): value for key, value in engine.state().items()}
    with pytest.raises(LookHopsError, match=r"seed 11.*--overwrite"):
        engine.restore(old)
