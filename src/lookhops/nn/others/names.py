"""Names of layers of other libraries, and their options, read from the class's own signature."""

from __future__ import annotations

import inspect
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from inspect import Parameter
from typing import Any, NoReturn, TypeVar

import torch
from torch import nn

from lookhops.core.errors import LookHopsError

T = TypeVar("T")
Layer = TypeVar("Layer", bound=nn.Module)

#: Prefixes of names, and what they stand for.
PACKAGES = {"pyg": "PyTorch Geometric", "tgp": "torch-geometric-pool"}
#: Texts of options that are neither numbers nor words.
WORDS = {"true": True, "false": False, "none": None}
#: Elements of the largest layer that is tried while a model folder is looked at: 1 GiB.
MOST_TRIED = 2**28


def is_other(name: str) -> bool:
    """Whether a name is of a layer of another library."""
    return name.partition(":")[0] in PACKAGES and ":" in name


@dataclass(frozen=True)
class OtherName:
    """A name such as ``pyg:GATv2Conv/heads=4``: package, layer, and the texts of its options."""

    package: str
    layer: str
    options: Mapping[str, str]

    @classmethod
    def parse(cls, text: str) -> OtherName:
        """The parts of a name."""
        name, *options = text.split("/")
        package, _, layer = name.partition(":")
        found: dict[str, str] = {}
        for option in options:
            key, equals, value = option.partition("=")
            if not equals or key in found:
                raise LookHopsError(f"{text}: options are written name=value, each once.")
            found[key] = value
        return cls(package, layer, found)

    def __str__(self) -> str:
        options = "".join(f"/{name}={self.options[name]}" for name in sorted(self.options))
        return f"{self.package}:{self.layer}{options}"

    def refuse(self, why: str) -> NoReturn:
        """Say why this layer cannot be had."""
        raise LookHopsError(f"{self.package}:{self.layer} {why}")

    def attempt(self, make: Callable[[], T]) -> T:
        """What is made, or what the library says of why that failed, in a sentence."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return make()
        except LookHopsError:
            raise
        except Exception as error:
            said = [*str(error).strip().splitlines(), "a check of its own fails"][0]
            said = said.partition(". ")[0].rstrip(".")
            raise LookHopsError(f"{self.package}:{self.layer} does not work so: {said}.") from error

    def find(self, table: Mapping[str, Any], what: str) -> Any:
        """The layer in a table of its library, or a sentence that names the nearest."""
        if self.layer in table:
            return table[self.layer]
        near = get_close_matches(self.layer, table, n=1, cutoff=0.4)
        hint = f" Did you mean {self.package}:{near[0]}?" if near else ""
        raise LookHopsError(f"{PACKAGES[self.package]} has no {what} {self.layer!r} here.{hint}")

    def values(self, kind: type) -> dict[str, Any]:
        """The values of the options, for the arguments of a class."""
        known = arguments(kind)
        found = {}
        for name, text in self.options.items():
            if name not in known:
                near = get_close_matches(name, known, n=1)
                hint = f" Did you mean {near[0]!r}?" if near else ""
                listed = ", ".join(known) or "none"
                self.refuse(f"has no option {name!r}, but {listed}.{hint}")
            found[name] = value = _value(text)
            if known[name].annotation in (int, float) and not isinstance(value, int | float):
                self.refuse(f"takes a number as {name}, not {text!r}.")
        if found.get("cached") is True:
            self.refuse("would keep the edges of the first batch for all others: leave out cached.")
        return found

    def make(self, kind: type, offered: Mapping[str, Any]) -> Any:
        """An object of the class, with the options and what else it takes of what is offered."""
        known = arguments(kind)
        given = {name: value for name, value in offered.items() if name in known}
        given |= self.values(kind)
        for name, argument in known.items():
            if argument.default is not Parameter.empty or name in given:
                continue
            if is_plain(argument):
                self.refuse(f"needs {name}: give it, as in {self.package}:{self.layer}/{name}=...")
            self.refuse(f"needs {name}, which a name cannot give; register the layer from Python.")
        return self.attempt(lambda: kind(**given))


def tried(make: Callable[[], Layer], untried: Callable[[], nn.Module]) -> Layer | nn.Module:
    """A layer that is tried when it is made: in main memory where the device is ``meta``.

    A model folder is looked at on ``meta``, where most layers of other libraries cannot run.
    """
    if torch.empty(0).device.type != "meta":
        return make()
    large = untried()
    if sum(own.numel() for own in (*large.parameters(), *large.buffers())) > MOST_TRIED:
        return large
    with torch.random.fork_rng(devices=[]), torch.device("cpu"):
        return make()


def with_own_options(kind: type, name: str, options: Sequence[str]) -> tuple[str, list[str]]:
    """A layer's name with those of the options that its class takes, and the others."""
    known = arguments(kind)
    own = [option for option in options if option.partition("=")[0] in known]
    return str(OtherName.parse("/".join((name, *own)))), [o for o in options if o not in own]


def arguments(kind: type) -> dict[str, Parameter]:
    """The arguments by name that make an object of a class."""
    return named_arguments(kind.__init__)  # type: ignore[misc]


def named_arguments(method: Callable[..., Any]) -> dict[str, Parameter]:
    """The arguments by name of a method, without ``self``."""
    given = list(inspect.signature(method).parameters.values())[1:]
    star = (Parameter.VAR_KEYWORD, Parameter.VAR_POSITIONAL)
    return {argument.name: argument for argument in given if argument.kind not in star}


def is_plain(argument: Parameter) -> bool:
    """Whether a text can be the value of an argument: a number, a word, true or false."""
    text = str(argument.annotation)
    plain = argument.annotation is Parameter.empty or re.search(r"\b(int|float|bool|str)\b", text)
    return bool(plain) and not re.search(r"List|Dict|Callable|Tensor|Module", text)


def _value(text: str) -> Any:
    """The value of an option's text: a number, true, false, none, or else the text itself."""
    if text.lower() in WORDS:
        return WORDS[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
