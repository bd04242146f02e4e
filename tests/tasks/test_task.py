"""How the values of a metric are written."""

from math import inf

import pytest

from lookhops.core.words import MINUS, NONE
from lookhops.tasks import Metric


def test_shares_are_written_in_per_cent():
    accuracy = Metric("accuracy", "accuracy")
    assert accuracy.written(0.7754) == "77.5 %"
    assert accuracy.written(0.7754, 0.0131) == "77.5 ± 1.3 %"
    assert accuracy.written(0.884, 0.929, joint=" to ") == "88.4 to 92.9 %"
    assert accuracy.written(None) == accuracy.written() == NONE


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ((0.53249, 0.0213), "0.532 ± 0.021"),
        ((12.34, 0.4), "12.3 ± 0.4"),
        ((12345.6, 78.9), "12,346 ± 79"),
        ((-0.25, 0.1), f"{MINUS}0.250 ± 0.100"),
        ((0.0,), "0.00"),
        ((inf,), "inf"),
    ],
)
def test_other_numbers_are_written_as_they_are(values, text):
    assert Metric("rmse", "RMSE", share=False).written(*values) == text
