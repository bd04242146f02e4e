"""``lookhops demo``: all of it in a few minutes, on the bundled molecules."""

from __future__ import annotations

import shlex
import time
from pathlib import Path
from typing import TYPE_CHECKING

from rich.markup import escape
from rich.table import Table

from lookhops.cli.shared.output import grid, out, print_line, print_section
from lookhops.cli.shared.parameters import with_options
from lookhops.core.files import write_json, write_text
from lookhops.core.words import MINUS, NONE, between, counted

if TYPE_CHECKING:
    from lookhops.models import Predictions

# Well-known molecules that the bundled set does not have.
MOLECULES = {
    "aspirin": "CC(=O)Oc1ccccc1C(=O)O",
    "vitamin C": "OCC(O)C1OC(=O)C(O)=C1O",
    "vanillin": "COc1cc(C=O)ccc1O",
    "capsaicin": "COc1cc(CNC(=O)CCCCC=CC(C)C)ccc1O",
    "DDT": "Clc1ccc(cc1)C(c1ccc(Cl)cc1)C(Cl)(Cl)Cl",
}
NEXT = """\
  lookhops look YOURS.csv
  lookhops train YOURS.csv -o model
  lookhops train YOURS.csv --target COLUMN -o numbers
  echo "CCO ethanol" | lookhops predict {0} -
  echo "CCO ethanol" | lookhops explain {0} - -o pictures
  lookhops report {0} --data solubility -o report.html"""


@with_options
def demo(output: Path = Path("demo"), seeds: int = 3, epochs: int = 40) -> None:
    """Look, train, compare, predict, explain and report, on the bundled molecules.

    The questions: does a molecule dissolve in water (low, medium, high), and how much of it does
    (log mol/L)? Under two minutes on two cores.

    Args:
        output: Folder for the models and pictures.
        seeds: Seeds of each model.
        epochs: Most epochs of a run.
    """
    from lookhops.models import Predictor
    from lookhops.models.config import INFORMATION
    from lookhops.neighbourhoods import look
    from lookhops.report.sections.data import information_section
    from lookhops.sources.loading import load

    start = time.perf_counter()
    classes, gcn, numbers = (output / name for name in ("lookhops", "gcn", "numbers/lookhops"))
    graphs, new = load("solubility"), output / "new.smi"
    _heading(1, f"Look: how many hops matter in {len(graphs):,} molecules and their solubility?")
    found = look(graphs).to_dict()
    print_section(information_section(found))

    of_each = counted(seeds, "seed")
    _heading(2, f"Train: the recommended model, and a GCN beside it, {of_each} each")
    train = ("train", "solubility", "--seeds", seeds, "--overwrite")
    _run(*train, "-o", classes)
    small = ("--batch-size", 64, "--epochs", epochs, "--patience", 10)
    out.print("[dim]The paper's protocol has batches of 256, 500 epochs and patience 30.[/]")
    _run(*train, "--model", "gcn", *small, "-o", gcn)

    _heading(3, "Numbers: the measured solubility, in log mol/L")
    _run(*train, "--target", "value", "-o", numbers)

    _heading(4, "Predict: five molecules that are not in the set")
    write_text(new, "".join(f"{smiles} {name}\n" for name, smiles in MOLECULES.items()))
    molecules = load(new)
    of_classes, of_numbers = (Predictor(model).predict(molecules) for model in (classes, numbers))
    out.print(_answers(of_classes, of_numbers))

    _heading(5, "Explain: which atoms and bonds make the answer?")
    _run("explain", classes, new, "-o", output / "pictures")

    _heading(6, "Report: all of it on one page, to look at and to send")
    write_json(output / INFORMATION, found)  # for later reports too
    _run("report", output, "--data", "solubility", "-o", output / "report.html")
    _heading(7, f"Done in {time.perf_counter() - start:.0f} s. What to type next:")
    print_line(NEXT.format(shlex.quote(str(classes))))


def _heading(number: int, text: str) -> None:
    out.print(f"\n[bold cyan]{number}[/]  [bold]{escape(text)}[/]")


def _run(*words: object) -> None:
    """Run a command, as a user would type it."""
    from lookhops.cli import app

    texts = [str(word) for word in words]
    print_line(f"$ {shlex.join(['lookhops', *texts])}")
    app(texts, standalone_mode=False)


def _answers(classes: Predictions, numbers: Predictions) -> Table:
    """What the models answer to each molecule: the class, and the number with its interval."""
    rows = []
    for i, (name, agree) in enumerate(zip(classes.ids, classes.agreement, strict=True)):
        likely = (f"{p:.2f}" for p in classes.probabilities[i])
        much = numbers.record(i)
        ends = [end for end in much.get("interval", ()) if end is not None]
        interval = between(ends) if len(ends) == 2 else NONE
        value = f"{much['value']:.2f}".replace("-", MINUS)
        rows.append((name, classes.classes[i], *likely, f"{agree:.0%}", value, interval))
    head = ("molecule", "class", *(f"p({name})" for name in classes.class_names), "agree")
    return grid(rows, (*head, "log mol/L", "90% interval"), ("", "left bold"))
