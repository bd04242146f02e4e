"""Which elements are the best of their segment, against a sorted list."""

from math import ceil, isfinite

import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.autograd import gradcheck, gradgradcheck

from batches import make_batch
from lookhops.ops import Adjacency
from lookhops.ops.batch import GraphBatch
from lookhops.ops.ranking import keep_top, nearness, top_of_each

#: Few values, so that there are ties; both zeros, both infinities, and floats of every size.
SCORES = st.sampled_from([0.0, -0.0, 1.0, -1.0, 1e-40, -1e-40, float("inf"), -float("inf")])
ELEMENTS = st.tuples(
    st.integers(0, 4), SCORES | st.floats(width=32, allow_nan=False), st.booleans()
)


def best(
    members: list[int], score: list[float], ratio: float, near: float, exact: bool
) -> list[int]:
    """The highest, and all within rounding of the last of them; or of these the earlier.

    Args:
        members: Who is asked, in order.
        score: Of everybody.
        ratio: The fraction that is kept.
        near: What is rounding, as a share of the largest finite score.
        exact: Whether no more are kept than the ratio says.
    """
    wanted = max(ceil(len(members) * ratio - 1e-7), 1)
    if not members:
        return []
    cut = sorted((score[i] for i in members), reverse=True)[wanted - 1]
    reach = near * max((abs(score[i]) for i in members if isfinite(score[i])), default=0)
    same = [i for i in members if cut - reach <= score[i] <= cut + reach]
    above = [i for i in members if score[i] > cut + reach]
    return above + (same[: wanted - len(above)] if exact else same)


@given(st.lists(ELEMENTS, max_size=20), st.floats(1e-9, 1), st.booleans(), st.booleans())
def test_top_of_each_equals_a_sorted_list(elements, ratio, masked, exact):
    segment = torch.tensor([s for s, _, _ in elements], dtype=torch.long)
    for dtype in (torch.float32, torch.float64):
        score = torch.tensor([v for _, v, _ in elements], dtype=dtype)
        alive = torch.tensor([a for _, _, a in elements], dtype=torch.bool) if masked else None
        order, kept = top_of_each(score, segment, 5, ratio, alive, exact=exact)
        found = sorted(order[kept].tolist())
        expected = []
        for number in range(5):
            members = [
                i for i, (s, _, a) in enumerate(elements) if s == number and (a or not masked)
            ]
            expected += best(members, score.tolist(), ratio, nearness(dtype), exact)
        assert found == sorted(expected)
        assert sorted(order.tolist()) == list(range(len(elements)))


def test_near_ties_beside_segments_where_nothing_counts():
    score = torch.tensor([0.9, 0.5, 0.5 + 1e-6])
    segment, alive = torch.tensor([0, 1, 1]), torch.tensor([False, True, True])
    for exact, expected in ((True, [1]), (False, [2, 1])):
        order, kept = top_of_each(score, segment, 2, 0.5, alive, exact=exact)
        assert order[kept].tolist() == expected


def test_what_does_not_count_is_never_kept():
    score, alive = torch.tensor([1.0, -torch.inf]), torch.tensor([False, True])
    order, kept = top_of_each(score, torch.zeros(2, dtype=torch.long), 1, 1.0, alive)
    assert order[kept].tolist() == [1]


@given(st.lists(ELEMENTS, min_size=1, max_size=20), st.floats(1e-9, 1))
def test_who_stays_is_the_same_without_an_order(elements, ratio):
    elements = sorted(elements, key=lambda element: element[0])  # as the graphs of a level
    segment = torch.tensor([s for s, _, _ in elements], dtype=torch.long)
    score = torch.tensor([v for _, v, _ in elements])
    links = Adjacency.of(torch.zeros(2, 0, dtype=torch.long), len(elements))
    level = GraphBatch(score[:, None], links, segment, 5)
    for size in (None, 3 * score.nan_to_num(posinf=0.5).abs() + 1):
        for exact in (False, True):
            order, kept = top_of_each(score, segment, 5, ratio, size=size, exact=exact)
            expected = torch.zeros_like(kept).scatter(0, order, kept)
            assert torch.equal(keep_top(level, score, ratio, size, exact), expected)


def test_kept_rows_have_the_gradient_of_index_select():
    batch = make_batch(0, dtype=torch.float64)
    level = batch.level()
    node = torch.rand(len(batch.x), generator=torch.Generator().manual_seed(0)) < 0.6
    adjacency = level.adjacency
    edge = node[adjacency.source.long()] & node[adjacency.target.long()]
    kept = node.nonzero().flatten()
    x = batch.x.clone().requires_grad_()
    torch.testing.assert_close(level.with_x(x).drop(node, edge, False).x, x[kept])
    assert gradcheck(lambda x: level.with_x(x).drop(node, edge, False).x, (x,))
    assert gradgradcheck(lambda x: level.with_x(x).drop(node, edge, False).x, (x,))
    none = torch.zeros_like(node)
    assert level.with_x(x).drop(none, torch.zeros_like(edge), False).x.shape == (0, 4)


def test_a_nan_of_either_sign_comes_first():
    negative = torch.tensor([-4194304], dtype=torch.int32).view(torch.float32)  # what 0 / 0 gives
    score = torch.cat((torch.tensor([1.0, -2.0]), negative, torch.tensor([torch.nan, 3.0])))
    order, _ = top_of_each(score, torch.zeros(5, dtype=torch.long), 1, 1.0)
    assert order.tolist() == [2, 3, 4, 0, 1]
