"""The page of all layers is as the registry has it."""

import re
from pathlib import Path

import pytest
import torch_geometric

from lookhops.nn import catalogue
from lookhops.nn.registry import CONVOLUTIONS, POOLINGS

PAGE = Path(__file__).parents[2] / "docs" / "models.md"


def test_the_page_is_as_the_registry_has_it():
    text = PAGE.read_text("utf-8")
    version = re.search(r"all of PyG\n?\s*([\d.]+);", text)[1]
    if version != torch_geometric.__version__:
        pytest.skip(f"the page lists the convolutions of PyG {version}")
    again = "lookhops models --page docs/models.md"
    assert text == catalogue.page(), f"make the page again: {again}"


def test_every_layer_has_a_formula_and_its_size():
    convs, pools = list(catalogue.convolutions()), list(catalogue.poolings())
    assert [layer.name for layer in convs] == list(CONVOLUTIONS)
    assert [layer.name for layer in pools] == [name for name in POOLINGS if name != "none"]
    for layer in (*convs, *pools):
        assert "```math" in layer.said
        assert not re.search(r":\w+:`|\.\. math|>`_|Args:", layer.said), layer.name
        ours = layer.name in ("licheb", "limixhop", "lookhops")
        assert (layer.paper is None) == ours
    sizes = {layer.name: layer.parameters for layer in (*convs, *pools)}
    assert sizes["gcn"] == 112_194
    assert sizes["licheb"] == 114_754
    assert sizes["lookhops"] == 116_679
    runs = {layer.name: layer.runs for layer in (*convs, *pools)}
    assert runs["sgc"] == runs["dcnn"] == runs["ipool"] == "recorded"
    assert runs["diffpool"] == runs["hgpsl"] == "stacked"
