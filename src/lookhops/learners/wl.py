"""Weisfeiler-Lehman kernels with a support vector machine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING, Any, ClassVar, Self
from weakref import WeakKeyDictionary

import numpy as np
import torch
from scipy.special import log_softmax
from torch import Tensor

from lookhops.core.arrays import Array
from lookhops.core.errors import LookHopsError
from lookhops.core.tensors import (
    Saved,
    codes,
    named_parts,
    numbers,
    offsets,
    places,
    positive,
    saved,
)
from lookhops.encoding import Encoding
from lookhops.graphs import Graphs
from lookhops.learners.learner import Fitted, Learner, in_parts
from lookhops.learners.scorers import (
    Arrays,
    Candidate,
    Question,
    classes_of,
    fit_each,
    log_probabilities,
    side_by_side,
)
from lookhops.neighbourhoods import SparseRows, Vocabulary, gram_by_hop, identities, unary_codes
from lookhops.sources.splits import Split
from lookhops.tasks import Task
from lookhops.tasks.metrics import fit_temperature

if TYPE_CHECKING:
    from scipy.sparse import csr_array

#: Depths and penalties that the validation part chooses from.
MAX_HOPS = 5
PENALTIES = (0.1, 1.0, 10.0, 100.0, 1000.0)
#: A kernel is a number for every pair of graphs at every hop: here 10 GB.
MOST_GRAPHS = 20_000
#: The score of a class without a training graph: below what an SVM says of any other.
_NEVER = -1e3
#: Of each set of graphs the kernel that was computed last, because its splits share it.
_LATEST: WeakKeyDictionary[Graphs, tuple[str, Array]] = WeakKeyDictionary()


@dataclass(frozen=True, eq=False)
class Machine(Arrays):
    """A support vector machine on the kernel of a depth; without training graphs, a constant.

    The ``hops`` are the depth. ``dual`` is what each training graph adds to the decision between
    two classes, or to the number; ``bias`` is added to all. Classes are ``known`` if they are in
    the training part, none for numbers. Scores of classes are divided by the ``temperature``.
    """

    hops: Array = saved(places(of="hops"))
    dual: Array = saved(numbers("decisions", "graphs"))
    bias: Array = saved(numbers("decisions"))
    known: Array = saved(replace(places("known", of="classes"), rising=True))
    temperature: Array = saved(positive())

    def answers(self, kernel: Array, classes: int) -> Array:
        """Log-probabilities of so many classes, or for none numbers, shape (n, channels)."""
        if classes and len(self.known) < 2:
            share = np.zeros((len(kernel), classes))
            share[:, self.known] = 1.0
            return log_probabilities(share)
        decisions: Array = kernel.astype(np.float64) @ self.dual.T + self.bias
        if not classes:
            return decisions
        scores = np.full((len(kernel), classes), _NEVER)
        scores[:, self.known] = _one_against_rest(decisions, len(self.known))
        log_p: Array = log_softmax(scores / self.temperature, 1)
        return log_p

    @classmethod
    def of(cls, model: Any, question: Question, hops: int, graphs: int) -> Machine:
        """The machine of scikit-learn's ``SVC`` or ``SVR`` that was fitted on so many graphs."""
        dual, bias = model.dual_coef_, model.intercept_
        if not question.classes:
            y = question.y[question.train]
            mean, spread = y.mean(), y.std() or 1.0
            full = np.zeros((1, graphs))
            full[:, model.support_] = dual * spread
            return cls(np.array(hops), full, bias * spread + mean, np.zeros(0, int), np.ones(()))
        ends = np.cumsum(model.n_support_)
        # Of two classes scikit-learn turns the signs, so that positive speaks for the second.
        sign = -1 if len(ends) == 2 else 1
        pairs = list(combinations(range(len(ends)), 2))
        full = np.zeros((len(pairs), graphs))
        for row, (i, j) in enumerate(pairs):
            for this, other in ((i, j - 1), (j, i)):
                part = slice(ends[this] - model.n_support_[this], ends[this])
                full[row, model.support_[part]] = sign * dual[other, part]
        return cls(np.array(hops), full, sign * bias, np.asarray(model.classes_), np.ones(()))


def _one_against_rest(decisions: Array, classes: int) -> Array:
    """One score for each class from the decision between each two, as scikit-learn's ``SVC`` has.

    It is the number of decisions that a class wins, and less than a half more by how far.
    """
    if classes == 2:
        return np.concatenate((decisions, -decisions), axis=1)
    pairs = list(combinations(range(classes), 2))
    first, second = (np.eye(classes)[[pair[side] for pair in pairs]] for side in (0, 1))
    wins = decisions >= 0
    confidence = decisions @ (first - second)
    votes = wins @ first + ~wins @ second
    scores: Array = votes + confidence / (3 * (np.abs(confidence) + 1))
    return scores


@dataclass(frozen=True, eq=False)
class Colours(Saved):
    """The colours that graphs have at one hop, and how often each graph has each: sparse rows."""

    codes: Tensor = saved(codes("colours", rising=True))
    indices: Tensor = saved(places("entries", of="colours", dtype="int32"))
    offsets: Tensor = saved(offsets("graphs", into="indices"))

    @classmethod
    def of(cls, graphs: Graphs, column: Tensor) -> Colours:
        """Those of graphs whose nodes have these codes, shape (n, 1)."""
        vocabulary = Vocabulary.choose(graphs, column, min_graphs=1)
        rows = vocabulary.rows(graphs, column)
        return cls(vocabulary.codes, rows.indices.int(), rows.offsets)

    @cached_property
    def rows(self) -> csr_array:
        """Counts of the colours, shape (graphs, colours)."""
        return SparseRows(self.indices.long(), self.offsets, len(self.codes)).to_scipy()

    @cached_property
    def squares(self) -> Array:
        """The product of each graph with itself, float32, shape (graphs)."""
        return np.asarray(self.rows.multiply(self.rows).sum(1)).ravel()

    def products(self, graphs: Graphs, column: Tensor) -> Array:
        """The product of each of these graphs with each training graph, shape (n, graphs)."""
        vocabulary = Vocabulary(self.codes, torch.zeros_like(self.codes))
        found: Array = (vocabulary.rows(graphs, column).to_scipy() @ self.rows.T).toarray()
        return found


@dataclass(frozen=True, eq=False)
class FittedKernel(Fitted):
    """Machines, and the colours of the training graphs that they rest on."""

    machines: tuple[Machine, ...]
    colours: tuple[Colours, ...]

    def outputs(self, graphs: Graphs) -> Tensor:
        graphs, classes = graphs.to("cpu"), classes_of(self.task)
        kernel = np.zeros((len(graphs), len(self.colours[0].squares)), np.float32)
        new, training = np.zeros((2, 1), np.float32)
        found: dict[int, Array] = {}
        columns = self.learner.codes(graphs, len(self.colours) - 1).split(1, dim=1)
        for hop, (colours, column) in enumerate(zip(self.colours, columns, strict=True)):
            kernel = kernel + colours.products(graphs, column)
            new, training = new + Colours.of(graphs, column).squares, training + colours.squares
            scaled = kernel * _inverse_length(new)[:, None] * _inverse_length(training)
            for number, machine in enumerate(self.machines):
                if int(machine.hops) == hop:
                    found[number] = machine.answers(scaled, classes[number])
        return side_by_side([found[number] for number in range(len(classes))], self.task)

    def tensors(self) -> dict[str, Tensor]:
        """The arrays of each target's machine, and the training graphs' colours of each hop."""
        machines = {f"{number}": one.tensors() for number, one in enumerate(self.machines)}
        colours = {f"hop{hop}": one.tensors() for hop, one in enumerate(self.colours)}
        return named_parts(machines | colours)

    @classmethod
    def from_tensors(
        cls, learner: Any, task: Task, encoding: Encoding, tensors: Mapping[str, Tensor]
    ) -> Self:
        targets = [str(number) for number in range(len(task.heads))]
        hops = max(len({key.partition(".")[0] for key in tensors if key.startswith("hop")}), 1)
        each = in_parts(tensors, [*targets, *(f"hop{hop}" for hop in range(hops))])
        colours = tuple(Colours.from_tensors(one) for one in each[len(targets) :])
        graphs = {len(one.offsets) - 1 for one in colours}
        if len(graphs) != 1:
            raise LookHopsError("its hops are not of one set of graphs")
        machines = []
        for classes, of_target in zip(classes_of(task), each, strict=False):
            known = of_target["known"].numel() if "known" in of_target else 0
            decisions = known * (known - 1) // 2 if classes else 1
            sizes = {"known": known, "decisions": decisions, "classes": max(classes, 1)}
            sizes |= {"hops": hops, "graphs": min(graphs)}
            machines.append(Machine.from_tensors(of_target, **sizes))
        return cls(learner, task, encoding, tuple(machines), colours)


@dataclass(frozen=True)
class WL(Learner):
    r"""A support vector machine on the subtree kernel of the training graphs.

    The kernel of depth :math:`h` sums hops 0 to :math:`h` and is scaled to
    :math:`k(a, b) / \sqrt{k(a, a) \, k(b, b)}`. Depth and penalty :math:`C` are those of the
    highest validation accuracy (of numbers, the lowest validation MAE), the smallest of equal ones.
    Scores become probabilities by a softmax whose temperature the validation part gives; numbers
    are standardised by the training part. Nothing here is random.
    """

    name: ClassVar[str] = "wl"
    fitted: ClassVar[type[Fitted]] = FittedKernel
    kind: ClassVar[str] = "subtree"

    def check(self, graphs: Graphs, task: Task) -> None:
        """Refuse more graphs than a kernel of all pairs can hold."""
        if len(graphs) > MOST_GRAPHS:
            raise LookHopsError(
                f"{graphs.name}: {self.name} compares every pair of at most {MOST_GRAPHS:,} graphs,"
                f" not of {len(graphs):,}; choose fingerprint, which reads the same neighbourhoods."
            )

    def codes(self, graphs: Graphs, hops: int) -> Tensor:
        """The colour of each node after 0 to so many hops, shape (n, hops + 1)."""
        found = identities(graphs, hops)
        return found if self.kind == "subtree" else unary_codes(graphs, found)

    def fit(self, graphs: Graphs, task: Task, split: Split, seed: int) -> FittedKernel:
        self.check(graphs, task)
        by_hop = _shared_gram(graphs, self.kind)

        def fit(question: Question) -> Candidate[Machine]:
            chosen, machine = _best(question, by_hop)
            full = np.zeros((len(machine.dual), len(graphs)))
            full[:, question.train] = machine.dual
            return chosen, replace(machine, dual=full)

        machines, chosen = fit_each(graphs, task, split, fit)
        # The graphs that any of the machines rests on; where all are constants, any graph.
        used = np.flatnonzero(np.any([(one.dual != 0).any(0) for one in machines], axis=0))
        used = used if len(used) else np.zeros(1, dtype=int)
        support = graphs.select(torch.from_numpy(used)).to("cpu")
        hops = max(int(machine.hops) for machine in machines)
        columns = self.codes(support, hops).split(1, dim=1)
        colours = tuple(Colours.of(support, column) for column in columns)
        machines = tuple(replace(machine, dual=machine.dual[:, used]) for machine in machines)
        encoding = self.encoding(graphs)
        return FittedKernel(self, task, encoding, machines, colours, chosen=chosen)


@dataclass(frozen=True)
class WLOptimalAssignment(WL):
    """The same on the optimal-assignment kernel."""

    name: ClassVar[str] = "wl-oa"
    kind: ClassVar[str] = "optimal-assignment"


def _best(question: Question, by_hop: Array) -> Candidate[Machine]:
    """The machine of the depth and the penalty that are best on the validation part."""
    if question.has_one_class:
        nothing = np.zeros((0, len(question.train))), np.zeros(0)
        classes = np.unique(question.y[question.train])
        return {}, Machine(np.array(0), *nothing, classes, np.ones(()))
    (chosen, machine), answers = question.best(_machines(question, by_hop))
    if question.classes and len(question.val):
        temperature = fit_temperature(answers, question.y[question.val])
        machine = replace(machine, temperature=np.array(temperature))
    return chosen, machine


def _machines(question: Question, by_hop: Array) -> Iterator[tuple[Candidate[Machine], Array]]:
    """A machine of every depth and penalty, and what it answers to the validation graphs."""
    from sklearn.svm import SVC, SVR

    y = question.y[question.train]
    target = y if question.classes else (y - y.mean()) / (y.std() or 1.0)
    kernel = np.zeros_like(by_hop[0])
    for hops, more in enumerate(by_hop):
        kernel += more
        inverse = _inverse_length(kernel.diagonal())
        scaled = kernel[:, question.train] * inverse[:, None] * inverse[question.train]
        # In double precision, as the machines want it: converted once for all penalties.
        train = scaled[question.train].astype(np.float64)
        val = scaled[question.val].astype(np.float64)
        for penalty in PENALTIES:
            make = SVC if question.classes else SVR
            model = make(C=penalty, kernel="precomputed", cache_size=500).fit(train, target)
            machine = Machine.of(model, question, hops, len(y))
            about = {"hops": hops, "C": penalty}
            yield (about, machine), machine.answers(val, question.classes)


def _shared_gram(graphs: Graphs, kind: str) -> Array:
    """What :func:`~lookhops.neighbourhoods.gram_by_hop` gives, computed once for all splits."""
    if graphs not in _LATEST or _LATEST[graphs][0] != kind:
        _LATEST.pop(graphs, None)  # memory may not hold two
        _LATEST[graphs] = kind, gram_by_hop(graphs, MAX_HOPS, kind)
    return _LATEST[graphs][1]


def _inverse_length(squares: Array) -> Array:
    """What scales vectors to length one, by their products with themselves; of zero it is zero."""
    length = np.sqrt(squares)
    return np.divide(1, length, out=np.zeros_like(length), where=length > 0)
