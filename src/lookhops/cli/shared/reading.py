"""How a command reads graphs: a source, and the options that some sources need."""

from __future__ import annotations

import io
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lookhops.cli.shared.printing import err, print_line, warn
from lookhops.core import reading as graph_reading
from lookhops.core.errors import LookHopsError

if TYPE_CHECKING:
    from lookhops.graphs import Graphs

#: What standard input is called.
STDIN = "standard input"
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


@dataclass(frozen=True)
class GraphReader(graph_reading.Reading):
    """How a command reads graphs.

    Args:
        data_dir: Folder of TU archives.
    """

    data_dir: DataDir = None

    def load(
        self,
        source: str,
        remembered: graph_reading.Reading = graph_reading.AS_USUAL,
        need_targets: bool = True,
    ) -> Graphs:
        """The graphs of a source, with warnings as plain lines on stderr.

        ``remembered`` is how the graphs of a model were read: taken over where nothing was chosen.
        """
        from lookhops.sources.loading import load

        if not source.strip():
            raise LookHopsError("Name the graphs: a file, a folder or a data set.")
        with warnings_as_lines():
            return load(
                source,
                self,
                remembered=remembered,
                data_dir=self.data_dir,
                processes=None,
                need_targets=need_targets,
            )

    def load_to_learn(self, source: str) -> Graphs:
        """The graphs of a source; what their targets were taken for is said on stderr."""
        graphs = self.load(source)
        self._tell_targets(
            graphs, inferred=Path(source).suffix.lower() not in ("", ".graphs", ".zip")
        )
        return graphs

    def _tell_targets(self, graphs: Graphs, inferred: bool) -> None:
        """Say what targets were taken for, unless they are classes that the source knows itself."""
        from lookhops.graphs.targets import known_targets
        from lookhops.sources.targets import target_sentences

        if graphs.y is None:
            return
        said = inferred or self.target is not None or self.task != "auto"
        if said or graphs.num_classes == 0 or not known_targets(graphs.y).all():
            for sentence in target_sentences(graphs):
                print_line(sentence, err)

    def load_tables(
        self, edges: Path, nodes: Path | None, graphs: Path | None, name: str
    ) -> Graphs:
        """The graphs of tables in files, with warnings as plain lines on stderr."""
        from lookhops.sources.tables import read_tables

        self.check(edges, graph_reading.TABLES)
        with warnings_as_lines():
            found = read_tables(edges, nodes, graphs, self, name=name)
        self._tell_targets(found, inferred=True)
        return found

    def load_input(
        self, source: str, remembered: graph_reading.Reading, need_targets: bool = False
    ) -> Graphs:
        """The graphs of a source, or of SMILES on standard input, for a model to answer.

        Rows that give no graph are left out with their reason, unless an error is asked for.
        Arguments are those of :meth:`load`; who does not compare needs no targets.
        """
        remembered = replace(remembered, invalid="skip")
        if source != "-":
            return self.load(source, remembered, need_targets)
        from lookhops.sources.molecule_rows import SmilesLines
        from lookhops.sources.molecule_streams import MoleculeStream
        from lookhops.sources.rdkit.workers import parsing_pool

        chosen, rows = self.or_remembered(remembered), SmilesLines(stdin_lines(), STDIN)
        with warnings_as_lines(), parsing_pool(0) as pool:
            stream = MoleculeStream(rows, pool, STDIN, chosen)
            return stream.read_all(need_targets).graphs


Reading = Annotated[GraphReader, "How graphs are read"]


def stdin_lines() -> Iterator[str]:
    """The lines of standard input, or a sentence where they are no text."""
    try:
        yield from io.TextIOWrapper(sys.stdin.buffer, "utf-8-sig")
    except UnicodeDecodeError as error:
        raise LookHopsError(f"{STDIN}: not UTF-8 text.") from error


@contextmanager
def warnings_as_lines() -> Iterator[None]:
    """Warnings of the block, as plain lines on stderr after it, each once."""
    caught: list[warnings.WarningMessage] = []
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", UserWarning)
            yield
    finally:
        ours = (str(one.message) for one in caught if issubclass(one.category, UserWarning))
        for said in dict.fromkeys(ours):
            warn(said)
