"""What docs/layers.md shows runs as it stands."""

import re
from pathlib import Path

from lookhops.nn.registry import CONVOLUTIONS, POOLINGS

PAGE = Path(__file__).parents[1] / "docs" / "layers.md"


def test_every_block_of_python_runs(monkeypatch):
    for name, table in (("sage", CONVOLUTIONS), ("longest", POOLINGS)):
        monkeypatch.setitem(table, name, None)  # to be taken out again
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), flags=re.DOTALL)
    assert len(blocks) > 5
    names: dict = {}
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), names)
    assert sum(p.numel() for p in names["after"].parameters()) == 5_376
    assert sum(p.numel() for p in names["before"].parameters()) == 14_336


def test_every_name_is_in_the_table():
    text = PAGE.read_text("utf-8")
    for name in (*CONVOLUTIONS, *POOLINGS):
        assert f"| `{name}` |" in text
