"""What several parts answer together, and what each one's shares count for in it."""

from typing import Any

import torch
from hypothesis import given
from hypothesis import strategies as st

from lookhops.explain.question import Part, Together, log_odds

NOTHING: Any = None


def of_parts(*weights: float, temperature: float = 1.0) -> Together:
    return Together([Part(NOTHING, 11, w, 1.0) for w in weights], weights, temperature)


def test_log_odds_are_those_of_the_probability():
    logits = torch.randn(5, 4, dtype=torch.float64)
    classes = torch.tensor([0, 3, 1, 2, 2])
    p = logits.softmax(1).gather(1, classes[:, None])[:, 0]
    torch.testing.assert_close(log_odds(logits, classes), p.logit())


@given(st.integers(0, 2**16), st.lists(st.integers(1, 5), min_size=1, max_size=4), st.booleans())
def test_weighed_differences_add_up_to_that_of_all(seed, sizes, classes):
    """Seeds of several parts, which a temperature calibrates."""
    torch.manual_seed(seed)
    model = Together(
        [of_parts(*torch.rand(n).softmax(0).tolist(), temperature=1.5) for n in sizes],
        [1 / len(sizes)] * len(sizes),
    )
    start, end = 4 * torch.randn(2, len(model.leaves), 3, dtype=torch.float64)
    weight, first, last = model(start, end, classes)
    torch.testing.assert_close((weight * (end - start)).sum(0), last - first, atol=1e-4, rtol=1e-3)
    if not classes:
        assert torch.equal(weight, weight[:, :1].expand_as(weight))


def test_together_is_the_mean_probability_even_where_it_rounds():
    u = torch.tensor([[2.0, 60.0, -800.0], [-1.0, 58.0, -700.0]], dtype=torch.float64)
    wanted = (0.25 * u[0, 0].sigmoid() + 0.75 * u[1, 0].sigmoid()).logit()
    _, found, _ = of_parts(0.25, 0.75)(u, u, True)
    torch.testing.assert_close(found[0], wanted)
    assert 58 < found[1] < 60
    assert -710 < found[2] < -699
    _, calibrated, _ = of_parts(0.25, 0.75, temperature=2.0)(u, u, True)
    torch.testing.assert_close(calibrated, found / 2)
