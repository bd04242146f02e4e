"""How a command reads: PyTorch, which takes long to load, graphs, and how these are split."""

from __future__ import annotations

import atexit
import ctypes
import gc
import io
import os
import shlex
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Annotated

import typer

from lookhops.cli.shared.output import remark, warn
from lookhops.core import reading as graph_reading
from lookhops.core.errors import LookHopsError
from lookhops.core.machine import keep_memory
from lookhops.core.options import Protocol, parse_seeds, parse_split
from lookhops.core.reading import listed
from lookhops.core.words import agreeing

if TYPE_CHECKING:
    from lookhops.graphs import Graphs
    from lookhops.sources.molecule_streams import MoleculeStream
    from lookhops.sources.rdkit.workers import ParsingPool
    from lookhops.sources.splits import SplitPlan

#: What standard input is called.
STDIN = "standard input"
#: The devices that stand for the first GPU, where there is one.
FIRST_GPU = ("auto", "cuda", "cuda:0")
#: No more columns than this are named in a line.
SHOWN = 10

Source = Annotated[
    str,
    typer.Argument(
        help="A TU name (NCI1), a TU zip or folder, tables (edges in a .csv .tsv .parquet, or a "
        "folder with edges, nodes and graphs; .jsonl), molecules (.smi .sdf, or a table with "
        "SMILES), packed graphs (.graphs), `solubility`, `transfers`, or `hops-1` to `hops-6`."
    ),
]
#: What a trained model is asked about.
Input = Annotated[
    str,
    typer.Argument(
        metavar="INPUT",
        help="Any source that `train` takes, or `-`: SMILES from standard input, one a line, "
        "each with a name if you like.",
    ),
]
Model = Annotated[Path, typer.Argument(metavar="DIR", help="Folder that `train` wrote.")]
DataDir = Annotated[
    Path | None,
    typer.Option(
        envvar="LOOKHOPS_DATA", help="Folder of TU archives. Default: the user's cache folder."
    ),
]


def load(device: str, *modules: str) -> None:
    """Import modules that take PyTorch, while a GPU gets ready where it is the device.

    What is imported stays: looking through it for garbage again and again takes a fifth of the
    time, so that is not done meanwhile, nor ever again of what is there in the end.
    """
    if "torch" in sys.modules:
        return
    keep_memory()
    if device in FIRST_GPU and "LOCAL_RANK" not in os.environ:  # else each worker has its own
        Thread(target=_make_ready).start()
    gc.disable()
    try:
        for name in modules:
            import_module(name)
    finally:
        gc.freeze()
        atexit.register(gc.unfreeze)  # on the way out some libraries look whether all is gone
        gc.enable()


def _make_ready() -> None:
    """Do for the first GPU, where there is one, what takes long and does not wait for PyTorch.

    That is its context, which PyTorch then takes, and a hash over Triton's library of half a
    gigabyte, which the names of compiled kernels begin with.
    """
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return
    device, context = ctypes.c_int(), ctypes.c_void_p()
    if driver.cuInit(0) or driver.cuDeviceGet(ctypes.byref(device), 0):
        return
    Thread(target=_hash_triton).start()
    driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), device)


def _hash_triton() -> None:
    with suppress(ImportError, OSError):  # Triton has moved it, or is not here
        from triton.runtime.cache import triton_key

        triton_key()


@contextmanager
def warnings_as_lines() -> Iterator[None]:
    """Warnings of the block, as plain lines on stderr after it, each once."""
    caught: list[warnings.WarningMessage] = []
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", UserWarning)
            yield
    finally:
        texts = (str(one.message) for one in caught if issubclass(one.category, UserWarning))
        for text in dict.fromkeys(texts):
            warn(text)


def stdin_lines() -> Iterator[str]:
    """The lines of standard input, or a sentence where they are no text."""
    try:
        yield from io.TextIOWrapper(sys.stdin.buffer, "utf-8-sig")
    except UnicodeDecodeError as error:
        raise LookHopsError(f"{STDIN}: not UTF-8 text.") from error


@dataclass(frozen=True)
class GraphReader(graph_reading.Reading):
    """How a command reads graphs."""

    data_dir: DataDir = None

    def load(
        self,
        source: str,
        earlier: graph_reading.Reading = graph_reading.AS_USUAL,
        need_targets: bool = True,
    ) -> Graphs:
        """The graphs of a source, read as ``earlier`` ones were where nothing is chosen."""
        from lookhops.sources.loading import load as load_graphs

        if not source.strip():
            raise LookHopsError("Name the graphs: a file, a folder or a data set.")
        with warnings_as_lines():
            return load_graphs(
                source,
                self.with_defaults_of(earlier),
                data_dir=self.data_dir,
                processes=None,
                need_targets=need_targets,
            )

    def load_to_learn(self, source: str) -> Graphs:
        """The graphs of a source; what their targets were taken for is said on stderr."""
        graphs = self.load(source)
        self.tell_targets(graphs, Path(source).suffix.lower() not in ("", ".graphs", ".zip"))
        return graphs

    def load_input(
        self, source: str, earlier: graph_reading.Reading, need_targets: bool = False
    ) -> Graphs:
        """The graphs of a source, or of SMILES on standard input, for a model to answer.

        Rows that give no graph are left out with their reason, unless an error is asked for.
        """
        earlier = replace(earlier, invalid="skip")
        if source != "-":
            return self.load(source, earlier, need_targets)
        from lookhops.sources.rdkit.workers import ParsingPool

        with warnings_as_lines(), ParsingPool(0) as pool:
            return self.from_stdin(earlier, pool).read_all(need_targets).graphs

    def from_stdin(self, earlier: graph_reading.Reading, pool: ParsingPool) -> MoleculeStream:
        """The molecules of standard input, read as those of a model were."""
        from lookhops.sources.molecule_rows import SmilesLines
        from lookhops.sources.molecule_streams import MoleculeStream

        rows = SmilesLines(stdin_lines(), STDIN)
        return MoleculeStream(rows, pool, STDIN, self.with_defaults_of(earlier))

    def tell_targets(self, graphs: Graphs, inferred: bool) -> None:
        """Say what targets were taken for, unless they are classes that the source knows itself."""
        from lookhops.graphs.targets import known_targets
        from lookhops.sources.targets import target_sentences

        if graphs.y is None:
            return
        chosen = inferred or self.target is not None or self.task != "auto"
        if chosen or graphs.num_classes == 0 or not known_targets(graphs.y).all():
            for sentence in target_sentences(graphs):
                remark(sentence)


Reading = Annotated[GraphReader, "How graphs are read"]


@dataclass(frozen=True)
class SplitSource:
    """Splits that are not drawn, or not all of them.

    Args:
        splits: JSON with the parts, by graph numbers or ids: one split for all seeds, or one for
            each. Published folds ({"test", "model_selection"}) are read as they are.
        test: Graphs that are the test part of every split, read as SOURCE is; each seed draws
            training and validation parts from SOURCE.
    """

    splits: Path | None = None
    test: str | None = None

    def plan(
        self,
        source: str,
        graphs: Graphs,
        protocol: Protocol,
        seeds: str | None,
        reading: GraphReader,
        usual: int = 1,
    ) -> tuple[Graphs, SplitPlan]:
        """The graphs, with the test set if there is one, and the split of each seed.

        By default there is a seed for each fold, or split of the file, else as many as ``usual``.
        """
        from lookhops.sources.splits import SplitPlan, read_splits
        from lookhops.sources.splits.given import with_test_set

        graphs = _without_split(source, graphs, reading, parse_split(protocol.split)[1])
        if self.splits is not None:
            if self.test is not None or protocol.folds or protocol.split != "auto":
                raise LookHopsError("--splits says all: leave out --split, --folds and --test.")
            parts = read_splits(self.splits, graphs)
            chosen = parse_seeds(len(parts) if seeds is None else seeds)
            return graphs, SplitPlan.given(replace(protocol, seeds=chosen), parts)
        test = None
        if self.test is not None:
            graphs, test = with_test_set(graphs, reading.load(self.test))
        count = protocol.folds or usual if seeds is None else seeds
        protocol = replace(protocol, seeds=parse_seeds(count, protocol.folds))
        return graphs, SplitPlan.of(graphs, protocol, test)


def _without_split(source: str, graphs: Graphs, reading: GraphReader, split: str) -> Graphs:
    """The graphs without the column of the split as a feature; says which columns are features."""
    from lookhops.graphs.columns import ALL, possible_features
    from lookhops.sources.loading import BUNDLED

    if reading.features is None:
        names = possible_features(graphs, but=[split])
        if names and source not in BUNDLED:  # of which one is the target in other words
            shown = shlex.quote(",".join(names[:SHOWN]))
            more = f" ({len(names) - SHOWN} more)" if len(names) > SHOWN else ""
            which = agreeing(len(names), "a column is", f"{len(names)} columns are")
            remark(f"{which} not read; as features: --features {shown}{more}")
    elif reading.features.strip().lower() == ALL:
        graphs = replace(graphs, whole=graphs.whole.without([split]))
        read = [name for name in graphs.whole.names.features if name in graphs.columns]
        remark(f"columns that are features: {listed(read) if read else 'none'}")
    return graphs


Splitting = Annotated[SplitSource, "Splits that are not drawn"]
