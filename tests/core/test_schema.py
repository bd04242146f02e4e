"""Formats read through types: what fits comes back, what does not is one sentence."""

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookhops.core.errors import LookHopsError
from lookhops.core.schema import AtLeast, Count, Share, UnknownEntry, decode, located, read
from lookhops.nn import Architecture
from lookhops.training import Protocol


@dataclass(frozen=True)
class Inner:
    kind: ClassVar[Mapping[str, object]] = {}  # no entry
    share: Share
    count: Count = 3


@dataclass(frozen=True)
class Format:
    name: str
    right: bool
    inner: Sequence[Inner]
    size: tuple[int, float]
    lengths: Mapping[str, float]
    maybe: float | None = None
    rest: Any = None
    tags: tuple[str, ...] = field(default=())


GOOD = {
    "name": "a",
    "right": True,
    "inner": [{"share": 1}, {"share": 0.5, "count": 0}],
    "size": [1, 2.5],
    "lengths": {"x": 1},
}


def test_what_fits_comes_back():
    found = read(Format, {**GOOD, "maybe": None, "rest": [1, {}], "tags": ["t"]})
    assert found.inner == (Inner(1), Inner(0.5, 0))
    assert (found.size, found.lengths, found.tags) == ((1, 2.5), {"x": 1}, ("t",))
    assert (found.maybe, found.rest) == (None, [1, {}])


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"name": 5}, "name is 5"),
        ({"name": None}, "name is null"),
        ({"right": 1}, "right is 1"),
        ({"inner": {}}, "inner is {}"),
        ({"inner": [{}]}, "inner[0].share "),
        ({"inner": [{"share": 0}, {"share": 1.5}]}, "inner[1].share is 1.5"),
        ({"inner": [{"share": 0, "count": True}]}, "inner[0].count is true"),
        ({"inner": [{"share": 0, "count": -1}]}, "inner[0].count is -1"),
        ({"size": [1]}, "size is [1]"),
        ({"size": [1.5, 2]}, "size[0] is 1.5"),
        ({"lengths": {"x": float("nan")}}, "lengths.x is NaN"),
        ({"maybe": "text"}, 'maybe is "text"'),
        ({"rest": 1, "more": 2}, "more "),
    ],
)
def test_an_entry_that_does_not_fit_is_named_with_its_value(changes, named):
    with pytest.raises(LookHopsError) as caught:
        read(Format, {**GOOD, **changes})
    assert str(caught.value).startswith(named)


def test_paths_and_what_a_class_refuses():
    with pytest.raises(LookHopsError, match=r"^runs\[3\]\.name"):
        read(Format, {}, "runs[3]")
    with pytest.raises(LookHopsError, match=r"^protocol: patience"):
        read(Protocol, {"patience": 0}, "protocol")
    with (
        pytest.raises(UnknownEntry, match=r"^file: architecture\.later"),
        located("file"),
    ):
        read(Architecture, {"later": 1}, "architecture")
    with pytest.raises(LookHopsError, match=r"^metrics"):
        decode("{", "metrics")


def test_entries_at_least():
    types = AtLeast({"a": int, "b?": str, "c": AtLeast({"d": float})})
    read(types, {"a": 1, "c": {"d": 2.5, "e": None}, "more": 1})
    read(types, {"a": 1, "b": "text", "c": {"d": 2}})
    for value, entry in (
        ({"a": 1}, "c"),
        ({"a": 1, "c": {}}, r"c\.d"),
        ({"a": 1, "b": 2, "c": {"d": 1}}, "b"),
        ([], "the content"),
    ):
        with pytest.raises(LookHopsError, match=f"^{entry} is "):
            read(types, value)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=5,
)


@given(st.sampled_from([*GOOD, "maybe", "tags"]), JSON)
def test_anything_is_read_or_refused(name, value):
    with suppress(LookHopsError):  # and nothing else is raised
        found = read(Format, {**GOOD, name: value})
        assert isinstance(found, Format)


def test_configurations_survive_json():
    for config in (Architecture(edge_ratio=0.5), Protocol(seeds=(1, 2), patience=3)):
        assert read(type(config), json.loads(json.dumps(asdict(config)))) == config
