"""``lookhops demo``: all of it in a few minutes, on the bundled molecules."""

from __future__ import annotations

import shlex
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.markup import escape
from rich.table import Table

from lookhops.cli.explain import shared, with_pictures
from lookhops.cli.shared.parameters import with_options
from lookhops.cli.shared.printing import grid, out, print_line
from lookhops.cli.shared.running import epoch_display
from lookhops.cli.shared.writing import command_line, write_page
from lookhops.core.files import write_json
from lookhops.core.options import Architecture, Protocol, parse_seeds
from lookhops.core.words import MINUS, NONE, between, counted

if TYPE_CHECKING:
    from lookhops.graphs import Graphs
    from lookhops.learners import Learner
    from lookhops.models import Predictions

# Well-known molecules that the bundled set does not have.
MOLECULES = {
    "aspirin": "CC(=O)Oc1ccccc1C(=O)O",
    "vitamin C": "OCC(O)C1OC(=O)C(O)=C1O",
    "vanillin": "COc1cc(C=O)ccc1O",
    "capsaicin": "COc1cc(CNC(=O)CCCCC=CC(C)C)ccc1O",
    "DDT": "Clc1ccc(cc1)C(c1ccc(Cl)cc1)C(Cl)(Cl)Cl",
}
EPOCHS, PATIENCE, BATCH_SIZE = 40, 10, 64
#: Where the model of numbers is, beside the models of classes.
NUMBERS = "numbers"
#: Metrics that the tables leave out.
LEFT_OUT = ("majority", "balanced_accuracy", "rmse", "mean_rmse", "spearman")
NEXT = """\
  lookhops look YOURS.csv
  lookhops train YOURS.csv -o model
  lookhops train YOURS.csv --target COLUMN -o numbers
  echo "CCO ethanol" | lookhops predict {0} -
  echo "CCO ethanol" | lookhops explain {0} - -o pictures
  lookhops report {0} --data solubility -o report.html"""


@with_options
def demo(output: Path = Path("demo"), seeds: int = 3, epochs: int = EPOCHS) -> None:
    """Look, train, compare, predict, explain and report, on the bundled molecules.

    The questions: does a molecule dissolve in water (low, medium, high), and how much of it does
    (log mol/L)? Under two minutes on two cores.

    Args:
        output: Folder for the models and pictures.
        seeds: Seeds of each model.
        epochs: Most epochs of a run.
    """
    from lookhops.learners import Network, recommend
    from lookhops.models import Predictor
    from lookhops.models.config import INFORMATION
    from lookhops.neighbourhoods import look
    from lookhops.report.build import report_on
    from lookhops.sources.loading import load
    from lookhops.sources.molecules import from_smiles
    from lookhops.tasks import task_of

    start = time.perf_counter()
    protocol = Protocol(parse_seeds(seeds), max_epochs=epochs, patience=PATIENCE)
    protocol = replace(protocol, batch_size=BATCH_SIZE)
    graphs = load("solubility")
    _heading(1, f"Look: how many hops matter in {len(graphs):,} molecules and their solubility?")
    found = look(graphs)
    gains = ("information gain", *(f"{gain:.3f}" for gain in found.gain))
    lost = ("lost beyond k", *(f"{100 * share:.1f}%" for share in found.lost(found.k)))
    out.print(grid([gains, lost], ("hops k", *(f"{k}" for k in found.k))))
    out.print(found.sentence())

    of_each = counted(seeds, "seed")
    _heading(2, f"Train: the recommended model, and a GCN beside it, {of_each} each")
    best = recommend(graphs, task_of(graphs), int(0.8 * len(graphs)))
    out.print(f"Recommended is {best.said}.")
    out.print(
        f"[dim]For the demo, the GCN has batches of {BATCH_SIZE}, at most "
        f"{counted(epochs, 'epoch')}, patience {PATIENCE}; the paper's protocol has 10 seeds, 256, "
        "500 and 30.[/]"
    )
    measured = load("solubility", target="value")
    on_numbers = output / NUMBERS / "lookhops"
    classes = _train("LookHops", best.learner, output / "lookhops", protocol, graphs)
    numbers = _train("LookHops on numbers", best.learner, on_numbers, protocol, measured)
    gcn = _train("GCN", Network(Architecture(conv="gcn")), output / "gcn", protocol, graphs)
    out.print(_figures(graphs, {"LookHops": classes, "GCN": gcn}))

    _heading(3, "Numbers: the measured solubility, in log mol/L")
    out.print(_figures(measured, {"LookHops": numbers}))

    _heading(4, "Predict: five molecules that are not in the set")
    predictor = Predictor(output / "lookhops")
    molecules = from_smiles(MOLECULES.values(), ids=MOLECULES, name="five molecules")
    much = Predictor(on_numbers).predict(molecules)
    out.print(_answers(predictor.predict(molecules), much))

    _heading(5, "Explain: which atoms and bonds make the answer?")
    for record in with_pictures(shared(predictor, molecules), output / "pictures"):
        print_line(f"  {output / 'pictures' / record['picture']}")

    _heading(6, "Report: all of it on one page, to look at and to send")
    write_json(output / INFORMATION, found.to_dict())  # for later reports too
    command = shlex.join(["lookhops", "report", str(output), "--data", "solubility"])
    made = report_on(output, graphs, [("Make this page", command)])
    write_page(made, output / "report.html")

    _heading(7, f"Done in {time.perf_counter() - start:.0f} s. What to type next:")
    print_line(NEXT.format(shlex.quote(str(output / "lookhops"))))


def _heading(number: int, text: str) -> None:
    out.print(f"\n[bold cyan]{number}[/]  [bold]{escape(text)}[/]")


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


def _train(
    name: str, learner: Learner, folder: Path, protocol: Protocol, graphs: Graphs
) -> dict[str, Any]:
    """Train a model into a folder, its seeds side by side; what ``config.json`` holds."""
    from lookhops.models import train_into
    from lookhops.models.folder import Provenance

    kept = Provenance(command=command_line())
    options: dict[str, Any] = {"overwrite": True, "processes": None, "provenance": kept}
    fitting = "" if learner.has_epochs else f"{name}: fitting {learner.spelled}"
    with epoch_display(protocol, name, fitting) as show:
        return train_into(folder, graphs, learner, protocol, on_epoch=show, **options)


def _figures(graphs: Graphs, trained: Mapping[str, Mapping[str, Any]]) -> Table:
    from lookhops.tasks import task_of

    metrics = [m for m in task_of(graphs).metrics if m.shown and not m.about_calibration]
    metrics = [m for m in metrics if m.name not in LEFT_OUT]
    rows = []
    for name, config in trained.items():
        summary = config["metrics"]["summary"]
        found = ((metric, summary[metric.name]) for metric in metrics)
        figures = (m.written(f["mean"], f["std"]).removesuffix(" %") for m, f in found)
        rows.append((name, *figures))
    test = "test, %" if metrics[0].share else "test"
    titles = (metric.title.rpartition(", ")[2] for metric in metrics)
    return grid(rows, (test, *titles))
