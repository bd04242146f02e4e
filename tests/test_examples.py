"""The examples run, in small."""

import runpy
import sys
from pathlib import Path

EXAMPLES = Path(__file__).parents[1] / "examples"


def test_pyg_swap(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["pyg_swap.py", "--epochs", "1", "--graphs", "60"])
    runpy.run_path(str(EXAMPLES / "pyg_swap.py"), run_name="__main__")
    theirs, ours = capsys.readouterr().out.splitlines()
    assert theirs.startswith("PyG's   21,187 parameters  accuracy ")
    assert ours.startswith("ours     8,261 parameters  accuracy ")


def test_only_the_kinds_of_edges_tell_the_classes():
    example = runpy.run_path(str(EXAMPLES / "edge_kinds.py"))
    graphs, classes = example["make"]()
    assert example["accuracy"]("use", graphs, classes) >= 0.95
    assert 0.35 <= example["accuracy"]("ignore", graphs, classes) <= 0.65
