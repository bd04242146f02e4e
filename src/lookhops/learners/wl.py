"""Weisfeiler-Lehman kernels with a support vector machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations
from typing import Any, ClassVar, Self
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import Tensor

from lookhops.core.arrays import Array
from lookhops.core.errors import LookHopsError
from lookhops.core.tensors import Expected, check_tensors, codes, numbers, offsets, places, positive
from lookhops.encoding import Encoding
from lookhops.graphs import Graphs
from lookhops.learners.learner import Fitted, Learner, in_parts
from lookhops.learners.scorers import (
    Arrays,
    Question,
    classes_of,
    fit_each,
    log_probabilities,
    log_softmax,
    side_by_side,
)
from lookhops.neighbourhoods import SparseRows, Vocabulary, gram_by_hop, identities, unary_codes
from lookhops.sources.splits import Split
from lookhops.tasks import Task
from lookhops.tasks.metrics import fit_temperature

#: Depths and penalties that the validation part chooses from.
MAX_HOPS = 5
PENALTIES = (0.1, 1.0, 10.0, 100.0, 1000.0)
#: A kernel is a number for every pair of graphs at every hop: here 10 GB.
MOST_GRAPHS = 20_000
#: The score of a class without a training graph: below what an SVM says of any other.
_NEVER = -1e3
#: Of each set of graphs the kernel that was computed last, because its splits share it.
_LATEST: WeakKeyDictionary[Graphs, tuple[tuple[int, str], Array]] = WeakKeyDictionary()


@dataclass(frozen=True, eq=False)
class Machine(Arrays):
    """A support vector machine on the kernel of a depth; without training graphs, a constant.

    Args:
        hops: The depth, shape ().
        dual: What each training graph adds to the decision between two classes, or to the number,
            shape (decisions, graphs).
        bias: What is added to the decisions, shape (decisions).
        known: The classes in the training part; none for numbers, shape (c).
        temperature: What scores of classes are divided by, shape ().
    """

    hops: Array
    dual: Array
    bias: Array
    known: Array
    temperature: Array

    @staticmethod
    def table(classes: int, known: int, hops: int, graphs: int) -> dict[str, Expected]:
        """What its tensors must be where so many of the classes are known."""
        decisions = known * (known - 1) // 2 if classes else 1
        return {
            "hops": places(of=hops),
            "dual": numbers(decisions, graphs),
            "bias": numbers(decisions),
            "known": replace(places(known, of=max(classes, 1)), rising=True),
            "temperature": positive(),
        }

    def answers(self, kernel: Array, classes: int) -> Array:
        """Log-probabilities of so many classes, or for none numbers, shape (n, channels)."""
        if not classes:
            numbers: Array = kernel.astype(np.float64) @ self.dual.T + self.bias
            return numbers
        if len(self.known) < 2:
            share = np.zeros((len(kernel), classes))
            share[:, self.known] = 1.0
            return log_probabilities(share)
        decisions = kernel.astype(np.float64) @ self.dual.T + self.bias
        scores = np.full((len(kernel), classes), _NEVER)
        scores[:, self.known] = _one_against_rest(decisions, len(self.known))
        return log_softmax(scores / self.temperature)

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
        known = np.asarray(model.classes_)
        return cls(np.array(hops), full, sign * bias, known, np.ones(()))


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
class Colours:
    """The colours of graphs at one hop: those that they have, and how often each has each."""

    vocabulary: Vocabulary
    rows: SparseRows

    @classmethod
    def of(cls, graphs: Graphs, column: Tensor) -> Colours:
        """Those of graphs whose nodes have these codes, shape (n, 1)."""
        vocabulary = Vocabulary.choose(graphs, column, min_graphs=1)
        return cls(vocabulary, vocabulary.rows(graphs, column))

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Tensor]) -> Colours:
        """The colours of these ``codes``, ``indices`` and ``offsets``, checked."""
        table = {
            "codes": codes("colours", rising=True),
            "indices": places("entries", of="colours", dtype="int32"),
            "offsets": offsets("graphs", into="indices"),
        }
        check_tensors(tensors, table)
        known = tensors["codes"]
        rows = SparseRows(tensors["indices"].long(), tensors["offsets"], len(known))
        return cls(Vocabulary(known, torch.zeros_like(known)), rows)

    @cached_property
    def squares(self) -> Array:
        """The product of each graph with itself, float32, shape (graphs)."""
        counts = self.rows.to_scipy()
        return np.asarray(counts.multiply(counts).sum(1)).ravel()

    def products(self, graphs: Graphs, column: Tensor) -> Array:
        """The product of each of these graphs with each training graph, shape (n, graphs)."""
        rows = self.vocabulary.rows(graphs, column).to_scipy()
        found: Array = (rows @ self.rows.to_scipy().T).toarray()
        return found


@dataclass(frozen=True, eq=False)
class FittedKernel(Fitted):
    """Machines, and the colours of the training graphs that they rest on."""

    learner: WL
    task: Task
    machines: tuple[Machine, ...]
    colours: tuple[Colours, ...]
    chosen: Mapping[str, Any] = field(default_factory=dict)

    def outputs(self, graphs: Graphs) -> Tensor:
        graphs, classes = graphs.to("cpu"), classes_of(self.task)
        codes = self.learner.codes(graphs, len(self.colours) - 1)
        kernel = np.zeros((len(graphs), len(self.colours[0].squares)), np.float32)
        new, training = np.zeros((2, 1), np.float32)
        found: dict[int, Array] = {}
        for hop, colours in enumerate(self.colours):
            column = codes[:, hop : hop + 1]
            kernel = kernel + colours.products(graphs, column)
            new, training = new + Colours.of(graphs, column).squares, training + colours.squares
            scaled = kernel * _inverse_length(new)[:, None] * _inverse_length(training)
            for number, machine in enumerate(self.machines):
                if int(machine.hops) == hop:
                    found[number] = machine.answers(scaled, classes[number])
        return side_by_side([found[number] for number in range(len(classes))], self.task)

    def tensors(self) -> dict[str, Tensor]:
        """The arrays of each target's machine, and the training graphs' colours of each hop."""
        found = {
            f"{number}.{name}": value
            for number, machine in enumerate(self.machines)
            for name, value in machine.tensors().items()
        }
        for hop, colours in enumerate(self.colours):
            found[f"hop{hop}.codes"] = colours.vocabulary.codes
            found[f"hop{hop}.indices"] = colours.rows.indices.int()
            found[f"hop{hop}.offsets"] = colours.rows.offsets
        return found

    @classmethod
    def from_tensors(
        cls, learner: Any, task: Task, encoding: Encoding, tensors: Mapping[str, Tensor]
    ) -> Self:
        targets = [str(number) for number in range(len(task.heads))]
        hops = len({key.partition(".")[0] for key in tensors if key.startswith("hop")})
        each = in_parts(tensors, [*targets, *(f"hop{hop}" for hop in range(max(hops, 1)))])
        colours = [Colours.from_tensors(one) for one in each[len(targets) :]]
        if len({len(one.rows) for one in colours}) != 1:
            raise LookHopsError("its hops are not of one set of graphs")
        machines = []
        for count, of_target in zip(classes_of(task), each, strict=False):
            known = of_target["known"].numel() if "known" in of_target else 0
            table = Machine.table(count, known, len(colours), len(colours[0].rows))
            machines.append(Machine.from_tensors(of_target, table))
        return cls(learner, task, tuple(machines), tuple(colours))


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
        by_hop = _shared_gram(graphs, MAX_HOPS, self.kind)

        def fit(question: Question) -> tuple[dict[str, Any], Machine]:
            chosen, machine = _best(question, by_hop)
            full = np.zeros((len(machine.dual), len(graphs)))
            full[:, question.train] = machine.dual
            return chosen, replace(machine, dual=full)

        machines, chosen = fit_each(graphs, task, split, fit)
        return self._kept(graphs, task, machines, chosen)

    def _kept(
        self, graphs: Graphs, task: Task, machines: Sequence[Machine], chosen: Mapping[str, Any]
    ) -> FittedKernel:
        """The machines with the graphs that any of them rests on."""
        used = np.flatnonzero(np.any([(m.dual != 0).any(0) for m in machines], axis=0))
        used = used if len(used) else np.zeros(1, dtype=int)  # all are constants
        support = graphs.select(torch.from_numpy(used)).to("cpu")
        hops = max(int(machine.hops) for machine in machines)
        columns = self.codes(support, hops).split(1, dim=1)
        colours = tuple(Colours.of(support, column) for column in columns)
        fewer = tuple(replace(machine, dual=machine.dual[:, used]) for machine in machines)
        return FittedKernel(self, task, fewer, colours, chosen)


@dataclass(frozen=True)
class WLOptimalAssignment(WL):
    """The same on the optimal-assignment kernel."""

    name: ClassVar[str] = "wl-oa"
    kind: ClassVar[str] = "optimal-assignment"


def _best(question: Question, by_hop: Array) -> tuple[dict[str, Any], Machine]:
    """The machine of the depth and the penalty that are best on the validation part."""
    graphs = len(question.train)
    if question.has_one_class:
        known = np.unique(question.y[question.train])
        nothing = np.zeros((0, graphs)), np.zeros(0)
        return {}, Machine(np.array(0), *nothing, known, np.ones(()))
    best: tuple[float, dict[str, Any], Machine, Array] | None = None
    kernel = np.zeros_like(by_hop[0])
    for hops, more in enumerate(by_hop):
        kernel += more
        inverse = _inverse_length(kernel.diagonal())
        scaled = kernel[:, question.train] * inverse[:, None] * inverse[question.train]
        # In double precision, as the machines want it: converted once for all penalties.
        train = scaled[question.train].astype(np.float64)
        val = scaled[question.val].astype(np.float64)
        for penalty in PENALTIES:
            machine = _machine(question, train, penalty, hops)
            answers = machine.answers(val, question.classes)
            good = question.goodness(answers)
            if best is None or good > best[0]:
                best = good, {"hops": hops, "C": penalty}, machine, answers
    assert best is not None
    _, chosen, machine, answers = best
    if question.classes and len(question.val):
        temperature = fit_temperature(answers, question.y[question.val])
        machine = replace(machine, temperature=np.array(temperature))
    return chosen, machine


def _machine(question: Question, train: Array, penalty: float, hops: int) -> Machine:
    """Fit a machine with a penalty :math:`C` on the kernel of the training graphs."""
    from sklearn.svm import SVC, SVR

    y = question.y[question.train]
    make = SVC if question.classes else SVR
    model = make(C=penalty, kernel="precomputed", cache_size=500)
    model.fit(train, y if question.classes else (y - y.mean()) / (y.std() or 1.0))
    return Machine.of(model, question, hops, len(y))


def _shared_gram(graphs: Graphs, hops: int, kind: str) -> Array:
    """What :func:`~lookhops.neighbourhoods.gram_by_hop` gives, computed once for all splits."""
    if graphs not in _LATEST or _LATEST[graphs][0] != (hops, kind):
        _LATEST.pop(graphs, None)  # memory may not hold two
        _LATEST[graphs] = (hops, kind), gram_by_hop(graphs, hops, kind)
    return _LATEST[graphs][1]


def _inverse_length(squares: Array) -> Array:
    """What scales vectors to length one, by their products with themselves; of zero it is zero."""
    length = np.sqrt(squares)
    return np.divide(1, length, out=np.zeros_like(length), where=length > 0)
