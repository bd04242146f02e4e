"""Steps that are recorded on a GPU: they ask the host for nothing, whatever the data."""

import pytest

from fixed_shapes import check


@pytest.mark.parametrize("pool", ["edge"])
def test_a_training_step_could_be_recorded(pool):
    check(pool, edges=True)
