"""Memory is kept where glibc can be told so, and the user has not chosen otherwise."""

import ctypes
import os
import sys

from lookhops.core.machine import LIMITS, keep_memory


def limits(monkeypatch, **environment):
    """What glibc is told, given the user's environment."""
    told = {}

    class Library:
        def mallopt(self, name, value):
            told[name] = value
            return 1

    for name in list(os.environ):
        if name.startswith("MALLOC_") or name == "GLIBC_TUNABLES":
            monkeypatch.delenv(name)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(ctypes, "CDLL", lambda name: Library())
    keep_memory()
    return told


def test_memory_is_kept_unless_the_user_has_chosen(monkeypatch):
    monkeypatch.setattr(sys, "platform", "linux")
    assert limits(monkeypatch) == LIMITS
    assert limits(monkeypatch, MALLOC_TRIM_THRESHOLD_="1") == {}
    assert limits(monkeypatch, GLIBC_TUNABLES="glibc.malloc.arena_max=1") == {}
    monkeypatch.setattr(sys, "platform", "darwin")
    assert limits(monkeypatch) == {}


def test_without_such_a_library_memory_is_as_it_was(monkeypatch):
    monkeypatch.setattr(sys, "platform", "linux")
    for failing in (OSError, AttributeError):

        def none(name, failing=failing):
            raise failing(name)

        monkeypatch.setattr(ctypes, "CDLL", none)
        keep_memory()
