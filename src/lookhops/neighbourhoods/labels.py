"""Which k, from the labels: how well what lies within h hops predicts the target of a graph."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, SupportsFloat

import numpy as np
import torch
from torch import Tensor

from lookhops.core.arrays import Array
from lookhops.core.errors import LookHopsError
from lookhops.core.options import parse_seeds
from lookhops.core.paired import Estimate, corrected_t
from lookhops.core.words import compact_percent, counted
from lookhops.graphs import Graphs
from lookhops.graphs.targets import known_targets
from lookhops.neighbourhoods.counts import Vocabulary, unary_codes
from lookhops.neighbourhoods.identities import Bins, identities, shells
from lookhops.sources.splits import Split, split

if TYPE_CHECKING:
    import pandas as pd
    from scipy.sparse import csr_array

#: A smaller p-value is beyond noise.
LEVEL = 0.05
#: A residual of this share of the targets changes no prediction that matters.
TOLERANCE = 0.01
MOST_STEPS = 200
#: With fewer graphs the validation parts are too small.
LEAST_GRAPHS = 50
MAX_HOPS = 6

#: Bins of each numeric attribute.
BINS = 8

#: Of ridge regression. NCI1 changes by a point at most from 0.1 to 1; hop tasks, with few decisive
#: features among thousands, want a small one.
PENALTY = 0.2


@dataclass(frozen=True, eq=False)
class HopScores:
    """How well models that look 0 to H hops far predict the classes, or a number.

    Args:
        name: The data set.
        graphs: How many graphs were looked at.
        scores: Accuracy (of numbers, R²) with 0 to H hops on each split, shape (H + 1, splits).
        naive: That of the commonest class (of numbers, the mean), shape (splits).
        number: The number that is predicted; none where it is classes.
    """

    name: str
    graphs: int
    scores: Array
    naive: Array
    number: str | None = field(default=None, kw_only=True)

    @property
    def max_hops(self) -> int:
        """The most hops that were looked at."""
        return len(self.scores) - 1

    @cached_property
    def mean(self) -> Array:
        """Mean score over the splits, shape (H + 1)."""
        return self.scores.mean(1)

    @cached_property
    def best(self) -> int:
        """The fewest hops with the highest mean score."""
        return int(self.mean.argmax())

    def written(self, score: SupportsFloat) -> str:
        """A score in words: ``80.0%``, ``R² 0.80``."""
        return compact_percent(score) if self.number is None else f"R² {float(score):.2f}"


@dataclass(frozen=True, eq=False)
class LabelInformation(HopScores):
    """How well what lies within h hops predicts the classes, or a number.

    Args:
        name, graphs, scores, naive, number: As of :class:`HopScores`, on validation parts.
        validation_to_train: Validation graphs over training graphs.
    """

    validation_to_train: float

    @property
    def std(self) -> Array:
        """Sample standard deviation over the splits, shape (H + 1)."""
        return self.scores.std(1, ddof=1)

    @cached_property
    def lost(self) -> list[Estimate]:
        """How far h hops are below the best number of hops, paired over splits."""
        differences = self.scores[self.best] - self.scores
        return [corrected_t(one, self.validation_to_train) for one in differences]

    @cached_property
    def enough(self) -> int | None:
        """The fewest hops that lose nothing beyond noise to the best number of hops, and gain
        something beyond noise on the commonest class, or the mean; or none.

        Beyond noise is a difference with p < 0.05 in the corrected resampled t-test, p multiplied
        by the number of depths compared (Bonferroni).
        """

        def is_real(difference: Estimate) -> bool:
            return difference.mean > 0 and difference.p * len(self.scores) < LEVEL

        for hops, lost in enumerate(self.lost):
            gained = corrected_t(self.scores[hops] - self.naive, self.validation_to_train)
            if is_real(gained) and not is_real(lost):
                return hops
        return None

    # ---------------------------------------------------------------- as text and numbers

    @property
    def metric(self) -> str:
        """What the scores are: ``accuracy`` or ``r2``."""
        return "accuracy" if self.number is None else "r2"

    def sentence(self) -> str:
        """The answer in words."""
        h, chance = self.enough, self.written(self.naive.mean())
        of_classes = self.number is None
        what = "Your classes are" if of_classes else f"{self.number} is"
        if h is None:
            target = "your classes" if of_classes else str(self.number)
            rival = f"always naming the commonest class ({chance})" if of_classes else "the mean"
            return (
                f"What lies within {counted(self.max_hops, 'hop')} does not predict {target}: no "
                f"number of hops does better, beyond noise, than {rival}. These are predictions "
                "of a linear model from counts of exact neighbourhoods; sizes and numbers may "
                "predict more: lookhops compare has models that read them."
            )
        reached = self.written(self.mean[h])
        if of_classes:
            reached += f" right, against {chance} for the commonest class"
        said = f"{what} predicted by the nodes alone, without any edge: {reached}."
        if h > 0:
            decided = "decided" if of_classes else "predicted"
            said = (
                f"{what} {decided} within {counted(h, 'hop')}: {reached} and "
                f"{self.written(self.mean[h - 1])} within {counted(h - 1, 'hop')}."
            )
        if h == self.max_hops:
            further = f" The last hop still helped: look farther (--max-hops {h + 2})."
            return said + (further if h else "")
        most = f" (at most {self.written(self.mean[self.best])}, with {self.best})"
        return f"{said} More hops gain nothing beyond noise{most if self.best > h else ''}."

    def to_frame(self) -> pd.DataFrame:
        """One row a number of hops: the score, its spread, what is lost against the best."""
        import pandas as pd

        lost = [(one.mean, one.low, one.high) for one in self.lost]
        scores = {"hops": range(self.max_hops + 1), self.metric: self.mean, "std": self.std}
        return pd.DataFrame(scores).join(pd.DataFrame(lost, columns=["lost", "low", "high"]))

    def to_dict(self) -> dict[str, Any]:
        """Everything a report needs, as plain numbers and text that JSON can hold."""
        return {
            "graphs": self.graphs,
            "splits": self.naive.size,
            "hops": list(range(self.max_hops + 1)),
            **({} if self.number is None else {"number": self.number}),
            self.metric: self.mean.tolist(),
            "std": self.std.tolist(),
            "lost": [lost.mean for lost in self.lost],
            "lost_interval": [[lost.low, lost.high] for lost in self.lost],
            "majority" if self.number is None else "of_the_mean": float(self.naive.mean()),
            "enough": self.enough,
            "sentence": self.sentence(),
        }


def look_labels(
    graphs: Graphs,
    max_hops: int = MAX_HOPS,
    seeds: int | str | Sequence[int] = 10,
    progress: Callable[[str, float], None] | None = None,
) -> LabelInformation:
    r"""See how well what lies within h hops predicts the target, and which h is enough.

    A graph is read as what lies around its nodes: the exact neighbourhoods within 0 to h hops
    (:func:`~lookhops.neighbourhoods.identities`) and the labels exactly 1 to h hops away
    (:func:`~lookhops.neighbourhoods.shells`), counted in unary, those in at least two graphs, as a
    vector of length 1. Ridge regression on the classes, or the number, of the training part, with
    one penalty for all, then names the class, or the number, of each validation graph. Features and
    bins come from all graphs, without their targets; the targets of the test parts are not looked
    at.

    Args:
        graphs: The graphs, with one target; those where it is blank are left out. Numbers of nodes
            and edges are cut into bins, and neighbourhoods are read with them and without.
        max_hops: The most hops to look at, H.
        seeds: Of the splits, at least two: a count, or the seeds themselves.
        progress: Called with what is being done, and how much of it from 0 to 1.
    """
    graphs = graphs_to_predict(graphs, max_hops)
    chosen = parse_seeds(seeds)
    if len(chosen) < 2:
        raise LookHopsError("What is noise shows on two splits or more: give at least 2 seeds.")
    report = progress or (lambda _what, _share: None)
    assert graphs.y is not None
    y, classes = graphs.y.numpy(), graphs.num_classes
    if not classes:  # centred and scaled, so that single precision will do; R² does not change
        y = (y - y.mean()) / y.std()
    splits = [split(graphs, seed, stratify=classes > 0) for seed in chosen]
    train, targets, common = _regressions(y, classes, splits)
    scores = []
    for hops, rows in enumerate(_rows_by_depth(graphs, max_hops)):
        report("reading neighbourhoods", hops / (max_hops + 1))
        answers = ridge_predictions(rows, targets - common, train, PENALTY) + common
        scores.append(_scores(answers, y, classes, splits))
    return LabelInformation(
        graphs.name,
        len(graphs),
        np.array(scores),
        np.array(_scores(np.broadcast_to(common, targets.shape), y, classes, splits)),
        validation_to_train=len(splits[0].val) / len(splits[0].train),
        number=None if classes else graphs.targets[0].name,
    )


def graphs_to_predict(graphs: Graphs, max_hops: int) -> Graphs:
    """The graphs whose target is not blank, on the CPU; or why it cannot be looked at."""
    if reason := why_not(graphs):
        raise LookHopsError(reason)
    if max_hops < 0:
        raise LookHopsError(f"max_hops is a whole number from 0, not {max_hops}.")
    graphs = graphs.to("cpu")
    assert graphs.y is not None
    return graphs[known_targets(graphs.y)]


def why_not(graphs: Graphs) -> str | None:
    """Why the target cannot be looked at, or none where it can."""
    if graphs.y is None:
        return f"{graphs.name}: the graphs have no classes to predict."
    if len(graphs.targets) > 1:
        return f"{graphs.name}: there are several targets; look at one at a time (--target)."
    known = graphs.y[known_targets(graphs.y)]
    if known.unique().numel() < 2:
        same = "of one class" if graphs.num_classes else "alike"
        return f"{graphs.name}: all graphs are {same}: there is nothing to predict."
    if len(known) < LEAST_GRAPHS:
        return (
            f"{graphs.name}: {counted(len(known), 'graph')} are too few to predict "
            f"the {'classes' if graphs.num_classes else 'target'} from; it takes {LEAST_GRAPHS}."
        )
    return None


def _rows_by_depth(graphs: Graphs, max_hops: int) -> Iterator[csr_array]:
    """The graphs as rows of length 1 of what lies within 0, 1, ... hops."""
    from scipy.sparse import diags_array, hstack

    blocks = []
    for seen in seen_by_hop(graphs, max_hops):
        codes = unary_codes(graphs, seen)
        vocabulary = Vocabulary.choose(graphs, codes)
        blocks.append(vocabulary.rows(graphs, codes).to_scipy())
        rows = hstack(blocks, format="csr")
        lengths = np.sqrt(np.maximum(np.diff(rows.indptr), 1)).astype(np.float32)
        yield (diags_array(1 / lengths) @ rows).tocsr()


def seen_by_hop(graphs: Graphs, max_hops: int) -> list[Tensor]:
    """The identities of what is seen at 0, 1, ... hops, each of shape (n, readings)."""
    # Numbers, even in few bins, make neighbourhoods almost all different, which would hide what
    # labels and edges predict: graphs are read without them first.
    bins, edge_bins = (
        None if numbers is None else Bins.learn(numbers, BINS)(numbers)
        for numbers in (graphs.nodes.numbers, graphs.edges.numbers)
    )
    seen: list[list[Tensor]] = [[] for _ in range(max_hops + 1)]
    for numbers in [None] if bins is None else [None, bins]:
        within = identities(graphs, max_hops, numbers)
        exactly = shells(graphs, within[:, 0], max_hops)
        for hop, columns in enumerate(seen):
            columns += [within[:, hop], *exactly[:, max(hop - 1, 0) : hop].unbind(1)]
    if edge_bins is not None:
        within = identities(graphs, max_hops, edge_bins=edge_bins)
        for hop in range(1, max_hops + 1):
            seen[hop].append(within[:, hop])
    return [torch.stack(columns, 1) for columns in seen]


def _regressions(y: Array, classes: int, splits: Sequence[Split]) -> tuple[Array, ...]:
    """Training parts, targets and their means: a column for each split and each class but the last.

    Targets are 1 for the class and 0 for others. They sum to 1 over the classes, and so do their
    predictions: the last class needs no regression. A number is one target.
    """
    train = np.zeros((len(y), len(splits)), np.float32)
    for column, one in enumerate(splits):
        train[one.train.numpy(), column] = 1
    columns = (np.eye(classes)[y, :-1] if classes else y[:, None]).astype(np.float32)
    train, targets = train.repeat(columns.shape[1], axis=1), np.tile(columns, len(splits))
    return train, targets, (train * targets).sum(0) / train.sum(0)


def _scores(answers: Array, y: Array, classes: int, splits: Sequence[Split]) -> list[float]:
    """Accuracy, or R², on the validation graphs of each split."""
    found = []
    for one, columns in zip(splits, np.split(answers, len(splits), axis=1), strict=True):
        val = one.val.numpy()
        predicted, true = columns[val], y[val]
        if classes:
            last = 1 - predicted.sum(1, keepdims=True)
            found.append(float((np.hstack((predicted, last)).argmax(1) == true).mean()))
        else:
            error = ((predicted[:, 0] - true) ** 2).sum()
            found.append(float(1 - error / max(((true - true.mean()) ** 2).sum(), 1e-12)))
    return found


def ridge_predictions(rows: csr_array, targets: Array, train: Array, penalty: float) -> Array:
    r"""What ridge regression on each training part predicts for every row, shape (g, p).

    Column :math:`p` is :math:`X w_p` with :math:`w_p` the minimum of
    :math:`\sum_{i \in \mathrm{train}_p} (x_i w - y_{ip})^2 + \lambda |w|^2`, :math:`X` the rows
    (g, v) and :math:`y` the targets (g, p), of mean 0 in their training part: there is no constant
    term. With :math:`w = X^T a` and the diagonal matrix :math:`M` of the training part, ``train``
    (g, p), this is :math:`(M X X^T M + \lambda) a = M y`, solved by conjugate gradients, all
    columns in the same products.
    """
    columns = rows.T.tocsr()
    residual = train * targets
    solution, direction = np.zeros_like(residual), residual.copy()
    length = (residual**2).sum(0)
    enough = TOLERANCE**2 * length
    for _ in range(MOST_STEPS):
        if (length <= enough).all():
            break
        image = train * (rows @ (columns @ direction)) + penalty * direction
        # A column that is all 0 has nothing to solve, and no direction.
        step = length / np.maximum((direction * image).sum(0), np.finfo(np.float32).tiny)
        solution += step * direction
        residual -= step * image
        before, length = length, (residual**2).sum(0)
        direction = residual + length / np.maximum(before, np.finfo(np.float32).tiny) * direction
    predictions: Array = rows @ (columns @ solution)
    return predictions
