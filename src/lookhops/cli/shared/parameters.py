"""Parameters of commands: the options of dataclasses, and a few that several commands have."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import is_dataclass, replace
from functools import wraps
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import typer

from lookhops.options import Architecture, Option, Protocol, options_of

Json = Annotated[bool, typer.Option("--json", help="Print JSON, and nothing else, on stdout.")]
Device = Annotated[str, typer.Option(help="cpu, cuda, or auto: a GPU where there is one.")]

#: Titles of panels in the help of commands.
NETWORK, TRAINING = "The network", "Training (defaults: the paper's)"
#: Parameters of commands that stand for the options of a dataclass.
Network = Annotated[Architecture, NETWORK]
Training = Annotated[Protocol, TRAINING]


def with_options(command: Callable[..., None]) -> Callable[..., None]:
    """A command for Typer, in which a parameter that is a dataclass stands for its options.

    Its type is ``Annotated[DATACLASS, PANEL]``; its default, or the dataclass's own, gives the
    defaults of the options. The command itself gets the dataclass. Where it has a parameter with
    the name of a field, that parameter is the option, and the field keeps its default.
    """
    hints = get_type_hints(command, include_extras=True)
    kind = inspect.Parameter.KEYWORD_ONLY  # Typer gives all of them by name
    groups: dict[str, tuple[Any, list[str]]] = {}
    parameters: list[inspect.Parameter] = []
    for name, parameter in inspect.signature(command).parameters.items():
        group, *panel = get_args(hints[name]) or (hints[name],)
        if not is_dataclass(group):
            parameters.append(parameter.replace(annotation=hints[name], kind=kind))
            continue
        config = hints[name]() if parameter.default is parameter.empty else parameter.default
        options = [option for option in options_of(config) if option.name not in hints]
        groups[name] = config, [option.name for option in options]
        parameters += [
            inspect.Parameter(
                option.name, kind, default=option.default, annotation=_annotation(option, *panel)
            )
            for option in options
        ]

    @wraps(command)
    def run(**values: Any) -> None:
        for name, (config, fields) in groups.items():
            values[name] = replace(config, **{field: values.pop(field) for field in fields})
        command(**values)

    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


def _annotation(option: Option, panel: str | None = None) -> Any:
    """What Typer reads of an option; a field that is annotated for Typer stays as it is."""
    if get_origin(option.type) is Annotated:
        return option.type
    flag = option.flag
    if option.type == bool | None:
        flag = f"{flag}/{flag.replace('--', '--no-', 1)}"
    shown = typer.Option(flag, help=option.help, min=option.least, rich_help_panel=panel)
    return Annotated[option.type, shown]
