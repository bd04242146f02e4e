"""``lookhops demo``: all of it in two minutes, on the bundled molecules."""

from __future__ import annotations

import shlex
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.markup import escape
from rich.table import Table

from lookhops.cli.explain import with_pictures
from lookhops.cli.shared.parameters import with_options
from lookhops.cli.shared.printing import grid, out, print_line
from lookhops.cli.shared.writing import command_line, write_page
from lookhops.files import write_json
from lookhops.options import RECOMMENDED, Architecture, Protocol, parse_seeds
from lookhops.words import duration, plus_minus

if TYPE_CHECKING:
    from lookhops.graphs import Graphs
    from lookhops.information import HopInformation

# Well-known molecules that the bundled set does not have.
MOLECULES = {
    "aspirin": "CC(=O)Oc1ccccc1C(=O)O",
    "vitamin C": "OCC(O)C1OC(=O)C(O)=C1O",
    "vanillin": "COc1cc(C=O)ccc1O",
    "capsaicin": "COc1cc(CNC(=O)CCCCC=CC(C)C)ccc1O",
    "DDT": "Clc1ccc(cc1)C(c1ccc(Cl)cc1)C(Cl)(Cl)Cl",
}
EPOCHS, PATIENCE, BATCH_SIZE = 40, 10, 64
NEXT = """\
  lookhops look YOURS.csv
  lookhops train YOURS.csv --k auto -o model
  echo "CCO ethanol" | lookhops predict {0} -
  echo "CCO ethanol" | lookhops explain {0} - -o pictures
  lookhops report {0} --data solubility -o report.html"""


@with_options
def demo(output: Path = Path("demo"), seeds: int = 3, epochs: int = EPOCHS) -> None:
    """Look, train, compare, predict, explain and report, on the bundled molecules.

    The question: does a molecule dissolve in water (low, medium, high)? Under three minutes on two
    cores.

    Args:
        output: Folder for the models and pictures.
        seeds: Seeds of each model.
        epochs: Most epochs of a run.
    """
    from lookhops.datasets import load
    from lookhops.datasets.molecules import from_smiles
    from lookhops.information import look
    from lookhops.models import Predictor
    from lookhops.models.explain import explain

    start = time.perf_counter()
    protocol = Protocol(parse_seeds(seeds), max_epochs=epochs, patience=PATIENCE)
    protocol = replace(protocol, batch_size=BATCH_SIZE)
    graphs = load("solubility")
    _heading(1, f"Look: how many hops matter in {len(graphs):,} molecules and their solubility?")
    found = look(graphs)
    out.print(_gains(found))
    out.print(found.sentence())

    _heading(2, f"Train: LookHops and GCN, {seeds} seeds each, on the same splits")
    out.print(
        f"[dim]For the demo, batches of {BATCH_SIZE}, at most {epochs} epochs, patience "
        f"{PATIENCE}; the paper's protocol has 10 seeds, 256, 500 and 30.[/]"
    )
    networks = {
        "LookHops": replace(RECOMMENDED, k=found.suggested_k or 2),
        "GCN": Architecture(conv="gcn"),
    }
    out.print(_train(output, graphs, networks, protocol))

    _heading(3, "Predict: five molecules that are not in the set")
    predictor = Predictor(output / "lookhops")
    molecules = from_smiles(MOLECULES.values(), ids=MOLECULES, name="five molecules")
    answers = predictor.predict(molecules)
    head = (
        "molecule",
        "solubility",
        *(f"p({name})" for name in answers.class_names),
        "seeds agree",
    )
    rows = [
        (name, answers.classes[i], *(f"{p:.2f}" for p in answers.probabilities[i]), f"{agree:.0%}")
        for i, (name, agree) in enumerate(zip(answers.ids, answers.agreement, strict=True))
    ]
    out.print(grid(rows, head, ("", "left bold")))

    _heading(4, "Explain: what did the pooling layers keep?")
    for record in with_pictures(explain(predictor, molecules), output / "pictures"):
        print_line(f"  {output / 'pictures' / record['picture']}")

    _heading(5, "Report: all of it on one page, to look at and to send")
    _report(output, graphs, found)

    _heading(6, f"Done in {time.perf_counter() - start:.0f} s. What to type next:")
    print_line(NEXT.format(shlex.quote(str(output / "lookhops"))))


def _heading(number: int, text: str) -> None:
    out.print(f"\n[bold cyan]{number}[/]  [bold]{escape(text)}[/]")


def _gains(found: HopInformation) -> Table:
    rows = [
        ("information gain", *(f"{gain:.3f}" for gain in found.gain)),
        ("lost beyond k", *(f"{100 * share:.1f}%" for share in found.lost(found.k))),
    ]
    return grid(rows, ("hops k", *(f"{k}" for k in found.k)))


def _train(
    output: Path, graphs: Graphs, networks: Mapping[str, Architecture], protocol: Protocol
) -> Table:
    """Train the networks, each in a folder of its name; their figures side by side."""
    from lookhops.cli.shared.progress import epoch_display
    from lookhops.models import train_into
    from lookhops.tasks import task_of

    metrics = [m for m in task_of(graphs).metrics if m.shown and not m.about_calibration]
    metrics = [
        m for m in metrics if m.name not in ("majority", "balanced_accuracy")
    ]  # for want of room
    options: dict[str, Any] = {"overwrite": True, "command": command_line()}
    rows = []
    for name, network in networks.items():
        folder = output / name.lower()
        with epoch_display(protocol, name) as show:
            config = train_into(folder, graphs, network, protocol, on_epoch=show, **options)
        found = (config["metrics"]["summary"][metric.name] for metric in metrics)
        figures = (plus_minus((100 * f["mean"], 100 * f["std"])) for f in found)
        seconds = duration(config["seconds_per_epoch"])
        rows.append((name, *figures, f"{config['parameters']:,}", seconds))
    return grid(rows, ("test, %", *(metric.title for metric in metrics), "parameters", "epoch"))


def _report(output: Path, graphs: Graphs, found: HopInformation) -> None:
    """Keep the hop information, for later reports too, and write the page."""
    from lookhops.models.folder import INFORMATION
    from lookhops.report.build import folder_report
    from lookhops.report.folders import read_folder

    write_json(output / INFORMATION, found.to_dict())
    models = [read_folder(output / name) for name in ("lookhops", "gcn")]
    command = shlex.join(["lookhops", "report", str(output), "--data", "solubility"])
    made = folder_report(models, graphs, found.to_dict(), [("Make this page", command)])
    write_page(made, output / "report.html")
