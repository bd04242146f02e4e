"""Files with layers of a user's own."""

import pytest

from lookhops import LookHopsError
from lookhops.nn import GraphNetwork, load_plugin
from lookhops.nn.registry import CONVOLUTIONS, LOADED, POOLINGS

PLUGIN = """
from torch_geometric.nn import GraphConv

from lookhops.nn import register_convolution


class Mine(GraphConv):
    pass


register_convolution("mine", lambda channels, hidden, k: Mine(channels, hidden))
"""


@pytest.fixture(autouse=True)
def as_before():
    """What a test registers is forgotten after it."""
    tables = [(table, dict(table)) for table in (CONVOLUTIONS, POOLINGS, LOADED)]
    yield
    for table, kept in tables:
        table.clear()
        table.update(kept)


def write(tmp_path, text, name="my_layers.py"):
    path = tmp_path / name
    path.write_text(text)
    return path


def test_its_layers_are_known_by_name(tmp_path):
    load_plugin(write(tmp_path, PLUGIN))
    network = GraphNetwork(3, 2, conv="mine")
    assert type(network.convs[0]).__name__ == "Mine"


def test_it_runs_once_and_again_when_it_changed(tmp_path):
    counts = "from pathlib import Path\nPath(__file__).with_name('n').open('a').write('.')\n"
    path = write(tmp_path, PLUGIN + counts)
    load_plugin(path)
    load_plugin(path)
    assert (tmp_path / "n").read_text() == "."
    load_plugin(write(tmp_path, PLUGIN + counts + "changed = True\n"))
    assert (tmp_path / "n").read_text() == ".."


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x = 1\ny = (\n", "my_layers.py:2: .*SyntaxError: "),
        ("\nimport no_such_package\n", "my_layers.py:2: .*ModuleNotFoundError: "),
        ("def f():\n    1 / 0\nf()\n", "my_layers.py:2: .*ZeroDivisionError: "),
        ("x = 1\n", "my_layers.py: .*lookhops.nn.register_convolution"),
        (
            "from lookhops.nn import register_pooling\nregister_pooling('topk', None)\n",
            "my_layers.py:2: .*'topk'",
        ),
    ],
)
def test_what_is_wrong_is_a_sentence(tmp_path, text, said):
    with pytest.raises(LookHopsError, match=said):
        load_plugin(write(tmp_path, text))


def test_a_file_that_is_none(tmp_path):
    with pytest.raises(LookHopsError, match=r"none\.py"):
        load_plugin(tmp_path / "none.py")
    with pytest.raises(LookHopsError, match=r"layers\.txt.*\.py"):
        load_plugin(write(tmp_path, PLUGIN, "layers.txt"))
