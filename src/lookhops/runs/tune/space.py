"""The space of a search: the options that are tuned, and the values that each may have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from itertools import product
from typing import TYPE_CHECKING, Any

from lookhops.core.errors import LookHopsError
from lookhops.core.options import RECOMMENDED, Architecture, Protocol
from lookhops.learners.registry import option_value
from lookhops.nn import GraphNetwork
from lookhops.nn.registry import find, reads_k
from lookhops.runs.plan import Entry
from lookhops.training.runs import Rates

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution

#: A value of an option.
Value = str | float | bool | None
RATES = tuple(option.name for option in fields(Rates))
#: What may be tuned, with the type of its values.
TUNABLE = {
    option.name: str(option.type)
    for config in (Architecture, Protocol)
    for option in fields(config)
    if config is Architecture or option.name in RATES
}


@dataclass(frozen=True)
class Between:
    """A number between two, both included; a whole number where these are whole.

    ``log`` says that what matters is the factor between two values, not their difference.
    """

    low: float
    high: float
    log: bool = False

    def __iter__(self) -> Iterator[float]:
        yield from (self.low, self.high)

    def __contains__(self, value: Value) -> bool:
        return isinstance(value, int | float) and self.low <= value <= self.high


#: One of a few values, or a number between two.
Values = tuple[Value, ...] | Between


@dataclass(frozen=True)
class Candidate:
    """A configuration to try: the architecture with its dropout, the rates, and its name.

    The name says what differs from the recommended model, as `lookhops compare --models` takes it.
    """

    architecture: Architecture
    rates: Rates
    name: str

    @property
    def shape(self) -> Architecture:
        return replace(self.architecture, dropout=0.0)

    @property
    def entry(self) -> Entry:
        """The same for a comparison."""
        training = ("learning_rate", "weight_decay")
        return Entry(self.architecture, tuple((key, getattr(self.rates, key)) for key in training))


#: What is tuned where nothing else is said. All of these layers record on a GPU.
USUAL: Mapping[str, Values] = {
    "conv": ("licheb", "limixhop", "gin", "sage"),
    "layers": Between(2, 6),
    "hidden": (64, 128, 256),
    "k": Between(1, 4),
    "pool": ("none", "lookhops", "topk", "sag"),
    "ratio": (0.5, 0.6, 0.7, 0.8, 0.9),
    "readout": ("max+mean", "max+mean+sum"),
    "fingerprint": (None, 1, 2, 3, 4, 5, 6),
    "dropout": Between(0.0, 0.5),
    "learning_rate": Between(3e-4, 5e-3, log=True),
    "weight_decay": (0.0, 1e-6, 1e-5, 1e-4, 1e-3),
}


@dataclass(frozen=True)
class Space:
    """What is tuned: each option with its values; and the protocol's rates, which are the base."""

    options: Mapping[str, Values]
    base: Rates

    @classmethod
    def parse(cls, text: str | None, protocol: Protocol | None = None) -> Space:
        """The usual space, with other values for the options that a text names.

        In ``hidden=64,128/k=1..3/pool=none`` they have some values, two ends, and one value that is
        not tuned. The protocol's rates are those of the recommended model.
        """
        options = dict(USUAL)
        for part in text.split("/") if text else ():
            name, equals, values = part.strip().partition("=")
            if not equals or not values:
                raise LookHopsError(
                    "A space is options with their values, such as hidden=64,128/k=1..3; not "
                    f"{text!r}."
                )
            kind = find("option to tune", TUNABLE, name)
            options[name] = _read_range(name, values, kind)
        base = Rates.of(RECOMMENDED, protocol or Protocol())
        space = cls(options, base)
        for name, one in options.items():
            for value in one:
                try:
                    candidate = space.candidate({name: value})
                    GraphNetwork.from_architecture(1, 2, candidate.architecture)
                    candidate.entry.protocol(Protocol())
                except LookHopsError as error:
                    said = f"The space has {name}={written(value)}: {error}"
                    raise LookHopsError(said) from error
        return cls({name: one for name, one in options.items() if space._is_read(name)}, base)

    def _is_read(self, name: str) -> bool:
        """Whether some network of the space reads an option: the others would only be noise."""
        convs, pools = (map(str, self.options[layer]) for layer in ("conv", "pool"))
        if name == "k":
            return any(reads_k(conv, pool) for conv, pool in product(convs, pools))
        return name != "ratio" or set(pools) != {"none"}

    @property
    def shape(self) -> list[str]:
        """The options that make the shape of a network."""
        return [name for name in self.options if name not in RATES]

    @property
    def recommended(self) -> dict[str, Value]:
        values = asdict(RECOMMENDED) | asdict(self.base)
        return {name: values[name] for name, one in self.options.items() if values[name] in one}

    def distributions(self) -> dict[str, BaseDistribution]:
        """The same as Optuna has it."""
        from optuna import distributions as optuna

        def distribution(values: Values) -> BaseDistribution:
            if not isinstance(values, Between):
                return optuna.CategoricalDistribution(values)
            if isinstance(values.low, int) and isinstance(values.high, int):
                return optuna.IntDistribution(values.low, values.high)
            return optuna.FloatDistribution(values.low, values.high, log=values.log)

        return {name: distribution(values) for name, values in self.options.items()}

    def candidate(self, values: Mapping[str, Value]) -> Candidate:
        """The configuration with these values, and the recommended model's of all others.

        What a network does not read stays as the recommended model has it, so that equal networks
        are equal candidates. Numbers have three digits, as in the candidate's name.
        """
        shape: dict[str, Any] = {
            name: float(f"{value:.3g}") if isinstance(value, float) else value
            for name, value in values.items()
        }
        rates = replace(self.base, **{name: shape.pop(name) for name in RATES if name in shape})
        named = {**asdict(RECOMMENDED), **shape}
        if not reads_k(named["conv"], named["pool"]):
            shape.pop("k", None)
        if named["pool"] == "none":
            shape.pop("ratio", None)
        architecture = replace(RECOMMENDED, **shape, dropout=rates.dropout)
        usual = asdict(RECOMMENDED) | asdict(self.base)
        chosen = asdict(architecture) | asdict(rates)
        differs = (f"{key}={written(v)}" for key, v in chosen.items() if v != usual[key])
        return Candidate(architecture, rates, "/".join(["network", *differs]))

    def to_dict(self) -> dict[str, str]:
        return {
            name: (".." if isinstance(one, Between) else ",").join(map(written, one))
            for name, one in self.options.items()
        }


def written(value: Value) -> str:
    """A value as names of models have it: ``none``, ``true``, ``0.00123``."""
    if value is None or isinstance(value, bool):
        return str(value).lower()
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def _read_range(name: str, text: str, kind: str) -> Values:
    low, dots, high = text.partition("..")
    if not dots:
        values: Sequence[str] = [value.strip() for value in text.split(",") if value.strip()]
        return tuple(dict.fromkeys(option_value(name, value, kind) for value in values))
    if kind.split()[0] not in ("int", "float"):
        raise LookHopsError(f"{name} is not a number: name its values, with commas between.")
    ends = [option_value(name, end.strip(), kind) for end in (low, high)]
    if None in ends or ends[0] > ends[1]:
        raise LookHopsError(f"{name}={text}: a range goes from a lower number to a higher one.")
    return Between(ends[0], ends[1], log=name in ("learning_rate", "weight_decay") and ends[0] > 0)
