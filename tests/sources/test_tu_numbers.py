"""Tables of numbers: read exactly, and refused as plain Python would refuse them."""

from io import BytesIO

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lookhops import LookHopsError
from lookhops.sources import tu_files
from lookhops.sources.tu_files import read_numbers


@given(
    st.lists(
        st.tuples(*[st.floats(allow_nan=False, allow_infinity=False)] * 3), min_size=1, max_size=5
    ),
    st.sampled_from([",", ", ", " ,\t"]),
    st.sampled_from(["\n", "\r\n"]),
)
def test_numbers_are_read_exactly(rows: list, comma: str, end: str):
    text = "".join(comma.join(map(repr, row)) + end for row in rows).encode()
    assert np.array_equal(read_numbers(BytesIO(text), "here", np.float64), np.array(rows))


@example(b"+")
@example(b"1, ,2")
@example(b"\r\n0")
@example(b"1\n-\n2")
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
            found = read_numbers(BytesIO(text), "here", kind)
        except LookHopsError:
            assert not fine
        else:
            assert fine
            assert np.array_equal(found, expected)


@given(
    st.lists(st.integers(-9, 9) | st.none(), max_size=40),
    st.integers(1, 30),
    st.sampled_from(["\n", "\r\n", " \n"]),
)
def test_pieces_change_nothing(lines: list, piece: int, end: str):
    """Blank lines at the end are left out, others are refused, wherever a piece ends."""
    text = "".join(f"{'' if line is None else line}{end}" for line in lines).encode()
    while lines and lines[-1] is None:
        lines.pop()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tu_files, "PIECE", piece)
        if lines and None not in lines:
            found = read_numbers(BytesIO(text), "here", np.int64)
            assert found[:, 0].tolist() == lines
        else:
            with pytest.raises(LookHopsError, match="here"):
                read_numbers(BytesIO(text), "here", np.int64)


def test_no_more_is_read_than_may_be():
    """The rest of an endless file is left alone; so are blanks and lines without an end."""

    class Endless:
        def __init__(self, content: bytes) -> None:
            self.content, self.given = content, 0

        def read(self, size: int) -> bytes:
            self.given += size
            assert self.given <= 10 * tu_files.PIECE
            return self.content * (size // len(self.content))

        def readline(self, size: int) -> bytes:
            return self.content[:1] if self.content[-1:] == b"\n" else self.read(size)

    assert len(read_numbers(Endless(b"1\n"), "here", np.int64, most=5)) > 5
    for content in (b"\n", b"1", b" ", b"1,"):
        with pytest.raises(LookHopsError, match="here, line 1"):
            read_numbers(Endless(content), "here", np.int64)
