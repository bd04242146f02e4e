"""``lookhops predict``: answers to new graphs, and how sure they are."""

from __future__ import annotations

import io
import sys
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lookhops.cli.shared.parameters import Json, Plugins, with_options
from lookhops.cli.shared.printing import err, print_json, print_line, warn
from lookhops.cli.shared.reading import Input, Model, Reading
from lookhops.cli.shared.streaming import Streaming, compute, growing, opened, work_through
from lookhops.cli.shared.writing import check_output
from lookhops.core.errors import LookHopsError
from lookhops.core.schema import option
from lookhops.core.words import agreeing, counted, visible

if TYPE_CHECKING:
    from lookhops.core.row_files import RowFile
    from lookhops.models.predictor import Predictions, Predictor
    from lookhops.sources.streams import Part

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
        config = predictor.config
        if "stopped" in config:
            warn(f"{model}: {config['stopped']}")
        predictor.check_question(neighbours=neighbours)
        asked: dict[str, Any] = {"coverage": coverage, "neighbours": neighbours}
        made_by = [config["weights_sha256"], coverage, neighbours, source, stream.head]
        begun = growing(output, stream, made_by, streaming.resume) if output else None
        with begun or nullcontext() as file:
            written = Writer(predictor, stream.head, coverage, file, as_json)
            if streaming.ray is None:
                computed = compute(
                    stream, predictor.device, lambda part: predictor.predict(part.graphs, **asked)
                )
            else:
                from lookhops.models.ray import answered

                parts = stream.parts(stream.part_size(predictor.device.type == "cpu"))
                computed = answered(parts, model, device, asked, streaming.ray, streaming.address)
            work_through(stream, computed, written.write)
        if as_json:
            print_json(written.records)
        if file is not None:
            print_line(f"{output}: {counted(file.rows, 'row')}", err)
        written.tell()


class Writer:
    """Where answers go, and the summary that is printed at the end.

    That is a file, or standard output as CSV, or the records that are printed as JSON. With several
    targets nothing is compared with the truth.
    """

    def __init__(
        self,
        predictor: Predictor,
        head: list[str],
        coverage: float,
        file: RowFile | None,
        as_json: bool,
    ) -> None:
        self.head, self.coverage, self.file, self.as_json = head, coverage, file, as_json
        self.records: list[dict[str, Any]] = []
        self.parts = self.unlike = self.known = 0
        self.agreement = 0.0
        # Of graphs that were answered before a resumption nothing is known.
        self.when = " answered now" if file is not None and file.rows else ""
        heads = predictor.task.heads
        self.task = heads[0].task if len(heads) == 1 else None

    def write(self, part: Part, answers: Predictions) -> None:
        """Take the answers to a part."""
        from lookhops.core.row_files import write_csv
        from lookhops.models.answers import answer_columns, answer_records

        self._count(part, answers)
        if self.as_json:
            self.records += answer_records(part.graphs, answers)
        if self.file is None and self.as_json:
            return
        as_text = self.file is None or self.file.path.suffix.lower() != ".parquet"
        head, columns = answer_columns(
            self.head, part.cells, part.graphs, answers, self.coverage, as_text
        )
        if self.file is not None:
            self.file.write(head, columns)
            return
        text = io.StringIO()
        if self.parts == 1:
            write_csv(text, [[name] for name in head])
        write_csv(text, columns)
        shown = text.getvalue()
        typer.echo(visible(shown) if sys.stdout.isatty() else shown, nl=False)

    def _count(self, part: Part, answers: Predictions) -> None:
        """Count a part's graphs; where its rows say what the truth is, compare."""
        from lookhops.graphs.targets import is_blank

        self.parts += 1
        self.unlike += int(answers.unlike.sum())
        if self.task is None:
            return
        gone = {row.row for row in part.graphs.skipped}
        labels = [label for row, label in enumerate(part.labels) if row not in gone]
        known = {label for label in set(labels) if not is_blank(label)}
        try:
            truth = self.task.parse([label if label in known else "" for label in labels])
        except ValueError:  # the column holds something else
            self.task = None
            return
        agreement, count = self.task.agreement(answers.targets[0], truth)
        self.agreement += agreement
        self.known += count

    def tell(self) -> None:
        """Say on stderr how many graphs are unlike, and how many are answered as labelled."""
        if self.unlike:
            which = counted(self.unlike, "graph") + self.when
            are = agreeing(self.unlike, "is", "are")
            warn(f"{which} {are} unlike all that the model was trained on")
        if self.task is not None and self.known:
            print_line(self.task.agreement_in_words(self.agreement, self.known, self.when), err)
