"""A convolution is added by its own file and one line, as CONTRIBUTING says."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import lookhops

FILE = '''
from torch import Tensor

from lookhops.nn.conv.base import Convolution
from lookhops.nn.linear import Linear
from lookhops.ops import Adjacency


class Mean(Convolution):
    r"""Means of neighbours, :math:`x' = D^{-1} A x W + b`.

    .. math::
        x' = D^{-1} A x W + b
    """

    name = "mean"
    reads_k = False

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__(in_channels, out_channels)
        self.project = Linear(in_channels, out_channels)

    def convolve(self, x: Tensor, adjacency: Adjacency) -> Tensor:
        return self.project(adjacency.random_walk(x.dtype)(x))
'''
LINE = "from lookhops.nn.conv.mean import Mean as Mean\n"
USE = """
import torch
from lookhops.nn import GraphNetwork, Mean, catalogue
from torch_geometric.data import Data

x, edge_index = torch.randn(3, 5), torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
model = GraphNetwork(5, 2, conv="mean", pool="lookhops", hidden=8)
assert model(Data(x, edge_index)).shape == (1, 2)
assert isinstance(model.convs[0], Mean)
assert "mean" in [layer.name for layer in catalogue.convolutions()]
"""


def test_a_convolution_is_its_own_file_and_one_line(tmp_path):
    package = tmp_path / "lookhops"
    shutil.copytree(
        Path(lookhops.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__")
    )
    (package / "nn/conv/mean.py").write_text(FILE)
    names = package / "nn/conv/__init__.py"
    text, before = names.read_text("utf-8"), "from lookhops.nn.conv.gcn"
    assert before in text
    names.write_text(text.replace(before, LINE + before, 1), "utf-8")
    done = subprocess.run(
        [sys.executable, "-c", USE],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
