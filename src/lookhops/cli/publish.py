"""``lookhops report``, ``export`` and ``serve``: a model as a page, as one file, behind HTTP."""

from __future__ import annotations

import logging
import secrets
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated

import typer

from lookhops.cli.shared.output import (
    check_page,
    command_line,
    print_json,
    print_line,
    remark,
    write_page,
)
from lookhops.cli.shared.parameters import Json, Plugins, with_options
from lookhops.cli.shared.reading import Model, Reading, warnings_as_lines
from lookhops.core import reading as graph_reading
from lookhops.core.errors import LookHopsError
from lookhops.core.files import read_bytes
from lookhops.core.options import Limits
from lookhops.core.words import counted, memory

#: Graphs that are recorded with, and that the file is checked on.
RECORDED, CHECKED = 5, 1000


@with_options
def report(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="DIR|STORE",
            help="A model's folder, a folder of such folders, a store of results (.sqlite) or "
            "exported results (.json).",
            show_default=False,
        ),
    ],
    output: Path = Path("report.html"),
    data: str | None = None,
    plugin: Plugins = None,
    as_json: Json = False,
    *,
    reading: Reading,
) -> None:
    """Write one self-contained HTML page about a model, a comparison or an experiment.

    It needs no network, and holds what is there: the data, the hops, the training, the results,
    the comparison, what the model looked at, and how to do it again.

    Args:
        output: The page to write.
        data: The graphs that the model was trained on (as for `train`): adds the gallery of what it
            looked at. What is not chosen about reading is as it was for training.
    """
    check_page(output)
    from lookhops.report.build import report_on
    from lookhops.report.folders import reading_of

    graphs = None
    if data is not None:
        stored = reading_of(source)
        # What other sources do not take over from a model's reading, where nothing else was chosen.
        names = ["target", "task", "duplicates", "features"]
        names += ["task_size", "task_seed"] if data.startswith("hops-") else []
        usual = {name: getattr(graph_reading.AS_USUAL, name) for name in names}
        open_names = [name for name in names if getattr(reading, name) == usual[name]]
        reading = replace(reading, **{name: getattr(stored, name) for name in open_names})
        graphs = reading.load(data, stored)
    made = report_on(source, graphs, [("Make this page", command_line())])
    write_page(made, output, quiet=as_json)
    if as_json:
        sections = {section.name: section.title for section in made.sections}
        written = {"report": str(output), "title": made.title, "bytes": output.stat().st_size}
        print_json({**written, "sections": sections})


@with_options
def export(
    model: Model,
    output: Path,
    check: str | None = None,
    plugin: Plugins = None,
    as_json: Json = False,
    *,
    reading: Reading,
) -> None:
    """Write a trained model as one file, `.onnx` or `.pt2`, that runs without LookHops.

    It takes arrays of labels, numbers and edges of any number of graphs and gives calibrated
    probabilities or numbers, as `predict` does, from all networks together. The file is then run
    beside the model on 1,000 graphs, and the largest difference is printed.

    Args:
        output: The file: .onnx for ONNX runtimes, .pt2 for PyTorch.
        check: Graphs to check it on, as for `train`, the first 1,000; by default made-up ones.
    """
    from lookhops.models import Predictor
    from lookhops.models.export import compare, export_model, load_exported
    from lookhops.models.exported import made_up

    predictor = Predictor(model, "cpu")
    graphs = made_up(predictor, CHECKED)
    example = predictor.encoding.read(graphs[:RECORDED])
    if check is not None:
        graphs = reading.load_input(check, predictor.reading)[:CHECKED]
        if not len(graphs):
            raise LookHopsError(f"{check}: there are no graphs to check the file on.")
    with warnings_as_lines():
        graphs = predictor.read(graphs)
        about = export_model(predictor, output, example)
        found = compare(predictor, load_exported(output), graphs)
    if as_json:
        print_json({"file": str(output), **about, "check": {"data": graphs.name, **asdict(found)}})
    else:
        print_line(
            f"{output}: {memory(output.stat().st_size)}, inputs {', '.join(about['inputs'])}"
        )
        on = f"{counted(found.graphs, 'graph')} ({graphs.name})"
        print_line(f"largest difference from our own answers in {on}: {found}")
    if not found.is_small:
        raise typer.Exit(1)


@with_options
def serve(
    models: Annotated[
        list[Path], typer.Argument(metavar="DIR...", help="Folders that `train` wrote.")
    ],
    host: str = "127.0.0.1",
    port: int = 8000,
    token_file: Path | None = None,
    device: str = "auto",
    plugin: Plugins = None,
    *,
    limits: Annotated[Limits, "Limits"],
) -> None:
    """Serve models: a page for people, an API for programs.

    The page answers SMILES that are pasted or drawn and files that are dropped, and shows what
    each answer rests on. Programs ask `/v1/predict` and its like; `/openapi.json` describes them,
    `/metrics` is for Prometheus. A model is reloaded when its folder changes. SIGTERM or Ctrl-C
    ends the service when the requests that are under way are answered. Without `--host` only this
    machine can ask; with it a token is needed.

    Args:
        host: Address to listen at; `0.0.0.0` for all of this machine's.
        port: Port to listen at; 0 for any that is free.
        token_file: File with the token that requests must carry; by default none on this machine
            alone, and elsewhere one that is made up and printed.
    """
    from lookhops.serve.app import address_of, bind, create_app, run
    from lookhops.serve.guard import LOOPBACK

    logging.basicConfig(format="%(levelname)s: %(message)s", level=logging.WARNING)
    logging.getLogger("lookhops.serve").setLevel(logging.INFO)
    alone = host in LOOPBACK
    token = _token(token_file) if token_file else "" if alone else secrets.token_urlsafe(24)
    bound = bind(host, port)
    hosts = LOOPBACK if alone else ()
    app = create_app(models, limits, token=token, hosts=hosts, device=device)

    def ready() -> None:
        at = address_of(bound)
        names = ", ".join(folder.resolve().name for folder in models)
        remark(f"{names}: {at}/{f'#token={token}' if token else ''}")

    run(app, bound, ready)
    remark("stopped")


def _token(path: Path) -> str:
    token = read_bytes(path).decode("utf-8", "replace").strip()
    if len(token) < 16 or not token.isascii() or not token.isprintable() or " " in token:
        raise LookHopsError(f"{path}: a token is a word of at least 16 letters and digits.")
    return token
