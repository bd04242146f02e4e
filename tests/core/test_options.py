"""Options: each named once, in the dataclass, and found everywhere else."""

import inspect
from dataclasses import asdict, dataclass, fields

import pytest

from lookhops import LookHopsClassifier, LookHopsRegressor
from lookhops.core.errors import LookHopsError
from lookhops.core.options import RECOMMENDED, Architecture, Protocol
from lookhops.core.schema import argument_texts, option, options_of


@dataclass(frozen=True)
class Tea:
    """A cup of tea.

    Args:
        sugar: Lumps
            of sugar: none, one or two.
        milk: With milk.
        order: Not an option.

    Returns:
        strength: Not an argument.
    """

    sugar: int = option(0, least=0)
    milk: bool = option(False, flag="--white")
    order: tuple[str, ...] = ()
    no_text: str = ""


def test_fields_are_options_with_the_texts_of_the_docstring():
    sugar, milk, bare = options_of(Tea(sugar=2))
    assert sugar == ("sugar", int, 2, "Lumps of sugar: none, one or two.", "--sugar", 0)
    assert milk == ("milk", bool, False, "With milk.", "--white", None)
    assert (bare.help, bare.flag) == ("", "--no-text")
    assert list(argument_texts(Tea)) == ["sugar", "milk", "order"]
    assert argument_texts(int) == {}


@pytest.mark.parametrize("config", [Architecture, Protocol])
def test_every_field_says_what_it_is(config):
    texts = argument_texts(config)
    assert list(texts) == [field.name for field in fields(config)]
    assert all(text.endswith(".") for text in texts.values())


@pytest.mark.parametrize(
    ("estimator", "others"),
    [(LookHopsClassifier, {"loss"}), (LookHopsRegressor, {"class_weights"})],
)
def test_the_estimators_have_them_all(estimator, others):
    parameters = estimator().get_params()
    assert {name: parameters[name] for name in asdict(RECOMMENDED)} == asdict(RECOMMENDED)
    training = {option.name for option in options_of(Protocol())} - {"split", "folds"}
    assert training - set(parameters) == others
    assert argument_texts(estimator).keys() == inspect.signature(estimator).parameters.keys()
    assert LookHopsClassifier("gcn", k=3).get_params()["conv"] == "gcn"
    with pytest.raises(TypeError, match="'hops'"):
        LookHopsClassifier(hops=3)


def test_a_number_below_the_least_is_refused():
    with pytest.raises(LookHopsError, match="patience"):
        Protocol(patience=0)
