"""RDKit's two-dimensional descriptors of molecules, by name."""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from lookhops.core.arrays import Array
from lookhops.core.errors import LookHopsError

#: What ``descriptors`` may be: those that are cheap, all that RDKit has, or none.
CHOICES = ("fast", "all", "none")
#: Values are cut here: the information content of a large molecule reaches 1e30.
LARGEST = 1e4


def _speeds() -> dict[str, str]:
    text = (files("lookhops.sources.rdkit") / "descriptors.csv").read_text(encoding="utf-8")
    return dict(list(csv.reader(text.splitlines()))[1:])


#: Whether descriptors are ``fast`` or ``slow``, by name, whatever RDKit is here.
SPEEDS = _speeds()
#: Those that take at most about 0.02 ms a molecule on one core, 0.7 ms together; the others
#: (``qed``, ``BertzCT``, EState extremes, ...) take 3 ms. Measured on 300 drug-like molecules.
FAST = tuple(name for name, speed in SPEEDS.items() if speed == "fast")


def is_descriptor(name: str) -> bool:
    """Whether a feature is one of RDKit's descriptors, by its name."""
    return name in SPEEDS


def descriptor_names(choice: str = "fast") -> tuple[str, ...]:
    """The descriptors of a choice that this version of RDKit has.

    Args:
        choice: ``fast``, ``all`` or ``none``.
    """
    if choice not in CHOICES:
        raise LookHopsError(f"descriptors is one of {', '.join(CHOICES)}, not {choice!r}.")
    if choice == "none":
        return ()
    known = _functions()
    return tuple(name for name in (known if choice == "all" else FAST) if name in known)


def descriptors_of(molecule: Any, names: Sequence[str]) -> Array:
    """Descriptors of one of RDKit's molecules, float64, shape (names).

    A value that is not finite, or that RDKit fails to compute, is 0; none exceeds ±10,000.
    """
    functions = _functions()
    values = np.array([_value(functions[name], molecule) for name in names])
    return np.nan_to_num(values, nan=0.0, posinf=0.0, neginf=0.0).clip(-LARGEST, LARGEST)


@cache
def _functions() -> dict[str, Callable[[Any], float]]:
    """RDKit's descriptors by name, in its order."""
    try:
        from rdkit.Chem import Descriptors
    except ImportError as error:
        raise LookHopsError(
            "Descriptors of molecules need RDKit: pip install rdkit; or choose descriptors=none."
        ) from error
    return dict(Descriptors.descList)


def _value(function: Callable[[Any], float], molecule: Any) -> float:
    try:
        return float(function(molecule))
    except (ArithmeticError, RuntimeError, ValueError):  # of single odd molecules
        return np.nan
