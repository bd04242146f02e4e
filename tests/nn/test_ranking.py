"""Which elements are the best of their segment, against a sorted list."""

from math import ceil

import torch
from hypothesis import given
from hypothesis import strategies as st

from lookhops.nn.level import top_of_each

#: Few values, so that there are ties; both zeros, both infinities, and floats of every size.
SCORES = st.sampled_from([0.0, -0.0, 1.0, -1.0, 1e-40, -1e-40, float("inf"), -float("inf")])
ELEMENTS = st.tuples(
    st.integers(0, 4), SCORES | st.floats(width=32, allow_nan=False), st.booleans()
)


@given(st.lists(ELEMENTS, max_size=20), st.floats(0.1, 1), st.booleans())
def test_top_of_each_equals_a_sorted_list(elements, ratio, masked):
    segment = torch.tensor([s for s, _, _ in elements], dtype=torch.long)
    for dtype in (torch.float32, torch.float64):
        score = torch.tensor([v for _, v, _ in elements], dtype=dtype)
        alive = torch.tensor([a for _, _, a in elements], dtype=torch.bool) if masked else None
        order, kept = top_of_each(score, segment, 5, ratio, alive)
        found = sorted(order[kept].tolist())
        expected = []
        for number in range(5):
            members = [
                i for i, (s, _, a) in enumerate(elements) if s == number and (a or not masked)
            ]
            members.sort(key=lambda i: -elements[i][1])
            expected += members[: ceil(len(members) * ratio - 1e-7)]
        dead_infinite = masked and any(v == -float("inf") for _, v, _ in elements)
        if not dead_infinite:  # a living node of score -inf ties with the dead
            assert found == sorted(expected)
        assert sorted(order.tolist()) == list(range(len(elements)))
