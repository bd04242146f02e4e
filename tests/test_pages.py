"""What the guide shows runs as it stands."""

import re
from dataclasses import asdict
from pathlib import Path
from pkgutil import resolve_name

import pytest

from lookhops import Architecture, LookHopsClassifier
from lookhops.encoding import ReadOtherwise
from lookhops.nn.registry import CONVOLUTIONS, POOLINGS

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
SOURCE = ROOT / "src/lookhops"


def run_blocks(page: Path) -> dict:
    """Run a page's blocks of Python, one after the other; the names that they made."""
    blocks = re.findall(r"```python\n(.*?)```", page.read_text("utf-8"), flags=re.DOTALL)
    names: dict = {}
    for block in blocks:
        exec(compile(block, str(page), "exec"), names)
    return names


def test_layers(monkeypatch):
    own = (("graphconv", CONVOLUTIONS), ("gatv2", CONVOLUTIONS), ("longest", POOLINGS))
    for name, table in own:
        monkeypatch.setitem(table, name, None)  # to be taken out again
    names = run_blocks(DOCS / "layers.md")
    assert sum(p.numel() for p in names["after"].parameters()) == 5_376
    assert sum(p.numel() for p in names["before"].parameters()) == 14_336


def test_every_layer_is_in_the_table():
    text = (DOCS / "layers.md").read_text("utf-8")
    for name in (*CONVOLUTIONS, *POOLINGS):
        assert f"| `{name}` |" in text


def test_the_api_names_every_parameter_of_the_classifier_that_is_not_in_its_source():
    text = (DOCS / "api.md").read_text("utf-8")
    own = {"validation_fraction", "random_state", "device"}
    for name in LookHopsClassifier().get_params().keys() - asdict(Architecture()).keys() - own:
        assert f"`{name}`" in text


def test_the_api_lists_what_exists():
    names = re.findall(r"^::: (\S+)$", (DOCS / "api.md").read_text("utf-8"), flags=re.MULTILINE)
    assert len(names) == len(set(names)) > 50
    for name in names:
        assert resolve_name(name).__doc__, name


def test_docstrings_refer_to_what_exists():
    """Names in full, as ``:func:`~lookhops.graphs.Graphs```; fields have no value."""
    found = set()
    for file in SOURCE.rglob("*.py"):
        found |= set(re.findall(r":\w+:`~?(lookhops(?:\.\w+)+)`", file.read_text("utf-8")))
    assert len(found) > 50
    for name in found:
        owner, _, attribute = name.rpartition(".")
        if attribute not in getattr(resolve_name(owner), "__annotations__", {}):
            assert resolve_name(name) is not None


def test_the_guide_for_contributors_names_files_that_exist():
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    paths = re.findall(r"`([\w/]+/(?:\w+\.\w+)?)`", text)
    assert len(paths) > 20
    for path in paths:
        assert (ROOT / path).exists() or (SOURCE / path).exists(), path


def test_graphs_of_ones_own(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    names = run_blocks(DOCS / "graphs.md")
    assert (tmp_path / "circles.graphs").is_file()
    assert len(names["circles"]) == len(names["packed"]) == 300
    assert names["model"].score(names["packed"]) > 0.8


def test_what_is_learnt():
    names = run_blocks(DOCS / "targets.md")
    assert names["numbers"].predict(names["molecules"]).shape == (60,)
    assert names["several"].predict(names["smiles"][:2]).shape == (2, 2)
    assert names["classes"].classes_.tolist() == ["no", "yes"]


def test_what_a_model_is_told():
    with pytest.warns(ReadOtherwise) as said:
        run_blocks(DOCS / "encoding.md")
    text = " ".join((DOCS / "encoding.md").read_text("utf-8").split())
    assert len(said) == 2
    assert all(str(one.message) in text for one in said)
