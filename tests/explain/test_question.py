"""What several networks answer together, and what each one's shares count for in it."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from lookhops.explain.question import log_odds, together, weights_of


def test_log_odds_are_those_of_the_probability():
    logits = torch.randn(5, 4, dtype=torch.float64)
    classes = torch.tensor([0, 3, 1, 2, 2])
    p = logits.softmax(1).gather(1, classes[:, None])[:, 0]
    torch.testing.assert_close(log_odds(logits, classes), p.logit())


@given(st.integers(0, 2**16), st.integers(1, 5), st.booleans())
def test_weighed_differences_add_up_to_that_of_all(seed, networks, classes):
    torch.manual_seed(seed)
    start, end = 4 * torch.randn(2, networks, 3, dtype=torch.float64)
    weight = weights_of(start, end, classes)
    found = (weight * (end - start)).sum(0)
    wanted = together(end, classes) - together(start, classes)
    torch.testing.assert_close(found, wanted, atol=1e-4, rtol=1e-3)


def test_together_is_the_mean_probability_even_where_it_rounds():
    u = torch.tensor([[2.0, 60.0, -800.0], [-1.0, 58.0, -700.0]], dtype=torch.float64)
    wanted = u[:, 0].sigmoid().mean().logit()
    found = together(u, True)
    torch.testing.assert_close(found[0], wanted)
    assert 58 < found[1] < 60
    assert -710 < found[2] < -699
