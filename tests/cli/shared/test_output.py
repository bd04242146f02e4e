"""What tables look like in a terminal."""

import io

import pytest
from rich.console import Console

from lookhops.cli.shared import output
from lookhops.core.tables import Table


def test_long_names_of_models_are_broken_between_their_options(monkeypatch, capsys):
    monkeypatch.setattr(output, "out", Console(width=60, highlight=False))
    names = ("pyg:GINEConv/hidden=32/edges=use", "gcn", "licheb/k=3 against gcn/hidden=32/k=2")
    rows = tuple(((name,), ("1.0",)) for name in names)
    output.print_table(Table(("model", "accuracy"), rows))
    lines = [line.split("  ")[0].rstrip() for line in capsys.readouterr().out.splitlines()]
    assert [line for line in lines if line][1:] == [
        *("pyg:GINEConv", "/hidden=32", "/edges=use", "gcn"),
        *("licheb/k=3 against gcn/hidden=32", "/k=2"),
    ]


@pytest.mark.parametrize("width", range(6, 32))
def test_a_number_that_finds_no_room_shows_that_it_is_cut(width):
    console = Console(width=width, file=io.StringIO())
    console.print(output.grid([["a name of words", "1.16 to 1.57"]]))
    shown = console.file.getvalue()
    assert ("1.16 to 1.57" in shown) != ("…" in shown)
