"""``lookhops predict``: answers to new graphs, and how sure they are."""

from __future__ import annotations

import io
import sys
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lookhops.cli.shared.parameters import Json, Plugins, with_options
from lookhops.cli.shared.printing import err, print_json, print_line, warn
from lookhops.cli.shared.reading import Input, Model, Reading
from lookhops.cli.shared.streaming import (
    Streaming,
    check_output,
    growing,
    opened,
    work_through,
)
from lookhops.core.errors import LookHopsError
from lookhops.core.options import option
from lookhops.core.words import agreeing, counted, visible

if TYPE_CHECKING:
    from lookhops.core.row_files import RowFile
    from lookhops.models.predictor import Predictions, Predictor
    from lookhops.sources.streams import Part, Stream

#: Ends of the names of files that answers are written to; without one it is CSV too.
KINDS = (".csv", ".parquet", "")


@dataclass(frozen=True)
class Prediction(Streaming):
    """How a large input is answered.

    Args:
        ray: Workers of a Ray cluster that answer; by default this process does.
        address: ray: the cluster (``auto``, HOST:PORT); by default one on this machine.
    """

    ray: int | None = option(None, least=1)
    address: str | None = None


@with_options
def predict(
    model: Model,
    source: Input,
    device: str = "auto",
    coverage: float = 0.9,
    neighbours: int = 0,
    output: Path | None = None,
    plugin: Plugins = None,
    as_json: Json = False,
    *,
    streaming: Annotated[Prediction, "Large inputs"],
    reading: Reading,
) -> None:
    """Answer for new graphs: classes or numbers, and how sure they are.

    One row for each row of the input, in its order and with its columns. The models of all seeds
    answer together: `predicted` is the class, with calibrated probabilities, or the number. The
    set, or the interval, holds the truth with the probability that `--coverage` asks for.
    `agreement` is the share of the seeds that give the same class when asked alone, `spread` their
    standard deviation, `similarity` that to the most similar training graph, from 0 to 1. A
    `warning` says where that is lower than of nearly all validation graphs, or why a row was
    skipped. What is not chosen about reading is as it was for training.

    Inputs of any size are answered part by part. Ctrl-C leaves the rows that are done in a file
    beside the output, and `--resume` goes on with it.

    Args:
        neighbours: How many of the most similar training graphs are given with each answer, each
            with its name, what was measured of it and its similarity.
        output: File to write, .csv or .parquet; by default standard output, as CSV.
    """
    if streaming.resume and output is None:
        raise LookHopsError("--resume goes on with a file: name it with -o.")
    if output is not None:
        if output.suffix.lower() == ".json":
            raise LookHopsError(f"{output}: JSON is printed: leave out -o, and add --json > FILE.")
        check_output(output, KINDS, source)
    with opened(model, device, reading, source, streaming) as (predictor, stream):
        if stopped := predictor.checkpoint.config.get("stopped"):
            warn(f"{model}: {stopped}")
        predictor.check_neighbours(neighbours)
        weights = predictor.checkpoint.config["weights_sha256"]
        made_by = [weights, coverage, neighbours, source, stream.head]
        begun = growing(output, stream, made_by, streaming.resume) if output else None
        with begun or nullcontext() as file:
            summary = Summary(predictor, resumed=bool(file and file.rows))
            told = Told(stream.head, coverage, neighbours, file, as_json, summary)
            _answer(stream, predictor, device, streaming, told)
        if as_json:
            print_json(told.records)
        if file is not None:
            print_line(f"{output}: {counted(file.rows, 'row')}", err)
        summary.tell()


def _answer(
    stream: Stream, predictor: Predictor, device: str, streaming: Prediction, told: Told
) -> None:
    """Answer all parts of a stream, here or on a cluster."""
    asked: dict[str, Any] = {"coverage": told.coverage, "neighbours": told.neighbours}
    if streaming.ray is None:
        answer, here = predictor.predict, predictor.device
        work_through(stream, here, lambda p: answer(p.graphs, **asked), told.write)
        return
    from lookhops.models.ray import RayAnswers

    folder, cluster = predictor.checkpoint.folder, (streaming.ray, streaming.address)
    answered = RayAnswers(stream, folder, device, asked, *cluster)
    work_through(answered, predictor.device, answered.answer, told.write, at_once=1)


@dataclass
class Told:
    """Where answers go: a file, standard output as CSV, or the records that are printed as JSON."""

    head: list[str]
    coverage: float
    neighbours: int
    file: RowFile | None
    as_json: bool
    summary: Summary
    records: list[dict[str, Any]] = field(default_factory=list)

    def write(self, part: Part, answers: Predictions) -> None:
        """Take the answers to a part."""
        from lookhops.models.answers import answer_columns, answer_records

        self.summary.add(part, answers)
        if self.as_json:
            self.records += answer_records(part.graphs, answers)
        if self.file is None and self.as_json:
            return
        as_text = self.file is None or self.file.path.suffix.lower() != ".parquet"
        rest = part.graphs, answers, self.coverage, as_text
        head, columns = answer_columns(self.head, part.cells, *rest)
        if self.file is not None:
            self.file.write(head, columns)
        else:
            _print_rows([] if self.summary.parts > 1 else head, columns)


def _print_rows(head: list[str], columns: list[Any]) -> None:
    """Rows as CSV on standard output, below their head if they are the first."""
    from lookhops.core.row_files import write_csv

    text = io.StringIO()
    if head:
        write_csv(text, [[name] for name in head])
    write_csv(text, columns)
    shown = text.getvalue()
    typer.echo(visible(shown) if sys.stdout.isatty() else shown, nl=False)


class Summary:
    """What is said of all parts in the end: how many graphs are unlike, and how many as labelled.

    Args:
        predictor: The model. With several targets nothing is compared.
        resumed: Whether other graphs were answered earlier; of those nothing is known here.
    """

    def __init__(self, predictor: Predictor, resumed: bool) -> None:
        self.parts = self.unlike = self.known = 0
        self.agreement = 0.0
        self.when = " answered now" if resumed else ""
        heads = predictor.checkpoint.task.heads
        self.task = heads[0].task if len(heads) == 1 else None

    def add(self, part: Part, answers: Predictions) -> None:
        """Count a part; where its rows say what the truth is, compare."""
        from lookhops.graphs.targets import is_blank

        self.parts += 1
        self.unlike += int(answers.unlike.sum())
        if self.task is None:
            return
        gone = {row.row for row in part.graphs.skipped}
        labels = [label for row, label in enumerate(part.labels) if row not in gone]
        known = {label for label in set(labels) if not is_blank(label)}
        true = {graph: label for graph, label in enumerate(labels) if label in known}
        try:
            agreement, count = self.task.agreement(answers.targets[0], true)
        except ValueError:  # the column holds something else
            self.task = None
            return
        self.agreement += agreement
        self.known += count

    def tell(self) -> None:
        """Say it on stderr."""
        if self.unlike:
            said = (
                f"{counted(self.unlike, 'graph')}{self.when} {agreeing(self.unlike, 'is', 'are')}"
            )
            warn(f"{said} unlike all that the model was trained on")
        if self.task is not None and self.known:
            print_line(self.task.agreement_in_words(self.agreement, self.known, self.when), err)
