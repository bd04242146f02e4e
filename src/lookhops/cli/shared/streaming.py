"""How a command works through a source of any size: reading, computing and writing side by side."""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from rich.progress import TextColumn, TimeRemainingColumn

from lookhops.cli.shared.output import err, remark, warn
from lookhops.cli.shared.reading import load, warnings_as_lines
from lookhops.cli.shared.running import QUIET, progress_bar
from lookhops.core.errors import LookHopsError
from lookhops.core.words import counted

if TYPE_CHECKING:
    import torch

    from lookhops.cli.shared.reading import GraphReader
    from lookhops.core.row_files import RowFile
    from lookhops.models.predictor import Predictor
    from lookhops.sources.molecule_streams import MoleculeStream
    from lookhops.sources.rdkit.workers import ParsingPool
    from lookhops.sources.streams import Part, Stream

#: Parts that are computed side by side on the CPU: each has steps that keep one core busy.
AT_ONCE = 2
#: Parts that wait to be written.
WAITING = 2
Item = TypeVar("Item")


@dataclass(frozen=True)
class Streaming:
    """How a large input is worked through.

    Args:
        resume: Go on with the output that was begun.
        processes: Processes that parse molecules; by default one for each core. 0: none but the
            command's own.
    """

    resume: bool = False
    processes: int | None = None

    def __post_init__(self) -> None:
        if self.processes is not None and self.processes < 0:
            raise LookHopsError(f"--processes is a number from 0, not {self.processes}.")


@contextmanager
def opened(
    model: Path, device: str, reading: GraphReader, source: str, streaming: Streaming
) -> Iterator[tuple[Predictor, Stream]]:
    """A model, and the source that it is asked about; ``-`` is standard input.

    Molecules are parsed by workers, which begin while this process loads PyTorch and the model.
    """
    from lookhops.sources.rdkit.workers import ParsingPool

    with ParsingPool(streaming.processes) as pool, warnings_as_lines():
        if source.lower().endswith(("-", ".smi", ".csv", ".tsv", ".gz", ".parquet")):
            pool.warm_up()
        begun = None if streaming.resume else _begun(model, reading, source, pool)
        try:
            load(device, "lookhops.models.predictor", "lookhops.sources.molecules")
            from lookhops.models.predictor import Predictor

            predictor = Predictor(model, device)
            stream = begun or _open_stream(reading, source, predictor, pool)
            stream.features = predictor.encoding.feature_names
            yield predictor, stream
        finally:
            if begun is not None:
                begun.close()


def _begun(
    model: Path, reading: GraphReader, source: str, pool: ParsingPool
) -> MoleculeStream | None:
    """The molecules of a file, parsed from now on; none where it or the model cannot be read.

    Then it is opened again when the model is there, and refused with the reason.
    """
    from lookhops.core.files import read_json
    from lookhops.core.reading import MOLECULES, Reading
    from lookhops.sources.molecule_rows import come_in_parts, kind_of_rows
    from lookhops.sources.molecule_streams import open_molecules

    path = Path(source).expanduser()
    with suppress(Exception):
        earlier = Reading.from_dict(read_json(model / "config.json")["reading"])
        later = reading.with_defaults_of(replace(earlier, invalid="skip"))
        if kind_of_rows(path, later) == MOLECULES and come_in_parts(path, later):
            later.check(source, MOLECULES)
            stream = open_molecules(path, later, pool)
            stream.begin()
            return stream
    return None


def _open_stream(
    reading: GraphReader, source: str, predictor: Predictor, pool: ParsingPool
) -> Stream:
    """A source in parts, read as the model's graphs were where nothing is chosen."""
    from lookhops.sources.graph_streams import GraphStream
    from lookhops.sources.loading import open_stream

    earlier = replace(predictor.reading, invalid="skip")
    if source == "-":
        return reading.from_stdin(earlier, pool)
    if not source.strip():
        raise LookHopsError("Name the graphs: a file, a folder or a data set.")
    stream = open_stream(source, reading.with_defaults_of(earlier), pool, reading.data_dir)
    if isinstance(stream, GraphStream):
        stream.graphs = predictor.read(stream.graphs)
    return stream


def compute(
    stream: Stream, device: torch.device, work: Callable[[Part], Item]
) -> Iterator[tuple[Part, Item]]:
    """The parts of a stream in order, each with what is computed for it; on the CPU two at once."""
    import torch

    from lookhops.training.device import limited_threads

    on_cpu = device.type == "cpu"
    parts = stream.parts(stream.part_size(on_cpu))
    if not on_cpu:
        yield from ((part, work(part)) for part in parts)
        return
    each = max(torch.get_num_threads() // AT_ONCE, 1)  # parts share the cores
    pool = ThreadPoolExecutor(AT_ONCE, initializer=torch.set_num_threads, initargs=(each,))
    try:
        with limited_threads(1):  # what reads the parts would wait for who computes
            yield from _in_order(pool, work, parts, AT_ONCE)
    finally:
        pool.shutdown(cancel_futures=True)


def work_through(
    stream: Stream, computed: Iterable[tuple[Part, Item]], write: Callable[[Part, Item], None]
) -> None:
    """Write what was computed for each part of a stream, in another thread, with a bar."""
    done = 0
    with _display() as show, ThreadPoolExecutor(1) as writer:
        for (part, _), _ in _in_order(writer, lambda pair: write(*pair), computed, WAITING):
            done += len(part.graphs)
            show(done, part.share)
    for text in stream.remarks():
        warn(text)


def _in_order(
    pool: ThreadPoolExecutor, work: Callable[[Any], Any], items: Iterable[Any], most: int
) -> Iterator[tuple[Any, Any]]:
    """Items and what the threads of a pool make of each, in order; so many wait to be done."""
    begun: deque[tuple[Any, Future[Any]]] = deque()
    for item in items:
        begun.append((item, pool.submit(work, item)))
        if len(begun) > most:
            first, found = begun.popleft()
            yield first, found.result()
    for first, found in begun:
        yield first, found.result()


@contextmanager
def _display() -> Iterator[Callable[[int, float | None], None]]:
    """A function that shows how far a stream is: in a bar on a terminal, else by lines."""
    start = spoken = time.monotonic()

    def show(graphs: int, share: float | None) -> None:
        nonlocal spoken
        now = time.monotonic()
        rate = graphs / max(now - start, 1e-9)
        said = f"{counted(graphs, 'graph')}, {rate:,.0f} a second"
        bar.update(task, total=None if share is None else 1.0, completed=share or 0, said=said)
        if not err.is_terminal and now - spoken > QUIET:
            spoken = now
            left = "" if not share else f", {(now - start) * (1 / share - 1):,.0f} s left"
            remark(said + left)

    with progress_bar(TextColumn("{task.fields[said]}"), TimeRemainingColumn()) as bar:
        task = bar.add_task("", total=None, said="")
        yield show


@contextmanager
def growing(path: Path, stream: Stream, made_by: Any, resume: bool) -> Iterator[RowFile]:
    """The file that answers go to; where it is interrupted, what was done is kept.

    ``resume`` continues what the same (``made_by``) began, after the rows that are answered.
    """
    from lookhops.core.row_files import ROW_FILES

    file = ROW_FILES[path.suffix.lower()](path, made_by, stream.types)
    try:
        with file:
            if resume:
                file.resume(stream.skip(sys.maxsize))
                if file.rows:
                    remark(f"going on after {counted(file.rows, 'row')} of {file.part}")
            yield file
    except KeyboardInterrupt:
        if file.rows:
            first = f"{file.part} holds the first {counted(file.rows, 'row')}"
            remark(f"{first}; the same command with --resume goes on.")
        raise
