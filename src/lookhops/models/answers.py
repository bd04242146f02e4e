"""What a model gives for new graphs, answers or vectors, and both as the rows of a table."""

from __future__ import annotations

import io
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import chain, count
from typing import Any, Generic, TypeVar

import numpy as np
import torch
from torch import Tensor

from lookhops.core.arrays import Array
from lookhops.core.errors import LookHopsError
from lookhops.core.row_files import write_csv
from lookhops.graphs import Graphs, in_input_order
from lookhops.graphs.choosing import kept_rows
from lookhops.models.reference import Neighbours
from lookhops.sources.graph_streams import GraphStream
from lookhops.tasks.answers import Column, TargetAnswers, rowwise

#: What a table says of a graph like none that the model was trained on.
UNLIKE = "unlike the training graphs"
#: Bits of a fingerprint where nothing else is asked for.
BITS = 1024
Value = TypeVar("Value")


class OfOnlyTarget(Generic[Value]):
    """An attribute of :class:`Predictions` that is one of its only target's answers."""

    def __set_name__(self, owner: type[Predictions], name: str) -> None:
        self.name = name

    def __get__(self, answers: Predictions, owner: type[Predictions] | None = None) -> Value:
        first = answers.targets[0]
        if (count := len(answers.targets)) > 1:
            raise LookHopsError(f"The model answers {count} targets; look at each of `targets`.")
        if not hasattr(first, self.name):
            raise LookHopsError(f"The model answers {first.found_in}.")
        value: Value = getattr(first, self.name)
        return value


@dataclass(frozen=True, eq=False)
class Predictions:
    """Answers for some graphs.

    Args:
        ids: What each graph is called, shape (g).
        targets: The answers to each target.
        similarity: To the most similar training graph, from 0 to 1, shape (g); none where the
            model has no reference to compare with.
        limit: Graphs below this similarity are unlike those that the model was trained on.
        neighbours: The most similar training graphs, where they were asked for.
    """

    ids: list[str]
    targets: tuple[TargetAnswers, ...]
    similarity: Array | None = None
    limit: float = 0.0
    neighbours: Neighbours | None = None

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def unlike(self) -> Array:
        """Whether each graph is unlike all that the model was trained on, shape (g)."""
        if self.similarity is None:
            return np.zeros(len(self), dtype=bool)
        return np.asarray(self.similarity < self.limit)

    def record(self, graph: int) -> dict[str, Any]:
        """All that is answered to one graph, as JSON can hold it."""
        each = {target.name: target.record(graph) for target in self.targets}
        several = len(self.targets) > 1
        found: dict[str, Any] = {"targets": each} if several else next(iter(each.values()))
        if self.similarity is not None:
            found["similarity"] = float(self.similarity[graph])
            found["unlike"] = bool(self.unlike[graph])
        if self.neighbours is not None:
            found["neighbours"] = self.neighbours.records(graph)
        return found

    def part(self, chosen: slice) -> Predictions:
        """The answers for some of the graphs."""
        return rowwise([self], lambda parts: parts[0][chosen])

    @classmethod
    def joined(cls, parts: Sequence[Predictions]) -> Predictions:
        """The answers of one model for several sets of graphs, one after the other."""
        return rowwise(
            parts, lambda p: [*chain(*p)] if isinstance(p[0], list) else np.concatenate(p)
        )

    def said(self, graph: int) -> str:
        """The answers to one graph in words."""
        several = len(self.targets) > 1
        return ", ".join(target.said(graph, named=several) for target in self.targets)

    # ---------------------------------------------------------------- one target

    class_names = OfOnlyTarget[tuple[str, ...]]()
    """Names of the classes, where these are the only target; as are those that follow."""
    probabilities = OfOnlyTarget[Array]()
    """Calibrated probabilities, shape (g, classes)."""
    numbers = OfOnlyTarget[Array]()
    """Number of the class that is answered, shape (g)."""
    classes = OfOnlyTarget[list[str]]()
    """Name of the class that is answered, for each graph."""
    agreement = OfOnlyTarget[Array]()
    """The share of networks that answer the same class alone, shape (g)."""
    values = OfOnlyTarget[Array]()
    """The numbers that are answered, where these are the only target, shape (g)."""


# -------------------------------------------------------------------- vectors


@dataclass(frozen=True, eq=False)
class Embeddings:
    """Graphs as vectors.

    Args:
        ids: What each graph is called, shape (g).
        readout: What the layers of one network read of each graph, float32, shape (g, d): the
            features from which its last dense layers answer. d is 0 for models without layers.
        fingerprint: Which neighbourhoods each graph has, folded into bits, uint8, shape (g, bits);
            bits is 0 where none are asked for, or the model reads no neighbourhoods.
    """

    ids: list[str]
    readout: Array
    fingerprint: Array

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def matrix(self) -> Array:
        """Both side by side, float32, shape (g, d + bits)."""
        return np.concatenate((self.readout, self.fingerprint.astype(np.float32)), axis=1)


def folded(graphs: Graphs, codes: Tensor, bits: int) -> Array:
    r"""The neighbourhoods of each graph as bits: bit :math:`c \bmod b` is set for each code c.

    ``codes`` are :func:`~lookhops.neighbourhoods.unary_codes`, shape (n, h + 1): counts are in too.
    """
    if bits < 0:
        raise LookHopsError(f"A fingerprint has a number of bits from 0, not {bits}.")
    found = torch.zeros(len(graphs), bits, dtype=torch.uint8, device=codes.device)
    if bits:
        position = graphs.batch.long()[:, None] * bits + codes.remainder(bits)
        found.view(-1)[position.flatten()] = 1
    return found.cpu().numpy()


# -------------------------------------------------------------------- tables


def answer_records(graphs: Graphs, answers: Predictions) -> list[dict[str, Any]]:
    """A record for each row of the input: its answer, or why it has none."""
    rows = [{"id": name, **answers.record(i)} for i, name in enumerate(answers.ids)]
    skipped: list[dict[str, Any]] = [{**row.record()} for row in graphs.skipped]
    return in_input_order(rows, skipped, graphs.skipped)


def answer_csv(source: GraphStream, answers: Predictions, coverage: float) -> str:
    """The rows of the input as CSV, each with its answer or why it has none."""
    cells = source.cells()
    head, columns = answer_columns(source.head, cells, source.graphs, answers, coverage)
    text = io.StringIO()
    write_csv(text, [[name] for name in head])
    write_csv(text, columns)
    return text.getvalue()


def answer_columns(
    head: Sequence[str],
    cells: Sequence[Sequence[Any]],
    graphs: Graphs,
    answers: Predictions,
    coverage: float,
    as_text: bool = True,
) -> tuple[list[str], list[Any]]:
    """The names and the columns of an input's rows (``head``, ``cells``) and of their answers.

    Columns of ours are numbered where the input has the same. Numbers are written out as CSV files
    have them; unless ``as_text`` they are arrays of floats, NaN where blank, and texts are none.
    The last column warns of graphs unlike the training graphs, or says why a row has no answer.
    """
    blank = ["" if as_text else None] * len(graphs.skipped)
    made: dict[str, Any] = {}
    for name, (values, written) in _answered(answers, coverage).items():
        column = values.tolist() if isinstance(values, np.ndarray) else values
        if as_text and written:
            column = ["" if value != value else written % value for value in column]
        column = in_input_order(column, blank, graphs.skipped)
        made[name] = np.array(column, dtype=float) if written and not as_text else column
    return _beside_rows(head, cells, graphs, made, answers.unlike)


def vector_columns(
    head: Sequence[str],
    cells: Sequence[Sequence[Any]],
    graphs: Graphs,
    found: Embeddings,
    apart: bool,
) -> tuple[list[str], list[Any]]:
    """The names and the columns of an input's rows and of their vectors, as rows of matrices.

    Where they are to be ``apart``, each number is a column of its own. Of rows that gave no graph
    the readout is NaN, and no bit is set; the last column says why.
    """
    made: dict[str, Any] = {}
    for name, vectors, blank in (
        ("readout", found.readout, np.nan),
        ("fingerprint", found.fingerprint, 0),
    ):
        rows = np.full((len(cells), vectors.shape[1]), blank, vectors.dtype)
        rows[kept_rows(graphs)] = vectors
        if not apart and rows.shape[1]:
            made[name] = rows
        for number, column in enumerate(rows.T.tolist() if apart else ()):
            made[f"{name}_{number}"] = ["" if v != v else f"{v:.6g}" for v in column]
    return _beside_rows(head, cells, graphs, made, np.zeros(len(found), dtype=bool))


def _beside_rows(
    head: Sequence[str],
    cells: Sequence[Sequence[Any]],
    graphs: Graphs,
    made: dict[str, Any],
    unlike: Array,
) -> tuple[list[str], list[Any]]:
    """The names and the columns of an input's rows, then those that were made, then warnings."""
    reasons = [f"skipped: {row.reason}" for row in graphs.skipped]
    warnings = [UNLIKE if one else "" for one in unlike.tolist()]
    made["warning"] = in_input_order(warnings, reasons, graphs.skipped)
    columns: list[Any] = list(zip(*cells, strict=True)) or [[] for _ in head]
    return [*head, *(_free_name(name, head) for name in made)], [*columns, *made.values()]


def _answered(answers: Predictions, coverage: float) -> dict[str, Column]:
    several = len(answers.targets) > 1
    found: dict[str, Column] = {}
    for target in answers.targets:
        for key, column in target.columns(coverage).items():
            found[f"{target.name}_{key}" if several else key] = column
    if answers.similarity is not None:
        found["similarity"] = answers.similarity, "%.3f"
    return found | ({} if answers.neighbours is None else answers.neighbours.columns())


def _free_name(name: str, taken: Collection[str]) -> str:
    """A name that no other column has: ``predicted``, ``predicted_2``."""
    others = (f"{name}_{number}" for number in count(2))
    return next(free for free in chain([name], others) if free not in taken)
