"""Options that several commands share: a group of them is one dataclass, written once."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import is_dataclass
from functools import wraps
from typing import Any, get_type_hints


def with_groups(command: Callable[..., None]) -> Callable[..., None]:
    """A command for Typer, in which a parameter whose type is a dataclass stands for its fields.

    Each field is an option, with the field's annotation and default; the command itself gets the
    dataclass.
    """
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, Any] = {name: hint for name, hint in hints.items() if is_dataclass(hint)}
    fields = {name: get_type_hints(group, include_extras=True) for name, group in groups.items()}
    kind = inspect.Parameter.KEYWORD_ONLY  # Typer gives all of them by name
    parameters: list[inspect.Parameter] = []
    for name, parameter in inspect.signature(command).parameters.items():
        if name not in groups:
            parameters.append(parameter.replace(annotation=hints[name], kind=kind))
            continue
        for field, annotation in fields[name].items():
            default = getattr(groups[name], field)
            parameters.append(
                inspect.Parameter(field, kind, default=default, annotation=annotation)
            )

    @wraps(command)
    def run(**values: Any) -> None:
        for name, group in groups.items():
            values[name] = group(**{field: values.pop(field) for field in fields[name]})
        command(**values)

    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run
