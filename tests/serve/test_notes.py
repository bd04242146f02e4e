"""Warnings for who asked: our own, and of the thread that answers."""

import warnings
from concurrent.futures import ThreadPoolExecutor

import pytest

from lookhops.serve import inputs as module
from lookhops.serve.inputs import notes


@pytest.fixture(autouse=True)
def as_it_was(monkeypatch):
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)
    with warnings.catch_warnings():
        yield


def ours(text):
    warnings.warn_explicit(text, UserWarning, module.__file__, 1)


def test_a_thread_gets_its_own_warnings():
    with notes() as said, ThreadPoolExecutor(1) as other:
        ours("mine")
        other.submit(ours, "of another").result()
    assert said == ["mine"]


def test_what_libraries_say_of_themselves_is_not_for_who_asked():
    with notes() as said:
        warnings.warn("some process died unexpectedly", stacklevel=1)
        ours("a row is left out")
    assert said == ["a row is left out"]


def test_where_nobody_asked_a_warning_is_shown_as_always(recwarn):
    with notes():
        pass
    ours("of a thread of the service")
    assert [str(one.message) for one in recwarn] == ["of a thread of the service"]
