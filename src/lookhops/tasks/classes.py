"""Which of several classes a graph belongs to."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.random import Generator
from torch import Tensor

from lookhops.core.arrays import Array
from lookhops.core.charts import Chart
from lookhops.core.words import counted, joined, percent
from lookhops.ops.log_likelihood import log_likelihood
from lookhops.tasks.answers import ClassAnswers, Ensemble, Tested
from lookhops.tasks.charts import calibration_curve, confusion_chart, ranking_curves
from lookhops.tasks.conformal import class_quantiles, class_scores, class_sets
from lookhops.tasks.metrics import (
    RESAMPLES,
    Metric,
    bootstrap_auroc,
    calibration_error,
    check_threshold,
    choose_temperature,
    choose_threshold,
    classification_metrics,
    confusion_matrix,
    rates,
)
from lookhops.tasks.target_task import TargetTask
from lookhops.tasks.task import Calibration, Maybe, MetricValues, Tensors, as_array

ACCURACY = Metric("accuracy", "accuracy")
AUROC = Metric("auroc", "AUROC", over_classes=True)
RATES = (
    ACCURACY,
    Metric("majority", "accuracy, commonest class"),
    Metric("balanced_accuracy", "balanced accuracy", over_classes=True),
    Metric("macro_f1", "macro-F1", over_classes=True),
    AUROC,
)
#: Of two classes, the second of which is looked for.
OF_TWO = (
    Metric("average_precision", "average precision", over_classes=True),
    Metric("f1", "F1", over_classes=True),
    Metric("mcc", "MCC", share=False, over_classes=True),
)
OTHERS = (
    Metric("loss", "loss", higher_is_better=False, share=False, shown=False),
    Metric("ece_before", "calibration error", False, about_calibration=True),
    Metric("ece_after", "calibration error, with temperature", False, about_calibration=True),
    Metric("coverage", "90% sets with the class", about_calibration=True),
    Metric("set_size", "classes in a 90% set", False, False, about_calibration=True),
)
#: Begins the names of what conformal sets reach up to.
QUANTILE = "conformal_quantile"
#: Of more classes the coverage of each is not said.
SHOWN_CLASSES = 10


@dataclass(frozen=True)
class Classification(TargetTask):
    r"""One class out of several: softmax over the output, negative log-likelihood.

    .. math::
        \log p = \mathrm{log\,softmax}(o), \qquad
        \mathcal{L} = -\frac{\sum_i w_{y_i} \log p_{i, y_i}}{\sum_i w_{y_i}}

    Args:
        class_names: Names of the classes.
        class_weights: Whether the loss weighs classes by their rarity in the training part;
            else every :math:`w` is 1.
        threshold: Of two classes: the probability from which the second is answered, such as
            ``0.3``, or what it is chosen for on a validation part: ``f1`` (the highest F1 of the
            second class) or ``youden`` (the highest sum of both classes' recalls). By default the
            likelier class is answered.
    """

    class_names: tuple[str, ...]
    class_weights: bool = False
    threshold: str | None = None

    kind = "classification"
    main = ACCURACY
    ranked_by = AUROC
    shares = ("balanced_accuracy", "macro_f1", "auroc")
    words = "classes"
    regions_are = "sets"
    unit = "log-odds"
    name = "class"
    loss = "log-likelihood"

    def __post_init__(self) -> None:
        object.__setattr__(self, "class_names", tuple(self.class_names))  # JSON gives a list
        if self.threshold is not None:
            check_threshold(self.threshold, self.out_channels)

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """Shares of right answers, ranking and calibration; of two classes some more."""
        return (*RATES, *(OF_TWO if self.out_channels == 2 else ()), *OTHERS)

    @property
    def class_metrics(self) -> tuple[Metric, ...]:
        """The coverage of each class, where they are few."""
        names = self.class_names if self.out_channels <= SHOWN_CLASSES else ()
        return tuple(
            Metric(f"coverage of {name}", name, about_calibration=True, of_class=name)
            for name in names
        )

    @property
    def out_channels(self) -> int:
        return len(self.class_names)

    @property
    def fitted_size(self) -> int:
        return self.out_channels if self.class_weights else 0

    @property
    def calibrated(self) -> tuple[str, ...]:  # type: ignore[override]
        return ("temperature", QUANTILE, *(["threshold"] if self.threshold is not None else []))

    # ---------------------------------------------------------------- training

    def lacking(self, target: Tensor, train: Tensor) -> str | None:
        """The classes that only graphs outside the training part have."""
        absent = (self._counts(target) > 0) & (self._counts(target[train]) == 0)
        names = ", ".join(repr(self.class_names[c]) for c in absent.nonzero().flatten().tolist())
        return f"class {names} has no graph" if names else None

    def _counts(self, target: Tensor) -> Tensor:
        """How many graphs each class has, shape (classes)."""
        known = target[self.known(target)].long()
        return torch.bincount(known, minlength=self.out_channels)

    def fit(self, train_target: Tensor) -> Tensor | None:
        """Class weights n / (classes * count), shape (classes), zero for absent ones."""
        if not self.class_weights:
            return None
        count = self._counts(train_target)
        weight = count.sum() / (self.out_channels * count.clamp(min=1).float())
        return torch.where(count > 0, weight, 0)

    def losses(
        self, output: Tensor, target: Tensor, fitted: Maybe = None, real: Maybe = None
    ) -> tuple[Tensor, Tensor]:
        """Weighted mean of the negative log-likelihood, and the sum of the weights."""
        return log_likelihood(output, target.nan_to_num(-1).long(), fitted, real)

    def scores(
        self, output: Tensor, target: Tensor, fitted: Maybe = None, real: Maybe = None
    ) -> tuple[Tensor, Tensor]:
        """Accuracy, and the number of graphs."""
        weight = self.weights(target, real, torch.float64)
        total = weight.sum(-1)
        return ((output.argmax(-1) == target) * weight).sum(-1) / total.clamp(min=1), total

    # ---------------------------------------------------------------- answers

    def average(self, outputs: Sequence[Tensor]) -> Tensor:
        r"""The logarithm of the mean :math:`\tfrac1m \sum_i \mathrm{softmax}(o_i)`."""
        likelihood = torch.stack(list(outputs)).log_softmax(-1)
        return likelihood.logsumexp(0) - math.log(len(outputs))

    def answers(self, output: Tensor, calibration: Calibration) -> Tensor:
        r"""Probabilities :math:`\mathrm{softmax}(o / T)`, shape (g, classes)."""
        return (output.double() / calibration.get("temperature", 1.0)).softmax(-1)

    def decided(self, answers: Array, calibration: Calibration) -> Array:
        """The class that is answered, shape (g): the likeliest, or by the threshold."""
        if "threshold" not in calibration:
            return answers.argmax(-1)
        return (answers[..., 1] >= calibration["threshold"]).astype(np.int64)

    def calibrate(
        self, output: Tensor, target: Tensor, unseen: Maybe = None, deviation: Maybe = None
    ) -> Calibration:
        """By the validation part; blanks do not count.

        The ``temperature``, 1 where none helps; the ``conformal_quantile`` that sets of 90 % reach
        up to, and under ``conformal_quantile of NAME`` that of a class where it is another one; the
        ``threshold``, where there is to be one.
        """
        known, y = self._known(output, target)
        found = {"temperature": choose_temperature(as_array(known.double()), y)}
        answers = self.answers(output if unseen is None else unseen, found)
        *each, together = class_quantiles(self.distances(answers, target), self.out_channels)
        found[QUANTILE] = together
        pairs = zip(self.class_names, each, strict=True)
        found |= {f"{QUANTILE} of {name}": one for name, one in pairs if one != together}
        if self.threshold is not None:
            p = as_array(self.answers(known, found))
            found["threshold"] = choose_threshold(p[:, 1], y, self.threshold)
        return found

    def _known(self, output: Tensor, target: Tensor) -> tuple[Tensor, Array]:
        """The outputs for the graphs whose class is known, and the numbers of their classes."""
        known = self.known(target)
        return output[known], as_array(target[known].long())

    def distances(self, answers: Tensor, target: Tensor, deviation: Maybe = None) -> Array:
        """One less the probability of the true class, and that class."""
        return class_scores(as_array(answers), as_array(target))

    def regions(
        self, answers: Array, scores: Sequence[Array], coverage: float, deviation: Any = None
    ) -> Array:
        """Which classes are in the set, shape (g, classes)."""
        return class_sets(answers, scores, coverage)

    def _sets(self, p: Array, calibration: Calibration) -> Array:
        """One model's conformal sets of 90 %, what it answers always among them."""
        together = calibration.get(QUANTILE, 1.0)
        reach = [calibration.get(f"{QUANTILE} of {name}", together) for name in self.class_names]
        return (1 - p <= reach) | one_hot(self.decided(p, calibration), self.out_channels)

    # ---------------------------------------------------------------- metrics

    def evaluate(
        self, output: Tensor, target: Tensor, by: Calibration | None = None, deviation: Maybe = None
    ) -> MetricValues:
        """Rates, AUROC and loss; with a calibration also its error.

        AUROC and average precision are none where they are not defined. The calibration error is
        given before and after the temperature. ``coverage`` is the share of conformal sets of 90 %
        that hold the class.
        """
        output, y = self._known(output, target)
        p, calibrated = (as_array(self.answers(output, one)) for one in ({}, by or {}))
        found = self._rates(self.decided(calibrated, by or {}), output, y)
        if by is None:
            return found
        errors = {
            "ece_before": calibration_error(p, y),
            "ece_after": calibration_error(calibrated, y),
        }
        return {**found, **by, **errors, **coverage_of(self._sets(calibrated, by), y)}

    def _rates(self, decided: Array, output: Tensor, y: Array) -> MetricValues:
        """Rates of the classes that are answered, shape (g), and AUROC and loss of the outputs."""
        loss, _ = self.losses(output.double(), torch.from_numpy(y))
        p = as_array(self.answers(output, {}))
        return classification_metrics(p, y, decided, float(loss))

    def measure(self, answers: ClassAnswers, target: Tensor) -> MetricValues:
        """Rates, AUROC and calibration error, and how often the sets hold the class."""
        p, y = answers.probabilities, as_array(target.long())
        # Answers as outputs: their softmax is what they are.
        output = torch.from_numpy(np.log(np.maximum(p, 1e-300)))
        found = self._rates(answers.numbers, output, y) | {"ece_after": calibration_error(p, y)}
        if answers.sets is not None:
            found |= coverage_of(answers.sets, y)
            held = answers.sets[np.arange(len(y)), y]
            for number, name in enumerate(self.class_names):
                of_class = held[y == number]
                found[f"coverage of {name}"] = float(of_class.mean()) if len(of_class) else None
        return found

    def naive(self, train_target: Tensor, target: Tensor) -> MetricValues:
        """``majority``: the share of the class that is commonest in the training part."""
        commonest = int(as_array(self._counts(train_target)).argmax())
        known = target[self.known(target)]
        return {"majority": float((known == commonest).double().mean()) if len(known) else None}

    def typical(self, fitted: Sequence[Tensor], commonest: str | None) -> Tensor | None:
        """The number of the class that is commonest in all training parts together."""
        known = commonest in self.class_names
        return torch.tensor([float(self.class_names.index(str(commonest)))]) if known else None

    def count_labels(self, target: Tensor) -> dict[str, int]:
        return dict(zip(self.class_names, self._counts(target).tolist(), strict=True))

    def resampled(self, output: Tensor, target: Tensor) -> dict[str, Array]:
        """Of AUROC."""
        output, y = self._known(output, target)
        return {"auroc": bootstrap_auroc(as_array(self.answers(output, {})), y)}

    def redrawn(
        self, truth: Array, values: Array, calibration: Calibration, generator: Generator
    ) -> dict[str, Array]:
        """Of what follows from the confusion matrix alone.

        To redraw n test graphs is to draw their confusion matrix from a multinomial distribution.
        """
        n, classes = len(truth), self.out_channels
        decided = self.decided(values, calibration)
        matrix = confusion_matrix(truth.astype(np.int64), decided, classes)
        draws = generator.multinomial(n, matrix.flatten() / n, size=RESAMPLES)
        return rates(draws.reshape(-1, classes, classes))

    def overview(
        self, outputs: Tensors, targets: Tensors, calibrations: Sequence[Calibration] = ()
    ) -> dict[str, Any]:
        """The ``confusion`` matrix: true class by predicted class.

        With calibrations also how many graphs of each class have it in their set, ``in_sets``.
        """
        matrix = np.zeros((self.out_channels, self.out_channels), dtype=np.int64)
        held = np.zeros(self.out_channels, dtype=np.int64)
        each = calibrations or [{}] * len(outputs)
        for output, target, calibration in zip(outputs, targets, each, strict=True):
            output, y = self._known(output, target)
            p = as_array(self.answers(output, calibration))
            matrix += confusion_matrix(y, self.decided(p, calibration), self.out_channels)
            inside = self._sets(p, calibration)[np.arange(len(y)), y]
            held += np.bincount(y[inside], minlength=self.out_channels)
        in_sets = {"in_sets": held.tolist()} if calibrations else {}
        return {"confusion": matrix.tolist(), **in_sets}

    # ---------------------------------------------------------------- new graphs

    def answer(self, given: Ensemble) -> ClassAnswers:
        """The class that the mean of the probabilities gives, and how far the networks agree.

        It is held against the mean of the seeds' thresholds, where they have one.
        """
        thresholds = [one["threshold"] for one in given.calibrations if "threshold" in one]
        mean = {"threshold": float(np.mean(thresholds))} if thresholds else {}
        alone, regions, chosen = given.alone, given.regions, self.decided(given.mean, mean)
        pairs = zip(alone, given.calibrations, strict=True)
        votes = np.stack([self.decided(p, calibration) for p, calibration in pairs])
        likely = np.take_along_axis(alone, np.broadcast_to(chosen, votes.shape)[..., None], -1)
        if regions is not None:  # what is answered is never left out
            regions = regions | one_hot(chosen, self.out_channels)
        return ClassAnswers(
            name=given.name,
            spread=likely[..., 0].std(0),
            models=len(alone),
            class_names=self.class_names,
            probabilities=given.mean,
            numbers=chosen,
            agreement=(votes == chosen).mean(0),
            sets=regions,
        )

    def agreement(self, answers: ClassAnswers, truth: Array) -> tuple[float, int]:
        """How often the class that is answered is the true one."""
        return int((answers.numbers == truth).sum()), int((~np.isnan(truth)).sum())

    def agreement_in_words(self, total: float, count: int, when: str) -> str:
        return f"{total:,.0f} of {count:,}{when} as labelled ({total / count:.1%})"

    def sides(self, weight: Array, fitted: Sequence[Tensor]) -> dict[str, Array]:
        """For each class what is added to its output less the mean of the others."""
        others = (weight.sum(1, keepdims=True) - weight) / max(weight.shape[1] - 1, 1)
        return dict(zip(self.class_names, (weight - others).T, strict=True))

    # ---------------------------------------------------------------- tables

    @property
    def columns(self) -> tuple[str, ...]:
        """The true class, and the probability of each."""
        return ("class", *(f"p({name})" for name in self.class_names))

    def label(self, target: Any) -> str:
        return self.class_names[int(target)] if target == target else ""

    def parse(self, cells: Sequence[str]) -> Array:
        numbers = {"": np.nan, **{name: i for i, name in enumerate(self.class_names)}}
        if strange := set(cells) - numbers.keys():
            raise ValueError(f"{strange} are no classes")
        return np.array([numbers[cell] for cell in cells], dtype=np.float64)

    @property
    def asked(self) -> str:
        """``in 3 classes``."""
        return f"in {counted(self.out_channels, 'class', 'classes')}"

    # ---------------------------------------------------------------- reports

    def in_card(self, name: str, code: Callable[[str], str], most: int) -> str:
        listed = f"one of {self.out_channels:,} classes"
        if self.out_channels <= most:
            listed = joined([*map(code, self.class_names)], "or")
        return f"which {code(name or self.name)} it is of: {listed}"

    def results(self, tested: Tested) -> str:
        """The share that was right, the classes that are known best and least, the sets."""
        matrix = np.asarray(tested.overview["confusion"])
        right = matrix.diagonal() / np.maximum(matrix.sum(1), 1)
        there = np.flatnonzero(matrix.sum(1))
        lead = f"The model classified {tested.score(ACCURACY)} of the test graphs correctly."
        if len(there) > 1:
            lead += best_and_worst(right[there], [self.class_names[c] for c in there])
        by_class = self.held_by_class(tested.overview)
        lead += tested.covered(self.regions_are, f": {by_class}" if by_class else "")
        thresholds = [one["threshold"] for one in tested.seeds.values() if "threshold" in one]
        if thresholds:
            ends = dict.fromkeys(f"{value:.2f}" for value in (min(thresholds), max(thresholds)))
            lead += f" It says {self.class_names[1]} from a probability of {' to '.join(ends)}."
        return lead

    def held_by_class(self, overview: Mapping[str, Any]) -> str:
        """``8 of 9 of class high, 40 of 44 of class low``."""
        held = overview.get("in_sets")
        if held is None or len(held) > SHOWN_CLASSES:
            return ""
        each = zip(self.class_names, held, map(sum, overview["confusion"]), strict=True)
        return ", ".join(f"{one:,} of {count:,} of class {name}" for name, one, count in each)

    def charts(self, tested: Tested) -> list[Chart]:
        """The confusion matrix, ROC, precision-recall and calibration curves."""
        matrix, names, n = np.asarray(tested.overview["confusion"]), self.class_names, tested.n
        caption = f"Confusion matrix, all seeds together. {n}."
        drawn = [confusion_chart(matrix, names, caption, tested.overview.get("in_sets"))]
        if (answers := tested.answers) is None:
            return drawn
        y, p = answers.truth.astype(np.int64), answers.values
        drawn += ranking_curves(y, p, names, f"All seeds together, {n}")
        temperature = np.array(
            [tested.seeds[seed]["temperature"] for seed in answers.seed.tolist()]
        )
        errors = [tested.summary.get(name, {}).get("mean") for name in ("ece_before", "ece_after")]
        return [*drawn, calibration_curve(y, p, temperature, errors, n)]


def one_hot(number: Array, classes: int) -> Array:
    """Where each row's class is, shape (g, classes), booleans."""
    return np.asarray(number[:, None] == np.arange(classes))


def coverage_of(sets: Array, y: Array) -> dict[str, float]:
    """The share of sets that hold the class, and how many classes they have on average."""
    held = sets[np.arange(len(y)), y]
    return {"coverage": float(held.mean()), "set_size": float(sets.sum(1).mean())}


def best_and_worst(right: Array, names: Sequence[str]) -> str:
    """Which class is recognised best and which least, by the share that is right."""
    best, worst = int(right.argmax()), int(right.argmin())
    if right[best] == right[worst]:
        return f" It recognises all classes alike ({percent(right[best], 0)} right)."
    return (
        f" It recognises {names[best]} best ({percent(right[best], 0)} right) and {names[worst]} "
        f"least ({percent(right[worst], 0)})."
    )
