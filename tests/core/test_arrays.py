import numpy as np
import pytest

from lookhops.core.arrays import resolving

NEAR = np.array([1_700_000_001.25, 1_700_000_003.0])


@pytest.mark.parametrize(
    ("values", "intervals", "text"),
    [
        (np.array([-3.14159265, 2.0]), None, "-3.14159"),
        (NEAR, None, "1700000001.25"),
        (NEAR[:1], NEAR[:1, None] + [[-4, 4]], "1700000001.25"),
        (NEAR[:1], np.array([[-np.inf, np.inf]]), "1700000001.25"),
        (np.array([0.0, np.nan]), None, "0"),
    ],
)
def test_numbers_have_the_digits_that_they_have(values, intervals, text):
    assert resolving(values, intervals) % values[0] == text


def test_digits_of_nothing():
    assert resolving(np.array([])) == "%.6g"
