"""What a request holds, as graphs, and the threads that read it.

SMILES are read as they are. Node-link objects, tables and files are written to a temporary folder
and read as the command reads files, so that the service says what the command says, without the
folder.
"""

from __future__ import annotations

import asyncio
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from threading import local
from typing import Any, Concatenate, ParamSpec

from lookhops.core.errors import LookHopsError
from lookhops.core.reading import AS_USUAL, Reading
from lookhops.graphs import Graphs
from lookhops.models.predictor import Predictor
from lookhops.sources.graph_streams import GraphStream
from lookhops.sources.loading import ENDINGS, read_source
from lookhops.sources.molecule_rows import SmilesList
from lookhops.sources.molecule_streams import MoleculeStream
from lookhops.sources.rdkit.workers import ParsingPool
from lookhops.sources.rows import suffix_of

P = ParamSpec("P")
#: Archives of the TU collection are not asked about.
SUFFIXES = tuple(ending for ending in ENDINGS if ending != ".zip")


@dataclass(frozen=True, eq=False)
class Asked:
    """Graphs that a model is asked about."""

    predictor: Predictor
    source: GraphStream  # the graphs with all that their source said, and its rows
    graphs: Graphs  # the same in the columns that the model was trained on
    notes: list[str]  # what there is to say of how they were read

    def numbers(self, rows: Sequence[int] | None) -> list[int]:
        """The numbers of the graphs that were read from some rows; by default all."""
        if rows is None:
            return list(range(len(self.graphs)))
        skipped = {row.row: row.reason for row in self.source.graphs.skipped}
        total = len(self.graphs) + len(skipped)
        number = {row: i for i, row in enumerate(r for r in range(total) if r not in skipped)}
        for row in rows:
            if not 0 <= row < total:
                raise LookHopsError(f"There is no row {row}: the input has {total}, from 0.")
            if row in skipped:
                raise LookHopsError(f"Row {row} gave no graph: {skipped[row]}.")
        return [number[row] for row in rows]


def safe_name(name: str) -> str:
    """The name of a file as it is kept, of a kind that holds graphs."""
    kept = re.sub(r"[^\w.+-]+", "-", Path(name.replace("\\", "/")).name)[-80:].lstrip(".-")
    if suffix_of(Path(kept)) not in SUFFIXES or kept.startswith(suffix_of(Path(kept))):
        raise LookHopsError(
            f"{kept or 'The file'}: not a kind of file that holds graphs; those end in "
            f"{', '.join(SUFFIXES)}."
        )
    return kept


def read_smiles(
    pool: ParsingPool,
    predictor: Predictor,
    smiles: Sequence[str],
    ids: Sequence[str] | None = None,
    features: Mapping[str, Sequence[Any]] | None = None,
) -> Asked:
    """Molecules, read as those were that the model was trained on."""
    if ids is not None and len(ids) != len(smiles):
        raise LookHopsError(f"There are {len(smiles)} SMILES but {len(ids)} ids.")
    for name, cells in (features or {}).items():
        if len(cells) != len(smiles):
            raise LookHopsError(f"There are {len(smiles)} SMILES but {len(cells)} of {name!r}.")
    with notes() as said:
        rows = SmilesList(smiles, ids, features)
        stream = MoleculeStream(rows, pool, "molecules", _reading(predictor))
        found = stream.read_all(need_targets=False)
        return Asked(predictor, found, predictor.read(found.graphs), said)


def read_file(pool: ParsingPool, predictor: Predictor, path: Path) -> Asked:
    """The graphs of a file, or of a folder of tables, read as the command reads them."""
    with notes() as said, without_folder(path.parent):
        found = read_source(path, _reading(predictor), pool, need_targets=False)
        if not len(found.graphs):
            raise LookHopsError(f"{path}: there are no graphs.")
        asked = Asked(predictor, found, predictor.read(found.graphs), said)
    said[:] = [sentence.replace(f"{path.parent}/", "") for sentence in said]
    return asked


@contextmanager
def without_folder(folder: Path) -> Iterator[None]:
    """Sentences of the block without the folder, which is ours and not the user's."""
    try:
        yield
    except LookHopsError as error:
        error.args = (str(error).replace(f"{folder}/", ""),)
        raise


def _reading(predictor: Predictor) -> Reading:
    return AS_USUAL.with_defaults_of(replace(predictor.reading, invalid="skip"))


# -------------------------------------------------------------------- threads


class Readers:
    """Threads that read graphs outside of the event loop, each started when it is needed.

    A molecule on which RDKit crashes or hangs ends the worker process of one thread. That starts
    another, and says of the molecule what happened; the other threads go on.
    """

    def __init__(self, threads: int, name: str) -> None:
        self._pools: list[ParsingPool] = []
        self._local = local()
        self._threads = ThreadPoolExecutor(threads, name, self._begin)

    async def read(
        self, work: Callable[Concatenate[ParsingPool, P], Asked], *given: P.args, **named: P.kwargs
    ) -> Asked:
        """What some reading gives: it is called with the workers that parse molecules."""

        def in_thread() -> Asked:
            try:
                return work(self._local.pool, *given, **named)
            except StopIteration as error:  # would never reach who waits for it
                raise RuntimeError("a reader ended early") from error

        return await asyncio.get_running_loop().run_in_executor(self._threads, in_thread)

    def warm_up(self) -> None:
        """Start the first thread and its worker now, so that the first request need not wait."""
        self._threads.submit(lambda: self._local.pool.warm_up())

    def close(self) -> None:
        """End the threads, when they have read what they are at, and the workers."""
        self._threads.shutdown(cancel_futures=True)
        for pool in self._pools:
            pool.stop()

    def _begin(self) -> None:
        self._local.pool = ParsingPool(1)
        self._pools.append(self._local.pool)


# -------------------------------------------------------------------- warnings

#: What Python itself does with a warning.
_show_otherwise = warnings.showwarning
#: Where our own warnings come from; those of libraries are left out.
OURS = str(Path(__file__).parents[1])
_thread = local()


@contextmanager
def notes() -> Iterator[list[str]]:
    """The warnings of this thread within the block, as they come.

    ``warnings.catch_warnings`` changes what all threads do, so that a service cannot use it.
    """
    warnings.simplefilter("always", UserWarning)
    warnings.showwarning = _show
    said: list[str] = []
    _thread.said = said
    try:
        yield said
    finally:
        del _thread.said


def _show(
    message: Warning | str, category: type[Warning], filename: str, *rest: Any, **more: Any
) -> None:
    said = getattr(_thread, "said", None)
    if said is None:
        _show_otherwise(message, category, filename, *rest, **more)
    elif issubclass(category, UserWarning) and filename.startswith(OURS):
        said.append(str(message))
