"""What data says is shown in every medium, and obeyed in none."""

import csv
import io
import subprocess
import sys
from xml.etree import ElementTree

import pytest

from lookhops.cli.shared.output import PlainConsole, escaped_json
from lookhops.core.errors import LookHopsError
from lookhops.core.options import Architecture
from lookhops.core.pictures import new_picture, save_both
from lookhops.core.tables import Table, csv_text, with_formula, without_formula
from lookhops.core.words import visible
from lookhops.sources.rdkit.parsing import why_too_large

HOSTILE = "\x1b[31mred\x1b[0m|<b>[a](b)\u202e"


def test_terminals_get_no_control_characters():
    assert visible("a\tb\n\x1b\x9b\u202e") == "a\tb\n\\x1b\\x9b\\u202e"
    text = io.StringIO()
    PlainConsole(file=text, width=200).print(HOSTILE, markup=False)
    assert "\x1b" not in text.getvalue()
    assert escaped_json('"a\x9b"') == '"a\\u009b"'


def test_tables_carry_no_markup():
    table = Table([HOSTILE, "b"], [[["x\ny"], [HOSTILE]]], title="a\n\\evil")
    assert len(table.markdown().splitlines()) == 3
    assert "\\|&lt;b>\\[a\\](b)" in table.markdown()
    assert "\x1b" not in table.latex()
    assert "\n\\evil" not in table.latex()


#: Numbers, with decimal commas too, and what is no formula.
STAY = ("plain", "'", "-1", "-1e5", "-7,25", "-")


@pytest.mark.parametrize("text", ["=1+1", "@x", "-a", "'=1", "+cmd", "-1,2,3", *STAY])
def test_spreadsheets_compute_nothing(text):
    cell = without_formula(text)
    assert with_formula(cell) == text
    assert (cell == text) == (text in STAY)
    written = csv_text(["a"], [[text]], for_spreadsheets=False)
    assert list(csv.reader(written.splitlines())) == [["a"], [text]]


def test_pictures_are_xml(tmp_path):
    figure = new_picture(2, 2)
    figure.text(0.5, 0.5, "a\x01b\x1b")
    ElementTree.parse(save_both(figure, tmp_path, "x")[0])


@pytest.mark.parametrize(
    ("structure", "reason"),
    [
        ("C" * 1001, "1,001 atoms, more than 1,000"),
        ("C" * 200_000, "200,000 characters"),
        ("".join(f"C%{i:02d}" + "1" * 50 for i in range(10, 60)), "too many for 50 atoms"),
        ("c1ccccc1" * 100, ""),
        ("[13CH3][NH3+].[Cl-]", ""),
    ],
)
def test_molecules_are_bounded_before_rdkit_sees_them(structure, reason):
    found = why_too_large(structure, mol_block=False, most=1000)
    assert reason in found
    assert bool(found) == bool(reason)


def test_networks_are_bounded():
    for name in ("layers", "k", "hidden", "fingerprint"):
        with pytest.raises(LookHopsError, match=name):
            Architecture(**{name: 3_000_000})


#: Sends itself what Ctrl-C sends, at the moment when a module is asked for.
INTERRUPTED = """
import os, signal, sys

class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == sys.argv[1]:
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupt())
import lookhops.__main__
lookhops.__main__.main()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX signals")
@pytest.mark.parametrize("module", ["lookhops.cli", "typer"])
def test_ctrl_c_while_python_imports_is_one_line(module):
    command = [sys.executable, "-c", INTERRUPTED, module]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 130
    assert done.stderr == "lookhops: interrupted.\n"
