"""The model card in a folder."""

from dataclasses import replace

import pytest

from lookhops.models import train_into
from lookhops.models.card import model_card
from lookhops.models.config import read_config
from lookhops.nn import Architecture
from lookhops.sources.loading import load
from lookhops.tasks import task_from_dict
from lookhops.training import Protocol

TINY = Architecture(hidden=4, layers=1)
PROTOCOL = Protocol(seeds=(11,), max_epochs=1, batch_size=64)


def test_it_says_what_the_folder_holds(model_folder):
    card = (model_folder / "MODEL.md").read_text("utf-8")
    config = read_config(model_folder)
    assert card.startswith("# Model card: hops-1\n\nAnswers for a graph which class it is of: ")
    for name in ("How to use it", "Data", "Training", "Results", "Limits", "Versions"):
        assert f"\n## {name}\n" in card
    assert "| graphs of each class | different: 40, same: 40 |" in card
    assert "| seeds | 11, 22 |" in card
    mean = config["metrics"]["summary"]["accuracy"]["mean"]
    assert f"| accuracy | {100 * mean:.1f} ± " in card
    assert "2 splits of 8 test graphs" in card


def test_the_same_model_has_the_same_card(tmp_path, tasks):
    for name in ("a", "b"):
        train_into(tmp_path / name, tasks, TINY, PROTOCOL, device="cpu")
    first, second = ((tmp_path / name / "MODEL.md").read_bytes() for name in ("a", "b"))
    assert first == second


def test_intervals_of_shares_are_wilsons(model_folder):
    config = read_config(model_folder)
    summary = config["metrics"]["summary"]
    summary["accuracy"] |= {"mean": 0.5, "std": 0.0}
    card = model_card(config, task_from_dict(config["task"]), 0.3)
    # Of 4 hits in 8: (4 + z^2/2 -+ z sqrt(8/4 + z^2/4)) / (8 + z^2) with z = 1.96.
    assert "| accuracy | 50.0 ± 0.0 % | 21.5 to 78.5 % |" in card
    assert "is below 0.30" in card


def test_several_targets_and_names_that_are_markup(tmp_path):
    graphs = load("solubility", target="class,value")[:60]
    graphs = replace(graphs, name="mine | <b>[x](y)")
    train_into(tmp_path / "model", graphs, TINY, PROTOCOL, device="cpu")
    card = (tmp_path / "model" / "MODEL.md").read_text("utf-8")
    assert card.startswith("# Model card: mine \\| &lt;b>\\[x\\](y)\n")
    assert "; a number, value." in card
    assert "| value: MAE |" in card


@pytest.mark.parametrize("conv", ["licheb", "pyg:GraphConv", "mine"])
def test_a_layer_of_ones_own_asks_for_its_file(model_folder, conv):
    config = read_config(model_folder)
    config["learner"]["options"]["conv"] = conv
    card = model_card(config, task_from_dict(config["task"]), 0.3)
    assert ("--plugin" in card) == (conv == "mine")


def test_a_training_that_was_stopped_before_a_test(model_folder):
    config = read_config(model_folder)
    config["metrics"] = {"seeds": {}, "summary": {}}
    config["stopped"] = "stopped before its time"
    card = model_card(config, task_from_dict(config["task"]), 0.3)
    assert "None: the training was stopped before a test." in card
    assert "- stopped before its time.\n" in card
