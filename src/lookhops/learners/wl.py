"""Weisfeiler-Lehman kernels with a support vector machine."""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from scipy.special import log_softmax

from lookhops.core.errors import LookHopsError
from lookhops.graphs import Graphs
from lookhops.learners.outputs import Answers, Array, Outputs, Question, all_classes, answer_each
from lookhops.neighbourhoods import gram_by_hop
from lookhops.sources.splits import Split
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


def fit_wl(
    graphs: Graphs,
    split: Split,
    seed: int = 0,
    kind: str = "subtree",
    max_hops: int = MAX_HOPS,
) -> Outputs:
    r"""Fit scikit-learn's ``SVC``, or ``SVR`` for numbers, on a kernel of the training graphs.

    The kernel of depth :math:`h` sums hops 0 to :math:`h` and is scaled to
    :math:`k(a, b) / \sqrt{k(a, a) \, k(b, b)}`. Depth and penalty :math:`C` are those of the
    highest validation accuracy (of numbers, the lowest validation MAE), the smallest of equal ones.
    Scores become probabilities by a softmax whose temperature the validation part gives; numbers
    are standardised by the training part.

    Args:
        graphs: All graphs.
        split: The parts; the machine is fitted on the training part alone.
        seed: Not used: nothing here is random.
        kind: ``"subtree"`` (``wl``) or ``"optimal-assignment"`` (``wl-oa``).
        max_hops: The largest depth that is tried.
    """
    check_number(graphs)
    by_hop = _shared_gram(graphs, max_hops, kind)
    return answer_each(graphs, split, lambda question: _answer(question, by_hop))


def _answer(question: Question, by_hop: Array) -> Answers:
    """The answers of the depth and the penalty that are best on the validation part."""
    best: tuple[float, dict[str, Any], Array, Array] | None = None
    kernel = np.zeros_like(by_hop[0])
    for hops, more in enumerate(by_hop):
        kernel += more
        rows = _unit_length(kernel, question.train)
        # In double precision, as the machines want it: converted once for all penalties.
        train, val_rows, test_rows = (
            rows[part].astype(np.float64) for part in (question.train, question.val, question.test)
        )
        for penalty in PENALTIES:
            val, test = _machine(question, train, (val_rows, test_rows), penalty)
            good = question.goodness(val)
            if best is None or good > best[0]:
                best = good, {"hops": hops, "C": penalty}, val, test
    assert best is not None
    _, chosen, val, test = best
    known = question.known(question.val)
    if question.classes and known.any():
        temperature = fit_temperature(val[known], question.y[question.val][known])
        val, test = (log_softmax(scores / temperature, axis=1) for scores in (val, test))
    return val, test, chosen


def _machine(
    question: Question, train: Array, parts: tuple[Array, Array], penalty: float
) -> tuple[Array, Array]:
    """A machine's scores of classes, or numbers, for the validation and the test part.

    Args:
        question: What is asked.
        train: The kernel of the training graphs with each other.
        parts: That of the validation and of the test graphs with the training graphs.
        penalty: The machine's :math:`C`.
    """
    from sklearn.svm import SVC, SVR

    y = question.y[question.train]
    if question.classes:
        machine = SVC(C=penalty, kernel="precomputed", cache_size=500).fit(train, y)
        val, test = (_scores(machine, part, question.classes) for part in parts)
        return val, test
    mean, spread = y.mean(), y.std() or 1.0
    machine = SVR(C=penalty, kernel="precomputed", cache_size=500)
    machine.fit(train, (y - mean) / spread)
    val, test = (mean + spread * machine.predict(part)[:, None] for part in parts)
    return val, test


def check_number(graphs: Graphs) -> None:
    """Refuse more graphs than a kernel of all pairs has room for."""
    if len(graphs) > MOST_GRAPHS:
        raise LookHopsError(
            f"{graphs.name}: wl and wl-oa compare every pair of at most {MOST_GRAPHS:,} graphs, "
            f"not of {len(graphs):,}; choose fingerprint, which reads the same neighbourhoods."
        )


def _shared_gram(graphs: Graphs, hops: int, kind: str) -> Array:
    """What :func:`~lookhops.neighbourhoods.gram_by_hop` gives, computed once for all splits."""
    if graphs not in _LATEST or _LATEST[graphs][0] != (hops, kind):
        _LATEST.pop(graphs, None)  # there is not always room for two
        _LATEST[graphs] = (hops, kind), gram_by_hop(graphs, hops, kind)
    return _LATEST[graphs][1]


def _unit_length(kernel: Array, columns: Array) -> Array:
    """These columns of the kernel of vectors scaled to length one; the zero vector stays zero."""
    length = np.sqrt(kernel.diagonal())
    inverse = np.divide(1, length, out=np.zeros_like(length), where=length > 0)
    return kernel[:, columns] * inverse[:, None] * inverse[columns]


def _scores(machine: Any, rows: Array, num_classes: int) -> Array:
    """One score for each class; the largest is the machine's answer."""
    decision = machine.decision_function(rows)
    if decision.ndim == 1:  # two classes: positive speaks for the second
        decision = np.stack((-decision, decision), axis=1)
    return all_classes(decision, machine.classes_, num_classes, otherwise=_NEVER)
