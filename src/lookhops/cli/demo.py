"""``lookhops demo``: all of it in two minutes, on the bundled molecules."""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.markup import escape
from rich.table import Table

from lookhops.cli.shared.parameters import with_options
from lookhops.cli.shared.printing import grid, out, print_line
from lookhops.cli.shared.writing import command_line, write_page
from lookhops.options import RECOMMENDED, Architecture, Protocol, parse_seeds
from lookhops.words import duration, plus_minus

if TYPE_CHECKING:
    from lookhops.graphs import Graphs
    from lookhops.information import HopInformation
    from lookhops.models import Predictor

# Well-known molecules that the bundled set does not have.
MOLECULES = {
    "aspirin": "CC(=O)Oc1ccccc1C(=O)O",
    "vitamin C": "OCC(O)C1OC(=O)C(O)=C1O",
    "vanillin": "COc1cc(C=O)ccc1O",
    "capsaicin": "COc1cc(CNC(=O)CCCCC=CC(C)C)ccc1O",
    "DDT": "Clc1ccc(cc1)C(c1ccc(Cl)cc1)C(Cl)(Cl)Cl",
}
EPOCHS, PATIENCE, BATCH_SIZE = 40, 10, 64


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
    from lookhops.information import look
    from lookhops.models import Predictor

    start = time.perf_counter()
    protocol = Protocol(
        seeds=parse_seeds(seeds), max_epochs=epochs, patience=PATIENCE, batch_size=BATCH_SIZE
    )
    graphs = load("solubility")
    _heading(1, f"Look: how many hops matter in {len(graphs):,} molecules and their solubility?")
    found = look(graphs)
    out.print(_look_table(found))
    out.print(found.sentence())
    k = found.suggested_k or 2

    _heading(2, f"Train: LookHops and GCN, {seeds} seeds each, on the same splits")
    out.print(
        f"[dim]For the demo, batches of {BATCH_SIZE}, at most {epochs} epochs, patience "
        f"{PATIENCE}; the paper's protocol has 10 seeds, 256, 500 and 30.[/]"
    )
    networks = {"LookHops": replace(RECOMMENDED, k=k), "GCN": Architecture(conv="gcn")}
    configs = {
        name: _train(output / name.lower(), graphs, name, network, protocol)
        for name, network in networks.items()
    }
    out.print(_comparison(configs))

    _heading(3, "Predict: five molecules that are not in the set")
    predictor = Predictor(output / "lookhops")
    out.print(_predict(predictor))

    _heading(4, "Explain: what did the pooling layers keep?")
    for path in _explain(predictor, output / "pictures"):
        print_line(f"  {path}")

    _heading(5, "Report: all of it on one page, to look at and to send")
    _report(output, graphs, found, networks)

    folder = shlex.quote(str(output / "lookhops"))
    _heading(6, f"Done in {time.perf_counter() - start:.0f} s. What to type next:")
    for line in (
        "lookhops look YOURS.csv",
        "lookhops train YOURS.csv --k auto -o model",
        f'echo "CCO ethanol" | lookhops predict {folder} -',
        f'echo "CCO ethanol" | lookhops explain {folder} - -o pictures',
        f"lookhops report {folder} --data solubility -o report.html",
    ):
        print_line(f"  {line}")


def _heading(number: int, text: str) -> None:
    out.print(f"\n[bold cyan]{number}[/]  [bold]{escape(text)}[/]")


def _look_table(found: HopInformation) -> Table:
    rows = [
        ("information gain", *(f"{gain:.3f}" for gain in found.gain)),
        ("lost beyond k", *(f"{100 * share:.1f}%" for share in found.lost(found.k))),
    ]
    return grid(rows, ("hops k", *(f"{k}" for k in found.k)))


def _train(
    folder: Path, graphs: Graphs, name: str, network: Architecture, protocol: Protocol
) -> dict[str, Any]:
    from lookhops.cli.shared.progress import EpochDisplay
    from lookhops.models import train_into

    command = command_line()
    with EpochDisplay(protocol, name) as show:
        return train_into(
            folder, graphs, network, protocol, overwrite=True, on_epoch=show, command=command
        )


def _comparison(configs: dict[str, dict[str, Any]]) -> Table:
    from lookhops.tasks import Classification

    metrics = [m for m in Classification.metrics if m.shown and not m.about_calibration]
    metrics = [m for m in metrics if m.name != "balanced_accuracy"]  # for want of room
    rows = []
    for name, config in configs.items():
        summary = config["metrics"]["summary"]
        found = [summary[metric.name] for metric in metrics]
        figures = (plus_minus((100 * f["mean"], 100 * f["std"])) for f in found)
        seconds = duration(config["seconds_per_epoch"])
        rows.append((name, *figures, f"{config['parameters']:,}", seconds))
    return grid(rows, ("test, %", *(metric.title for metric in metrics), "parameters", "epoch"))


def _molecules() -> Graphs:
    from lookhops.datasets.molecules import from_smiles

    return from_smiles(MOLECULES.values(), ids=MOLECULES, name="five molecules")


def _predict(predictor: Predictor) -> Table:
    answers = predictor.predict(_molecules())
    columns = answers.ids, answers.classes, answers.probabilities, answers.agreement
    rows = (
        (name, predicted, *(f"{value:.2f}" for value in p), f"{agreement:.0%}")
        for name, predicted, p, agreement in zip(*columns, strict=True)
    )
    shown = (f"p({name})" for name in answers.class_names)
    return grid(rows, ("molecule", "solubility", *shown, "seeds agree"), ("", "left bold"))


def _explain(predictor: Predictor, folder: Path) -> list[Path]:
    from lookhops.cli.shared.pictures import with_pictures
    from lookhops.models.explain import explain

    found = with_pictures(explain(predictor, _molecules()), folder)
    return [folder / record["picture"] for record in found]


def _report(output: Path, graphs: Graphs, found: HopInformation, names: Iterable[str]) -> None:
    """Keep the hop information, for later reports too, and write the page."""
    from lookhops.files import write_json
    from lookhops.report.build import folder_report
    from lookhops.report.folders import INFORMATION, read_folder

    write_json(output / INFORMATION, found.to_dict())
    models = [read_folder(output / name.lower()) for name in names]
    command = shlex.join(["lookhops", "report", str(output), "--data", "solubility"])
    made = folder_report(models, graphs, found.to_dict(), [("Make this page", command)])
    write_page(made, output / "report.html")
