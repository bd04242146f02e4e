"""Options as the fields of dataclasses: names, types, defaults, and the help in ``Args:``."""

from __future__ import annotations

import inspect
import re
from dataclasses import field, fields
from typing import Any, NamedTuple, get_origin, get_type_hints


class Option(NamedTuple):
    """A field of a configuration, as users meet it.

    Args:
        name: Of the field.
        type: Of its values.
        default: Its value where the user gives none.
        help: Its text in the ``Args:`` of the dataclass.
        flag: Its name on the command line, such as ``--lr``.
        least: The lowest number that it may be, if there is one.
    """

    name: str
    type: Any
    default: Any
    help: str
    flag: str
    least: float | None


def option(
    default: Any,
    *,
    flag: str | None = None,
    least: float | None = None,
    of: tuple[str, ...] = (),
) -> Any:
    """A field of a dataclass that has more to it than its name, its type and its default.

    Args:
        default: Its value where the user gives none.
        flag: On the command line, where it is not the field's name.
        least: The lowest number that it may be.
        of: The only kinds of sources that it is for (see :class:`Reading`).
    """
    return field(default=default, metadata={"flag": flag, "least": least, "of": of})


def options_of(config: Any) -> list[Option]:
    """The options of a configuration: its fields but the tuples, with its values as defaults."""
    types = get_type_hints(type(config), include_extras=True)
    texts: dict[str, str] = {}
    for kind in reversed(type(config).__mro__):
        texts |= argument_texts(kind)
    return [
        Option(
            own.name,
            types[own.name],
            getattr(config, own.name),
            texts.get(own.name, ""),
            own.metadata.get("flag") or f"--{own.name.replace('_', '-')}",
            own.metadata.get("least"),
        )
        for own in fields(config)
        if get_origin(types[own.name]) is not tuple
    ]


def argument_texts(of: Any) -> dict[str, str]:
    """The texts of the ``Args:`` in a docstring, by name, each on one line."""
    _, _, section = inspect.cleandoc(of.__doc__ or "").partition("\nArgs:\n")
    section = re.split(r"\n(?=\S)", section)[0]
    found = re.findall(r"^ {4}(\w+): (.*(?:\n {5,}.*)*)", section, re.MULTILINE)
    return {name: " ".join(text.split()) for name, text in found}
