"""``lookhops report``: one page that shows what was measured, trained and compared."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from lookhops.cli.shared.parameters import Json, Plugins, with_options
from lookhops.cli.shared.printing import print_json
from lookhops.cli.shared.reading import Reading
from lookhops.cli.shared.writing import check_page, command_line, write_page
from lookhops.core import reading as graph_reading


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
    output: Annotated[
        Path, typer.Option("-o", "--output", help="The page to write.", callback=check_page)
    ] = Path("report.html"),
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
        data: The graphs that the model was trained on (as for `train`): adds the gallery of what it
            looked at. What is not chosen about reading is as it was for training.
    """
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
