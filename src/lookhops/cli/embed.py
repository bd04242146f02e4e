"""``lookhops embed``: graphs as vectors, from what a model read of them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lookhops.cli.shared.parameters import Plugins, with_options
from lookhops.cli.shared.printing import err, print_line, warn
from lookhops.cli.shared.reading import Input, Model, Reading
from lookhops.cli.shared.streaming import Streaming, compute, growing, opened, work_through
from lookhops.cli.shared.writing import check_output
from lookhops.core.errors import LookHopsError
from lookhops.core.words import counted

if TYPE_CHECKING:
    from lookhops.models.answers import Embeddings
    from lookhops.sources.streams import Part


@with_options
def embed(
    model: Model,
    source: Input,
    output: Path | None = None,
    of_seed: Annotated[
        int | None,
        typer.Option("--seed", help="Which of the model's seeds to ask; by default its first."),
    ] = None,
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
        bits: Length of the fingerprint; 0 leaves it out.
    """
    if output is None:
        raise LookHopsError("Say where to write with -o: a .parquet, .csv or .npy file.")
    if bits < 0:
        raise LookHopsError(f"--bits is a number from 0, not {bits}.")
    check_output(output, (".parquet", ".csv", ".npy"), source)
    with opened(model, device, reading, source, streaming) as (predictor, stream):
        from lookhops.models.answers import vector_columns

        seed = predictor.known_seed(of_seed)
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
        print_line(f"{output}: {counted(file.rows, 'row')}", err)
        if not predictor.models[seed].convs and not bits:
            warn("the model has no layers to read out, and no bits were asked for")
