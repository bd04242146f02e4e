"""``lookhops demo``: all of it in two minutes, on the bundled molecules."""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from lookhops.cli.common import out
from lookhops.cli.report import command_line, write

if TYPE_CHECKING:
    from lookhops.graphs import Graphs
    from lookhops.models import Predictor
    from lookhops.nn import Architecture

# Well-known molecules that the bundled set does not have.
MOLECULES = {
    "aspirin": "CC(=O)Oc1ccccc1C(=O)O",
    "vitamin C": "OCC(O)C1OC(=O)C(O)=C1O",
    "vanillin": "COc1cc(C=O)ccc1O",
    "capsaicin": "COc1cc(CNC(=O)CCCCC=CC(C)C)ccc1O",
    "DDT": "Clc1ccc(cc1)C(c1ccc(Cl)cc1)C(Cl)(Cl)Cl",
}
EPOCHS, PATIENCE, BATCH_SIZE = 40, 10, 64


def demo(
    output: Annotated[
        Path, typer.Option("-o", "--output", help="Folder for the models and pictures.")
    ] = Path("demo"),
    seeds: Annotated[int, typer.Option(min=1, help="Seeds of each model.")] = 3,
    epochs: Annotated[int, typer.Option(min=1, help="At most so many.")] = EPOCHS,
) -> None:
    """Look, train, compare, predict, explain and report, on the bundled molecules.

    The question: does a molecule dissolve in water (low, medium, high)? Under three minutes on two
    cores.
    """
    from lookhops.datasets import load
    from lookhops.information import look
    from lookhops.models import Predictor
    from lookhops.nn import RECOMMENDED, Architecture

    start = time.perf_counter()
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
        name: _train(output / name.lower(), graphs, name, network, seeds, epochs)
        for name, network in networks.items()
    }
    out.print(_comparison(configs))

    _heading(3, "Predict: five molecules that are not in the set")
    predictor = Predictor(output / "lookhops")
    out.print(_predict(predictor))

    _heading(4, "Explain: what did the pooling layers keep?")
    for path in _explain(predictor, output / "pictures"):
        out.print(f"  {escape(str(path))}", soft_wrap=True)

    _heading(5, "Report: all of it on one page, to look at and to send")
    _report(output, graphs, found, networks)

    folder = escape(shlex.quote(str(output / "lookhops")))
    _heading(6, f"Done in {time.perf_counter() - start:.0f} s. What to type next:")
    for line in (
        "lookhops look YOURS.csv",
        "lookhops train YOURS.csv --k auto -o model",
        f'echo "CCO ethanol" | lookhops predict {folder} -',
        f'echo "CCO ethanol" | lookhops explain {folder} - -o pictures',
        f"lookhops report {folder} --data solubility -o report.html",
    ):
        out.print(f"  {line}", soft_wrap=True)


def _heading(number: int, text: str) -> None:
    out.print(f"\n[bold cyan]{number}[/]  [bold]{escape(text)}[/]")


def _look_table(found: Any) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column()
    for _ in found.k:
        table.add_column(justify="right")
    table.add_row("hops k", *(f"{k}" for k in found.k), style="dim")
    table.add_row("information gain", *(f"{gain:.3f}" for gain in found.gain))
    table.add_row("lost beyond k", *(f"{100 * share:.1f}%" for share in found.lost(found.k)))
    return table


def _train(
    folder: Path, graphs: Graphs, name: str, network: Architecture, seeds: int, epochs: int
) -> dict[str, Any]:
    from lookhops.cli.epochs import EpochDisplay
    from lookhops.models import train_into
    from lookhops.training import Protocol
    from lookhops.training.protocol import parse_seeds

    protocol = Protocol(
        seeds=parse_seeds(seeds), max_epochs=epochs, patience=PATIENCE, batch_size=BATCH_SIZE
    )
    with EpochDisplay(protocol, name) as show:
        return train_into(
            folder,
            graphs,
            network,
            protocol,
            overwrite=True,
            on_epoch=show,
            command=command_line(),
        )


def _comparison(configs: dict[str, dict[str, Any]]) -> Table:
    from lookhops.words import duration

    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    for _ in range(5):
        table.add_column(justify="right", no_wrap=True)
    head = ("accuracy", "macro-F1", "AUROC", "parameters", "epoch")
    table.add_row("test, %", *head, style="dim")
    for name, config in configs.items():
        summary = config["metrics"]["summary"]
        figures = [
            f"{100 * summary[key]['mean']:.1f} ± {100 * summary[key]['std']:.1f}"
            for key in ("accuracy", "macro_f1", "auroc")
        ]
        seconds = duration(config["seconds_per_epoch"])
        table.add_row(name, *figures, f"{config['parameters']:,}", seconds)
    return table


def _molecules() -> Graphs:
    from lookhops.datasets.molecules import from_smiles

    return from_smiles(MOLECULES.values(), ids=MOLECULES, name="five molecules")


def _predict(predictor: Predictor) -> Table:
    answers = predictor.predict(_molecules())
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    table.add_column(style="bold", no_wrap=True)
    for _ in (*answers.class_names, "agreement"):
        table.add_column(justify="right", no_wrap=True)
    shown = (f"p({name})" for name in answers.class_names)
    table.add_row("molecule", "[not bold]solubility[/]", *shown, "seeds agree", style="dim")
    for row in zip(
        answers.ids, answers.classes, answers.probabilities, answers.agreement, strict=True
    ):
        name, predicted, p, agreement = row
        table.add_row(name, predicted, *(f"{value:.2f}" for value in p), f"{agreement:.0%}")
    return table


def _explain(predictor: Predictor, folder: Path) -> list[Path]:
    from lookhops.cli.explain import Names, write_picture
    from lookhops.models.explain import explain

    names, paths = Names(), []
    for explanation in explain(predictor, _molecules()):
        paths.append(folder / names.take(explanation.id))
        write_picture(paths[-1], explanation)
    return paths


def _report(output: Path, graphs: Graphs, found: Any, names: Iterable[str]) -> None:
    """Keep the hop information, for later reports too, and write the page."""
    from lookhops.files import write_json
    from lookhops.report.build import folder_report
    from lookhops.report.folders import INFORMATION, read_folder

    write_json(output / INFORMATION, found.to_dict())
    models = [read_folder(output / name.lower()) for name in names]
    again = [
        ("Make this page", shlex.join(["lookhops", "report", str(output), "--data", "solubility"]))
    ]
    made = folder_report(models, graphs, found.to_dict(), again)
    write(made, output / "report.html")
