"""Tables of numbers: read exactly, and refused as plain Python would refuse them."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lookhops import LookHopsError
from lookhops.datasets.number_files import parse_table


@given(
    st.lists(
        st.tuples(*[st.floats(allow_nan=False, allow_infinity=False)] * 3), min_size=1, max_size=5
    ),
    st.sampled_from([",", ", ", " ,\t"]),
    st.sampled_from(["\n", "\r\n"]),
)
def test_numbers_are_read_exactly(rows: list, comma: str, end: str):
    text = "".join(comma.join(map(repr, row)) + end for row in rows).encode()
    assert np.array_equal(parse_table(text, "here", np.float64), np.array(rows))


@given(st.binary(max_size=12) | st.text("0123456789-,. \n\rea", max_size=12).map(str.encode))
def test_both_passes_agree_on_any_text(text: bytes):
    """What the fast pass accepts, plain Python accepts, with the same numbers."""
    for kind, convert in ((np.int64, int), (np.float64, float)):
        try:
            lines = text.rstrip().decode("utf-8-sig").split("\n")
            expected = np.array([[convert(field) for field in line.split(",")] for line in lines])
            fine = bool(np.isfinite(expected.astype(np.float64)).all())
        except (ValueError, OverflowError):
            fine = False
        try:
            found = parse_table(text, "here", kind)
        except LookHopsError:
            assert not fine
        else:
            assert fine
            assert np.array_equal(found, expected)
