"""``lookhops predict``, ``embed`` and ``evaluate``: what a model answers, and how good that is."""

from __future__ import annotations

import io
import sys
from contextlib import nullcontext
from dataclasses import asdict, astuple, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from lookhops.cli.shared.output import (
    as_grid,
    check_output,
    check_page,
    command_line,
    out,
    panel,
    print_json,
    remark,
    warn,
    write_page,
)
from lookhops.cli.shared.parameters import Json, Plugins, with_options
from lookhops.cli.shared.reading import Input, Model, Reading, load, warnings_as_lines
from lookhops.cli.shared.streaming import Streaming, compute, growing, opened, work_through
from lookhops.core.errors import LookHopsError
from lookhops.core.schema import option
from lookhops.core.words import agreeing, counted, visible

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.panel import Panel

    from lookhops.core.row_files import RowFile
    from lookhops.models.answers import Embeddings
    from lookhops.models.labelled import Evaluation
    from lookhops.models.predictor import Predictions, Predictor
    from lookhops.sources.streams import Part

#: Ends of the names of files that answers are written to; without one it is CSV too.
KINDS = (".csv", ".parquet", "")


@dataclass(frozen=True)
class Prediction(Streaming):
    """How a large input is answered.

    Args:
        ray: Workers of a Ray cluster that answer; by default this process does.
    """

    ray: int | None = option(None, least=1)
    address: str | None = None


@dataclass(frozen=True)
class Asked:
    """What is asked of each graph, as :meth:`~lookhops.models.Predictor.predict` takes it.

    Args:
        neighbours: How many of the most similar training graphs are given with each answer, each
            with its name, what was measured of it and its similarity.
    """

    coverage: float = 0.9
    neighbours: int = 0


@with_options
def predict(
    model: Model,
    source: Input,
    device: str = "auto",
    *,
    asked: Annotated[Asked, None],
    output: Path | None = None,
    plugin: Plugins = None,
    as_json: Json = False,
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
        predictor.check_question(neighbours=asked.neighbours)
        made_by = [config["weights_sha256"], *astuple(asked), source, stream.head]
        begun = growing(output, stream, made_by, streaming.resume) if output else None
        with begun or nullcontext() as file:
            written = Writer(predictor, stream.head, asked.coverage, file, as_json)
            if streaming.ray is None:
                answer = lambda part: predictor.predict(part.graphs, **asdict(asked))  # noqa: E731
                computed = compute(stream, predictor.device, answer)
            else:
                from lookhops.models.ray import answered

                parts = stream.parts(stream.part_size(predictor.device.type == "cpu"))
                cluster = streaming.ray, streaming.address
                computed = answered(parts, model, device, asdict(asked), *cluster)
            work_through(stream, computed, written.write)
        if as_json:
            print_json(written.records)
        if file is not None:
            remark(f"{output}: {counted(file.rows, 'row')}")
        written.tell()


class Writer:
    """Writes answers to a file or to standard output as CSV, or keeps them to print as JSON.

    In the end it prints a summary. With several targets nothing is compared with the truth.
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
            if self.file is None:
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
            remark(self.task.agreement_in_words(self.agreement, self.known, self.when))


@with_options
def embed(
    model: Model,
    source: Input,
    output: Path | None = None,
    seed: int | None = None,
    bits: int = 1024,
    device: str = "auto",
    plugin: Plugins = None,
    *,
    streaming: Annotated[Streaming, "Large inputs"],
    reading: Reading,
) -> None:
    """Write each graph as a vector: for similarity, clustering, or another model.

    `readout` is what the layers of one network read of a graph, the features from which it answers;
    `fingerprint` has a bit for the exact neighbourhoods in it. One row for each row of the input,
    in its order; one that gives no graph is blank, and `warning` has the reason. A .parquet file
    holds the input's columns and both vectors as lists, a .csv file a column for each number, a
    .npy file one matrix.

    Args:
        output: File to write: .parquet, .csv or .npy.
        seed: Which of the model's seeds to ask; by default its first.
        bits: Length of the fingerprint; 0 leaves it out.
    """
    if output is None:
        raise LookHopsError("Say where to write with -o: a .parquet, .csv or .npy file.")
    if bits < 0:
        raise LookHopsError(f"--bits is a number from 0, not {bits}.")
    check_output(output, (".parquet", ".csv", ".npy"), source)
    with opened(model, device, reading, source, streaming) as (predictor, stream):
        from lookhops.models.answers import vector_columns

        seed = predictor.known_seed(seed)
        apart = output.suffix.lower() == ".csv"

        def write(part: Part, found: Embeddings) -> None:
            head, columns = vector_columns(stream.head, part.cells, part.graphs, found, apart)
            file.write(head, columns)

        config = predictor.config
        made_by = [config["weights_sha256"], seed, bits, source, stream.head]
        with growing(output, stream, made_by, streaming.resume) as file:
            computed = compute(
                stream, predictor.device, lambda part: predictor.embed(part.graphs, seed, bits)
            )
            work_through(stream, computed, write)
        remark(f"{output}: {counted(file.rows, 'row')}")
        if not predictor.models[seed].convs and not bits:
            warn("the model has no layers to read out, and no bits were asked for")


@with_options
def evaluate(
    model: Model,
    source: Input,
    device: str = "auto",
    output: Path | None = None,
    coverage: float = 0.9,
    plugin: Plugins = None,
    as_json: Json = False,
    *,
    reading: Reading,
) -> None:
    """Compare a model's answers with the truth: all metrics, with bootstrap intervals.

    Says how many of the graphs were in the training part, by what they are and not by their names;
    where there are others too, the metrics are given of those alone as well. What is not chosen
    about reading is as it was for training, targets included.

    Args:
        output: Also write a page (.html) with tables and curves.
    """
    check_page(output)
    load(device, "lookhops.models.labelled", "lookhops.models.predictor")
    from lookhops.models.labelled import evaluate as evaluate_graphs
    from lookhops.models.predictor import Predictor

    predictor = Predictor(model, device)
    stored = predictor.reading
    if reading.target is None:
        reading = replace(reading, target=stored.target, task=stored.task)
    graphs = reading.load_input(source, stored, need_targets=True)
    with warnings_as_lines():
        found = evaluate_graphs(predictor, graphs, coverage)
    if as_json:
        print_json({"model": str(model), "data": graphs.name, **found.to_dict()})
    else:
        out.print(_panel(found, str(model)))
    if unlike := int(found.answers.unlike.sum()):
        warn(
            f"{unlike:,} of {counted(len(graphs), 'graph')} {agreeing(unlike, 'is', 'are')} unlike "
            "all that the model was trained on"
        )
    if output is not None:
        from lookhops.report.evaluation import evaluation_report

        made = evaluation_report(found, str(model), [("Make this page", command_line())])
        write_page(made, output, quiet=as_json)


def _panel(found: Evaluation, model: str) -> Panel:
    from lookhops.report.evaluation import metrics_table, seen_sentence, too_few_sentence

    parts: list[RenderableType] = []
    for target in found.targets:
        table = metrics_table(target)
        name = target.name if len(found.targets) > 1 else ""
        parts.append(as_grid(replace(table, head=[name, *table.head[1:]])))
        if said := too_few_sentence(target):
            parts.append(escape(said))
    return panel(f"{found.graphs.name}, answered by {model}", *parts, escape(seen_sentence(found)))
