"""Parameters of commands: those of the function, and the options of dataclasses that it takes."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import is_dataclass, replace
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import typer

from lookhops.core.options import Architecture, Protocol
from lookhops.core.schema import Option, argument_texts, options_of

Json = Annotated[bool, typer.Option("--json", help="Print JSON, and nothing else, on stdout.")]


def _load_plugins(paths: list[Path] | None) -> list[Path] | None:
    for path in paths or ():
        from lookhops.nn.registry import load_plugin

        load_plugin(path)
    return paths


#: Files with layers of the user's own, of every command that makes or loads a network. They have
#: been run when the command begins.
Plugins = Annotated[
    list[Path] | None,
    typer.Option(
        "--plugin",
        metavar="FILE.py",
        help="A Python file that registers layers of your own; it is run. May be given again.",
        show_default=False,
        callback=_load_plugins,
    ),
]

#: Parameters of commands that stand for the options of a dataclass, in a panel with this title.
Network = Annotated[Architecture, "The network"]
Training = Annotated[Protocol, "Training and splits"]
#: What commands begin with: the paper's protocol, but classes are split in proportion.
AUTO = Protocol(split="auto")
#: What options mean that stand in several commands; a docstring there need not say it again.
SHARED_TEXTS = {
    "address": "Of a Ray cluster: auto or HOST:PORT; by default one on this machine.",
    "coverage": "Probability with which a set or an interval holds the truth.",
    "device": "cpu, cuda, or auto: a GPU where there is one.",
    "precision": argument_texts(Protocol)["precision"],
}


def with_options(command: Callable[..., None]) -> Callable[..., None]:
    """A command for Typer, with the help of its docstring and of the dataclasses that it takes.

    The texts of the docstring's ``Args:`` are the help of the command's own parameters. A parameter
    of type ``Annotated[DATACLASS, PANEL]`` stands for the options of the dataclass; its default, or
    the dataclass's own, gives theirs, and the command itself gets the dataclass. Where the command
    or an earlier dataclass has a parameter with the name of a field, that is the option, in the
    panel of the field, and the field keeps its default.
    """
    hints = get_type_hints(command, include_extras=True)
    taken = inspect.signature(command).parameters
    texts = argument_texts(command)
    configs: dict[str, Any] = {}
    panels: dict[str, str] = {}
    options: list[Option] = []
    for name, parameter in taken.items():
        if is_dataclass((get_args(hints[name]) or (None,))[0]):
            config = hints[name]() if parameter.default is parameter.empty else parameter.default
            configs[name] = config
            panels |= dict.fromkeys(vars(config), get_args(hints[name])[1])
            named = {*taken, *(option.name for option in options)}
            options += [option for option in options_of(config) if option.name not in named]
        else:
            flag = f"--{name.replace('_', '-')}"
            text = texts.get(name, "")
            options.append(Option(name, hints[name], parameter.default, text, flag, None))
    options = [
        option if option.help else option._replace(help=SHARED_TEXTS.get(option.name, ""))
        for option in options
    ]

    @wraps(command)
    def run(**values: Any) -> None:
        for name, config in configs.items():
            given = {key: values.pop(key) for key in vars(config) if key in values.keys() - taken}
            values[name] = replace(config, **given)
        command(**values)

    types = {option.name: _type(option, panels.get(option.name)) for option in options}
    kind = inspect.Parameter.KEYWORD_ONLY  # Typer gives all of them by name
    parameters = [
        inspect.Parameter(option.name, kind, default=option.default, annotation=types[option.name])
        for option in options
    ]
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = types
    run.__doc__ = inspect.cleandoc(command.__doc__ or "").partition("\nArgs:\n")[0]
    return run


def _type(option: Option, panel: str | None) -> Any:
    """What Typer reads of an option; what is annotated for Typer already stays as it is."""
    if get_origin(option.type) is Annotated:
        return option.type
    names = [option.flag]
    if option.name == "output":
        names.append("-o")
    elif option.default is inspect.Parameter.empty:
        return Annotated[option.type, typer.Argument(help=option.help, show_default=False)]
    elif option.type == bool | None or option.default is True:
        names = [f"{option.flag}/{option.flag.replace('--', '--no-', 1)}"]
    kind, *others = get_args(option.type) or (option.type,)
    # A text that is not given is none anyway: only where there is a default must it be said.
    if type(None) in others and (kind in (int, float) or (kind is str and option.default)):
        parser = _or_none(kind, option.least)
        shown = typer.Option(
            *names,
            help=option.help,
            rich_help_panel=panel,
            parser=parser,
            metavar=f"<{kind.__name__}|none>",
        )
        return Annotated[kind, shown]
    shown = typer.Option(*names, help=option.help, min=option.least, rich_help_panel=panel)
    return Annotated[option.type, shown]


def _or_none(kind: type, least: float | None) -> Callable[[str], Any]:
    """Reads a number, no lower than the least, or a text, or the word ``none`` for no value."""

    def read(text: str) -> Any:
        if text == "none":
            return None
        try:
            value = kind(text)
        except ValueError as error:
            raise typer.BadParameter(f"{text!r} is not a number, nor none.") from error
        if least is not None and not value >= least:
            raise typer.BadParameter(f"{text} is below {least:g}.")
        return value

    return read
