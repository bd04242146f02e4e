"""Texts in flat arrays against lists of texts."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookhops.graphs.indexing import Texts, join_texts

TEXTS = st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")))


@given(TEXTS, TEXTS, st.data())
def test_texts_are_a_list(texts, others, data):
    packed = Texts.of(texts)
    assert (len(packed), packed.tolist()) == (len(texts), texts)
    assert packed.is_sound(len(texts))
    assert list(packed) == [packed[i] for i in range(len(texts))] == texts
    first, after = sorted(data.draw(st.integers(0, len(texts))) for _ in range(2))
    assert packed.cut(first, after).tolist() == texts[first:after]
    numbers = st.lists(st.integers(0, len(texts) - 1)) if texts else st.just([])
    index = data.draw(numbers)
    taken = packed.take(np.array(index, dtype=np.int64))
    assert taken.tolist() == [texts[i] for i in index]
    assert taken.is_sound(len(index))
    assert join_texts([packed, Texts.of(others)]).tolist() == texts + others


def test_what_is_shown_of_them():
    assert repr(Texts.of(["a", "b"])) == "Texts('a', 'b')"
    assert repr(Texts.of(list("abcd"))) == "Texts('a', 'b', 'c', ... (4 texts))"


def test_what_is_no_character_does_no_harm():
    assert Texts.of(["a\0b", "\ud800", ""]).tolist() == ["ab", "?", ""]


@pytest.mark.parametrize(
    ("data", "ptr"),
    [
        (np.zeros(2, np.uint8), [0, 1]),
        (np.zeros(2, np.uint8), [0, 3, 2]),
        (np.zeros(2, np.uint8), [0, 1, 3]),
        (np.zeros(2, np.uint8), [1, 1, 2]),
        (np.zeros(2, np.int8), [0, 1, 2]),
        (np.zeros((2, 1), np.uint8), [0, 1, 2]),
    ],
)
def test_arrays_that_are_no_texts_are_known(data, ptr):
    assert not Texts(data, np.array(ptr)).is_sound(2)
