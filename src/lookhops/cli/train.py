"""``lookhops train``: learn to classify graphs, and keep the model in a folder."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from lookhops.cli.common import (
    Json,
    err,
    out,
    print_json,
    warn,
)
from lookhops.cli.groups import with_groups
from lookhops.cli.reading import Reading, Source
from lookhops.cli.report import ReportFile, check_page, command_line, write
from lookhops.errors import LookHopsError

if TYPE_CHECKING:
    from lookhops.graphs import Graphs
    from lookhops.information import HopInformation
    from lookhops.training.trainer import Progress

#: Hops where the hop information cannot say: the paper's.
FALLBACK_K = 2
NETWORK, TRAINING, RUN = "The network", "Training (defaults: the paper's)", "The run"


def _option(panel: str, *names: str, **rest: Any) -> Any:
    return typer.Option(*names, rich_help_panel=panel, **rest)


@with_groups
def train(
    source: Source,
    output: Annotated[Path, _option(RUN, "-o", "--output", help="Folder for the model.")],
    conv: Annotated[
        str,
        _option(NETWORK, help="licheb, limixhop, gcn, gat, cheb or mixhop."),
    ] = "licheb",
    pool: Annotated[
        str, _option(NETWORK, help="lookhops, none, topk, sag, edge or asap.")
    ] = "lookhops",
    k: Annotated[
        str, _option(NETWORK, help="Hops that a layer looks: a number, or `auto`, which measures.")
    ] = "2",
    hidden: Annotated[int, _option(NETWORK, min=2, help="Channels of a layer.")] = 128,
    layers: Annotated[int, _option(NETWORK, min=1, help="Layers.")] = 5,
    ratio: Annotated[float, _option(NETWORK, help="Fraction of nodes that pooling keeps.")] = 0.9,
    edge_ratio: Annotated[
        float | None,
        _option(NETWORK, help="Fraction of edges that it keeps.", show_default="all"),
    ] = None,
    activation: Annotated[
        str, _option(NETWORK, help="Of the score: sigmoid, relu (the paper's), tanh or none.")
    ] = "sigmoid",
    readout: Annotated[
        str, _option(NETWORK, help="Of each graph: max+mean (the paper's) or max+mean+sum.")
    ] = "max+mean+sum",
    dropout: Annotated[
        float, _option(NETWORK, help="Share of features to drop (the paper's: 0).")
    ] = 0.2,
    seeds: Annotated[
        str | None,
        _option(
            TRAINING,
            help="How many, or which (11,22): each is a model. The paper's protocol is 10.",
            show_default="1",
        ),
    ] = None,
    epochs: Annotated[int, _option(TRAINING, min=1, help="At most so many.")] = 500,
    patience: Annotated[
        int, _option(TRAINING, min=1, help="Epochs without improvement before it stops.")
    ] = 30,
    batch_size: Annotated[int, _option(TRAINING, min=1, help="Graphs in a batch.")] = 256,
    lr: Annotated[float, _option(TRAINING, help="Learning rate.")] = 1e-3,
    weight_decay: Annotated[float, _option(TRAINING, help="Of Adam.")] = 0.0,
    splits: Annotated[
        Path | None,
        _option(
            TRAINING,
            help="JSON with the parts: one split for all seeds, or one for each.",
            show_default="each seed draws its own",
        ),
    ] = None,
    stratify: Annotated[
        bool, _option(TRAINING, "--stratify", help="Keep the classes' proportions in each part.")
    ] = False,
    class_weights: Annotated[
        bool, _option(TRAINING, "--class-weights", help="Let rare classes count more.")
    ] = False,
    precision: Annotated[str, _option(RUN, help="float32, tf32, bfloat16 or float64.")] = "float32",
    device: Annotated[
        str, _option(RUN, help="cpu, cuda, or auto: a GPU where there is one.")
    ] = "auto",
    resume: Annotated[
        bool, _option(RUN, "--resume", help="Go on with the training that was begun there.")
    ] = False,
    overwrite: Annotated[
        bool, _option(RUN, "--overwrite", help="Train anew although the folder is not empty.")
    ] = False,
    save_every: Annotated[
        float, _option(RUN, min=0, help="Seconds between two writes of the state.")
    ] = 10.0,
    tensorboard: Annotated[
        Path | None, _option(RUN, help="Folder for TensorBoard logs.", show_default="none")
    ] = None,
    report: ReportFile = None,
    as_json: Json = False,
    *,
    reading: Reading,
) -> None:
    """Train a model for each seed, test it once, and keep all of them in a folder.

    Ctrl-C stops after the epoch and keeps the state (exit code 130); `--resume` goes on from it,
    or from where a kill or a power cut left it, to the same result.
    """
    from lookhops.nn import Architecture
    from lookhops.training import Protocol
    from lookhops.training.protocol import parse_seeds

    if resume and overwrite:
        raise LookHopsError("--resume goes on with a training, --overwrite begins anew: choose.")
    if report is not None:
        check_page(report)
    graphs = reading.load(source)
    parts, seed_list = _splits(splits, graphs, seeds, parse_seeds)
    protocol = Protocol(
        seeds=seed_list,
        stratify=stratify,
        batch_size=batch_size,
        learning_rate=lr,
        weight_decay=weight_decay,
        max_epochs=epochs,
        patience=patience,
        class_weights=class_weights,
        precision=precision,
    )
    chosen_k, information = hops(k, graphs)
    architecture = Architecture(
        conv=conv,
        pool=pool,
        k=chosen_k,
        hidden=hidden,
        layers=layers,
        ratio=ratio,
        edge_ratio=edge_ratio,
        activation=activation,
        readout=readout,
        dropout=dropout,
    )
    options = {
        "splits": parts,
        "device": device,
        "resume": resume,
        "overwrite": overwrite,
        "save_every": save_every,
        "command": command_line(),
    }
    config = _run(output, graphs, architecture, protocol, options, tensorboard)
    _keep_information(output, information)
    if as_json:
        print_json(config)
    else:
        _print(config, output)
    if report is not None:
        from lookhops.report.build import report_on

        write(report_on(output, graphs), report, quiet=as_json)


def hops(k: str, graphs: Graphs) -> tuple[int, HopInformation | None]:
    """The number that ``--k`` stands for, and what was measured to find it."""
    if k != "auto":
        if not k.isdigit():
            raise LookHopsError(f"--k is a number of hops from 0, or auto, not {k!r}.")
        return int(k), None
    from lookhops.information import look

    try:
        information = look(graphs, bootstrap=0)
    except LookHopsError as error:
        warn(f"k = {FALLBACK_K}, because the hop information cannot be had: {error}")
        return FALLBACK_K, None
    found = information.suggested_k
    if found is None:
        warn(f"k = {FALLBACK_K}, because the hop information does not die away and suggests none")
        return FALLBACK_K, information
    if found > information.max_k:
        warn(f"k = {information.max_k}, the most that was measured; suggested was k = {found}")
        return information.max_k, information
    err.print(f"k = {found}, which the hop information suggests", soft_wrap=True)
    return found, information


def _keep_information(folder: Path, information: HopInformation | None) -> None:
    """Keep what chose k beside the model; what chose an earlier model's goes."""
    from lookhops.files import write_json
    from lookhops.report.folders import INFORMATION

    if information is None:
        (folder / INFORMATION).unlink(missing_ok=True)
    else:
        write_json(folder / INFORMATION, information.to_dict())


def _splits(
    path: Path | None, graphs: Graphs, seeds: str | None, parse: Callable[..., tuple[int, ...]]
) -> tuple[list[Any] | None, tuple[int, ...]]:
    """The splits, one a seed, and the seeds."""
    if path is None:
        return None, parse(seeds or "1")
    from lookhops.datasets import read_splits

    parts = read_splits(path, len(graphs))
    chosen = parse(seeds or len(parts))
    return (parts * len(chosen) if len(parts) == 1 else parts), chosen


def _run(
    output: Path,
    graphs: Graphs,
    architecture: Any,
    protocol: Any,
    options: dict[str, Any],
    tensorboard: Path | None,
) -> dict[str, Any]:
    """Train, with a progress bar and a polite end when the user asks for one."""
    from lookhops.cli.epochs import EpochDisplay, Stopped, stoppable
    from lookhops.models.resumable_training import train_into

    try:
        with ExitStack() as stack:
            log = stack.enter_context(_Logs(tensorboard)) if tensorboard else None
            check = stack.enter_context(stoppable())
            show = stack.enter_context(EpochDisplay(protocol))

            def on_epoch(progress: Progress) -> None:
                show(progress)
                if log is not None:
                    log(progress)
                check()

            return train_into(output, graphs, architecture, protocol, on_epoch=on_epoch, **options)
    except (Stopped, KeyboardInterrupt) as stop:
        again = [word for word in sys.argv[1:] if word not in ("--resume", "--overwrite")]
        command = shlex.join(["lookhops", *again, "--resume"])
        err.print(f"lookhops: interrupted; go on with: {escape(command)}", soft_wrap=True)
        raise typer.Exit(getattr(stop, "exit_code", 130)) from None


def _print(config: dict[str, Any], output: Path) -> None:
    from lookhops.cli.results import results_panel

    out.print(results_panel(config))
    if "stopped" in config:
        warn(config["stopped"])
    shown = shlex.quote(str(output))
    out.print(f"[dim]saved in[/] {escape(str(output))}", soft_wrap=True)
    out.print(f"[dim]next:[/] lookhops predict {escape(shown)} INPUT", soft_wrap=True)


class _Logs:
    """TensorBoard logs: losses and accuracy of each seed."""

    def __init__(self, folder: Path) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError as error:
            raise LookHopsError(
                "TensorBoard logs need a package more: pip install tensorboard."
            ) from error
        self.make = SummaryWriter
        self.folder = folder
        self.writers: dict[int, Any] = {}

    def __enter__(self) -> _Logs:
        return self

    def __exit__(self, *_: Any) -> None:
        for writer in self.writers.values():
            writer.close()

    def __call__(self, progress: Progress) -> None:
        for run in progress.runs:
            row = run.history[-1]
            if run.seed not in self.writers:
                self.writers[run.seed] = self.make(str(self.folder / f"seed-{run.seed}"))
            for name in ("train_loss", "val_loss", "val_accuracy"):
                self.writers[run.seed].add_scalar(name, row[name], int(row["epoch"]))
