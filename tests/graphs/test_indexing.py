"""Orders of numbers."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from lookhops.graphs.indexing import argsort_hashes, stable_argsort

NUMBERS = st.integers(-(2**63), 2**63 - 1)


@given(st.lists(NUMBERS, max_size=4), st.lists(st.integers(0, 3), max_size=60))
def test_hashes_are_ordered_as_by_a_stable_sort(known, chosen):
    keys = torch.tensor([known[i % len(known)] for i in chosen] if known else [], dtype=torch.int64)
    assert torch.equal(argsort_hashes(keys), stable_argsort(keys))


def test_of_many_equal_hashes_the_earlier_come_first():
    keys = torch.randint(-(2**62), 2**62, (500,))[torch.randint(0, 500, (20_000,))]
    assert torch.equal(argsort_hashes(keys), stable_argsort(keys))
