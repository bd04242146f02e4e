"""The space: what is tuned, and configurations by the names that `compare` takes."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookhops.core.errors import LookHopsError
from lookhops.core.options import RECOMMENDED, Protocol
from lookhops.nn.registry import CONVOLUTIONS
from lookhops.runs.plan import parse_entry
from lookhops.runs.tune.space import USUAL, Between, Space
from lookhops.training.runs import Rates

SPACE = Space.parse(None)


def values_of(option):
    if not isinstance(option, Between):
        return st.sampled_from(option)
    whole = isinstance(option.low, int)
    return (st.integers if whole else st.floats)(option.low, option.high)


@given(st.fixed_dictionaries({name: values_of(one) for name, one in USUAL.items()}))
def test_a_name_is_the_configuration_in_a_comparison(values):
    candidate = SPACE.candidate(values)
    entry = parse_entry(candidate.name)
    assert entry.model == candidate.architecture
    assert entry.protocol(Protocol()) == candidate.entry.protocol(Protocol())
    assert candidate.shape == replace(candidate.architecture, dropout=0.0)
    assert set(SPACE.shape) | {"learning_rate", "weight_decay", "dropout"} == set(values)


def test_the_recommended_model_is_in_the_usual_space():
    candidate = SPACE.candidate(SPACE.recommended)
    assert SPACE.recommended.keys() == USUAL.keys()
    assert candidate.architecture == RECOMMENDED
    assert candidate.rates == Rates.of(RECOMMENDED, Protocol())
    assert candidate.name == "network"


def test_what_a_network_does_not_read_makes_no_difference():
    one, two = (
        SPACE.candidate({"conv": "gin", "pool": "none", "k": k, "ratio": ratio})
        for k, ratio in ((1, 0.5), (4, 0.8))
    )
    assert one == two
    assert "k=" not in one.name


def test_what_no_network_of_the_space_reads_is_not_tuned():
    assert set(USUAL) - set(Space.parse("pool=none").options) == {"ratio"}
    assert set(USUAL) - set(Space.parse("conv=gin,sage/pool=none").options) == {"ratio", "k"}
    assert set(Space.parse("conv=gin/pool=none,lookhops").options) == set(USUAL)


def test_a_text_chooses_other_values():
    space = Space.parse("hidden=32/k=1..3/learning_rate=1e-4..1e-2/totals=true,false", Protocol())
    assert space.options["hidden"] == (32,)
    assert space.options["k"] == Between(1, 3)
    assert space.options["learning_rate"] == Between(1e-4, 1e-2, log=True)
    assert space.options["totals"] == (True, False)
    assert space.options["layers"] == USUAL["layers"]
    assert "hidden" not in space.recommended  # 128 is not among them
    assert Space.parse("/".join(f"{n}={v}" for n, v in space.to_dict().items())) == space


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("hidden", "hidden"),
        ("hiden=3", "hidden"),
        ("conv=licheb..gin", "conv"),
        ("k=3..1", "k=3"),
        ("k=two", "'two'"),
        ("ratio=2", "ratio=2: "),
        ("conv=nothing", "conv=nothing: "),
        ("learning_rate=0", "learning rate"),
        ("seeds=3", "seeds"),
    ],
)
def test_a_space_that_cannot_be_is_a_sentence(text, what):
    with pytest.raises(LookHopsError, match=what):
        Space.parse(text)


def test_every_convolution_of_the_usual_space_is_there():
    assert set(USUAL["conv"]) <= CONVOLUTIONS.keys()
