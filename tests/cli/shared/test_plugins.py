"""``--plugin``: where it is taken, and that nothing else runs such a file."""

import pytest

from lookhops.cli import SUMMARIES, load
from lookhops.nn.registry import CONVOLUTIONS, LOADED

PLUGIN = """
from lookhops.nn import LiChebConv, register_convolution

register_convolution("mine", lambda channels, hidden, k: LiChebConv(channels, hidden, k))
"""
#: Commands that make networks of their own choice alone.
OWN_CHOICE = {"demo", "paper"}


@pytest.fixture
def forget():
    """Forget what a plugin registered, as another process does; after the test for good."""

    def forget():
        CONVOLUTIONS.pop("mine", None)
        LOADED.clear()

    yield forget
    forget()


def test_every_command_that_makes_or_loads_a_network_takes_it():
    for name in SUMMARIES:
        options = {option for own in load(name).params for option in own.opts}
        if options & {"--device", "--conv"} and name not in OWN_CHOICE:
            assert "--plugin" in options, name


def test_a_layer_of_ones_own_and_no_folder_that_implies_it(lookhops, tmp_path, forget):
    plugin, model = tmp_path / "my_layers.py", tmp_path / "model"
    plugin.write_text(PLUGIN)
    source = ("hops-1", "--task-size", 30)
    small = ("--conv", "mine", "--hidden", 4, "--layers", 2, "--epochs", 1)
    code, _, err = lookhops("train", *source, *small, "-o", model, "--plugin", plugin)
    assert code == 0, err
    assert str(plugin) in (model / "config.json").read_text()  # in the command, for people
    for command in (("predict", model, *source), ("explain", model, *source, "--json")):
        forget()
        code, _, err = lookhops(*command)
        assert code == 2
        assert "There is no convolution 'mine'" in err
        assert "is read from the file that --plugin names" in err
        code, _, err = lookhops(*command, "--plugin", plugin)
        assert code == 0, err


def test_a_plugin_that_is_not_there(lookhops, tmp_path):
    code, out, err = lookhops("models", "--plugin", tmp_path / "no.py")
    assert (code, out) == (2, "")
    assert "no.py: the plugin cannot be read (No such file or directory)." in err
