"""What the estimators share: their options, how they are fitted, what their models answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, make_dataclass, replace
from typing import Any, TypeVar

import numpy as np
import pandas as pd
import torch
from sklearn.base import BaseEstimator
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, column_or_1d

from lookhops.core.arrays import Array
from lookhops.core.errors import LookHopsError
from lookhops.core.options import RECOMMENDED, Protocol
from lookhops.core.schema import options_of
from lookhops.core.words import joined
from lookhops.encoding.inputs import Packer, own_targets
from lookhops.graphs import Graphs, Target
from lookhops.graphs.targets import is_blank, pack_targets, read_target
from lookhops.learners import Learner, Network, fitted_of, learner_of, recommend
from lookhops.learners.learner import mean_variance
from lookhops.runs.record import calibration_of, conformal_scores
from lookhops.sources.splits import Split
from lookhops.tasks import task_of
from lookhops.training.device import choose_device

T = TypeVar("T")

#: The options of the network and of the training, with the defaults that they have here. The
#: held-out part has a share of each class in any case.
_NETWORK = options_of(RECOMMENDED)
_TRAINING = options_of(Protocol(max_epochs=200, batch_size=64))
_TRAINING = [option for option in _TRAINING if option.name not in ("split", "folds")]
#: Those that not all estimators have.
_OF_SOME = ("class_weights", "loss")
_SHARED = [one[:3] for one in (*_NETWORK, *_TRAINING) if one.name not in _OF_SOME]
_Options: Any = make_dataclass("_Options", _SHARED, eq=False)


@dataclass(eq=False, repr=False)
class GraphEstimator(BaseEstimator, _Options):
    """How estimators are fitted, and what their models answer."""

    model: str | None = None
    validation_fraction: float = 0.1
    random_state: int | np.random.RandomState | None = 0
    device: str = "auto"

    def _fit(
        self,
        packer: Packer,
        graphs: Graphs,
        columns: Mapping[str, Array],
        kinds: Mapping[str, str],
        by_class: bool = False,
    ) -> None:
        """Train on graphs.

        Args:
            packer: How the graphs were packed.
            graphs: The graphs.
            columns: The targets by name; graphs without any are left out.
            kinds: As what each is read; one without a kind is any labels.
            by_class: Whether the graphs of each class of the first are held out in proportion.
        """
        targets = []
        self._labels: dict[str, Array | None] = {}
        for name, column in columns.items():
            target, values, self._labels[name] = _read(name, column, kinds.get(name))
            targets.append((target, values))
        graphs = replace(graphs, **pack_targets(targets)).to(graphs.device)
        first = targets[0][1]
        is_labelled = ~np.isnan(np.stack([values for _, values in targets])).all(0)
        if not by_class and (labelled := int(is_labelled.sum())) < 2:
            raise LookHopsError(f"At least two graphs need a value (n_samples={labelled}).")
        codes = np.where(is_labelled, np.nan_to_num(first) if by_class else 0, -1).astype(int)
        generator = check_random_state(self.random_state)
        train_part, val_part = _hold_out(codes, self.validation_fraction, generator)
        seed = int(generator.randint(2**31 - 1))
        learner = self._learner(graphs, len(train_part))
        chosen = {one.name: getattr(self, one.name) for one in _TRAINING if hasattr(self, one.name)}
        protocol = Protocol((seed,), **chosen)
        encoding = learner.encoding(graphs)
        if packer.has_features and not learner.reads_whole:
            raise LookHopsError(
                f"{learner.name} reads no features of whole graphs: choose another model, or leave "
                "out features."
            )
        task = task_of(graphs, protocol.class_weights, protocol.loss)
        splits = [Split(train_part, val_part, val_part)]
        [run] = learner.train(graphs, protocol, task=task, splits=splits, device=self.device)
        self._members = fitted_of(learner, task, encoding, run)
        self.models_ = [getattr(one, "network", one) for one in self._members]
        self.n_features_in_ = graphs.num_features
        self.model_ = self.models_[0]
        validated = task.targets(graphs).cpu()[val_part]
        self.calibration_ = dict(calibration_of(run, task, validated))
        self._scores = conformal_scores(run, task, validated, self.calibration_)
        self.history_ = run.history
        self.n_iter_ = len(run.history)
        self._packer, self._encoding, self._task, self._fitted = packer, encoding, task, learner

    def _learner(self, graphs: Graphs, training_graphs: int) -> Learner:
        """The learner that ``model`` names, by default the one recommended for these graphs.

        Where an option of a network or of its training is not the usual one, it is the network.
        """
        usual = {one.name: one.default for one in (*_NETWORK, *_TRAINING)}
        changed = [n for n, value in usual.items() if getattr(self, n, value) != value]
        options = {one.name: getattr(self, one.name) for one in _NETWORK}
        if self.model in (None, "recommended") and not changed:
            return recommend(graphs, task_of(graphs), training_graphs).learner
        if self.model in (None, "recommended", "network"):
            return Network(replace(RECOMMENDED, **options))
        learner = learner_of(self.model)
        refused = [n for n in changed if n in options or not learner.has_epochs]
        if refused:
            raise LookHopsError(
                f"model={self.model!r} names the whole model, which does not read "
                f"{joined(refused)}: write options of a network in its name, as licheb/k=3."
            )
        return learner

    @torch.inference_mode()
    def _answers(
        self, X: Any, features: Any = None, coverage: float | None = None
    ) -> dict[str, Array]:
        """The calibrated answers to each target, by name, shape (graphs, channels).

        With a coverage, its conformal sets or intervals in their place.
        """
        check_is_fitted(self)
        if coverage is not None and not 0 < coverage < 1:
            raise LookHopsError(f"coverage is a probability between 0 and 1, not {coverage}.")
        learner, task, device = self._fitted, self._task, choose_device(self.device)
        graphs = self._encoding.read(self._packer.pack(X, features)).to(device)
        members = [one.to(device) for one in self._members]
        prepared = learner.prepare(graphs, self._encoding)
        outputs = learner.together(members)(prepared)
        together = outputs[0] if len(outputs) == 1 else task.average(outputs)
        answers = task.answers(together, self.calibration_).numpy()
        if coverage is None:
            each = [answers[:, head.channels] for head in task.heads]
        else:
            expected = task.deviation(outputs, mean_variance(members, prepared.graphs, task))
            each = task.conformal_regions(answers[None], [self._scores], coverage, [expected])
        pairs = zip(task.heads, each, strict=True)
        found = {head.name or next(iter(self._labels)): values for head, values in pairs}
        return {name: found[name] for name in self._labels}

    def _likeliest(self, X: Any, features: Any = None) -> dict[str, Array]:
        """The likeliest label, or the number, of each graph, by target."""
        found = {}
        for name, answers in self._answers(X, features).items():
            labels = self._labels[name]
            found[name] = answers[:, 0] if labels is None else labels[answers.argmax(1)]
        return found

    def _columns(self, X: Any, y: Any, count: int) -> dict[str, Array]:
        """The targets by name: the columns of ``y``, by default those that the graphs carry."""
        raise NotImplementedError

    def _true(self, X: Any, y: Any, count: int) -> list[Array]:
        """The targets to score with, in the order of those of ``fit``."""
        return [*self._columns(X, y, count).values()]

    def score(
        self, X: Any, y: Any = None, sample_weight: Any = None, features: Any = None
    ) -> float:
        """Accuracy of classes, R² of numbers, by default on the targets that the graphs carry.

        Graphs without a label or a number are left out; of several targets it is the mean.
        """
        answers = self._likeliest(X, features)  # first: it says when nothing was fitted
        true = self._true(X, y, len(next(iter(answers.values()))))
        each = zip(self._labels.values(), true, answers.values(), strict=True)
        return float(np.mean([_score(*target, sample_weight) for target in each]))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.string = True
        tags.target_tags.multi_output = True
        return tags


# -------------------------------------------------------------------- targets


def columns_of(y: Any, count: int) -> dict[str, Array]:
    """The columns of a list, an array, a Series or a table: ``y0``, ``y1``, ..."""
    table = np.asarray(y)
    if table.ndim > 2:
        raise LookHopsError(f"y has a column for each target, not the shape {table.shape}.")
    if table.ndim < 2 or table.shape[1] == 1:
        table = column_or_1d(table, warn=True)[:, None]
    if len(table) != count:
        raise LookHopsError(f"There are {count} graphs but {len(table)} labels in y.")
    return {f"y{number}": column for number, column in enumerate(table.T)}


def own_columns(X: Any, wanted: str) -> dict[str, Array]:
    """The ``classes``, ``numbers`` or ``targets`` of any kind that graphs carry, by name."""
    targets = own_targets(X)
    if not targets:
        raise LookHopsError(f"requires y to be passed: the graphs carry no {wanted} themselves.")
    estimator, kind, others = "", "", []
    if wanted == "classes":
        estimator, kind = "LookHopsRegressor", "numbers"
        others = [target for target in targets if target.kind not in ("auto", "classes")]
    elif wanted == "numbers":
        estimator, kind = "LookHopsClassifier", "classes"
        others = [target for target in targets if not target.are_numbers]
    if others:
        names = joined([repr(target.name) for target in others])
        carried = f"no {wanted}, but {kind} in {names}"
        if len(others) < len(targets):
            estimator, carried = "LookHopsMultitask", f"{kind} in {names}, beside {wanted}"
        raise LookHopsError(f"The graphs carry {carried}: use {estimator}, or pass {wanted} as y.")
    return {target.name: pd.Series(target.cells, dtype=object).to_numpy() for target in targets}


def _read(name: str, column: Array, kind: str | None) -> tuple[Target, Array, Array | None]:
    """A target, its values (NaN where blank), and the labels of classes, sorted."""
    if kind is not None:
        target, values = read_target(name, column.tolist(), kind)
        if not target.classes:
            return target, values, None
    has_label = np.array([not is_blank(value) for value in column.tolist()], dtype=bool)
    labels = np.asarray(column[has_label].tolist())
    if not len(labels):
        raise LookHopsError("No graph has a label (Found array with 0 sample(s)).")
    classes, positions = np.unique(labels, return_inverse=True)
    codes = np.full(len(column), np.nan)
    codes[has_label] = positions.reshape(-1)
    return Target(name, tuple(map(str, classes))), codes, classes


def _score(labels: Array | None, true: Array, answers: Array, sample_weight: Any) -> float:
    """The accuracy, or R² where there are no labels, on the graphs that have the target."""
    if labels is None:
        true = read_target("y", true.tolist(), "numbers")[1]
    has_value = np.array([not is_blank(value) for value in true.tolist()], dtype=bool)
    weight = None if sample_weight is None else np.asarray(sample_weight)[has_value]
    true, answers = (np.asarray(values[has_value].tolist()) for values in (true, answers))
    if labels is None:
        return float(r2_score(true, answers, sample_weight=weight))
    if true.dtype.kind in "biuf" and answers.dtype.kind in "biuf":
        # scikit-learn's accuracy takes no fractions for classes.
        _, positions = np.unique(np.concatenate([true, answers]), return_inverse=True)
        true, answers = np.split(positions, 2)
    return float(accuracy_score(true, answers, sample_weight=weight))


# -------------------------------------------------------------------- docstrings

#: What docstrings say of the parameters and the attributes that the estimators share.
_PARAMETERS = """Its parameters are the fields of :class:`~lookhops.Architecture`, by default the
    recommended network; those of :class:`~lookhops.Protocol` that are not about splits and seeds,
    by default with at most 200 epochs and batches of 64 graphs; and some of its own.

    Args:
"""
_OWN_PARAMETERS = """        model: Name of another model with its options, as ``wl-oa`` or
            ``licheb/k=3``; by default the network of the options above.
        validation_fraction: Of the training graphs, to stop by and to calibrate on.
        random_state: Seed of the initial weights, the held-out part and the batches.
        device: ``cpu``, ``cuda``, or ``auto``: a GPU where there is one.
"""
_ATTRIBUTES = """        n_features_in_: Features of a node.
        models_: The trained :class:`~lookhops.nn.GraphNetwork` of each member; of another model
            what it has fitted.
        model_: The first of them.
        calibration_: What calibrates the probabilities.
        history_: One row an epoch: losses, the watched metric and seconds.
        n_iter_: Epochs that were trained.
"""


def with_options(kind: type[T]) -> type[T]:
    """An estimator whose docstring says what its options and its attributes are."""
    known = [option for option in (*_NETWORK, *_TRAINING) if hasattr(kind, option.name)]
    options = "".join(f"        {option.name}: {option.help}\n" for option in known)
    text = (kind.__doc__ or "").replace("Args:\n", _PARAMETERS, 1)
    text = text.replace("        {options}\n", options + _OWN_PARAMETERS)
    kind.__doc__ = text.replace("        {attributes}\n", _ATTRIBUTES)
    return kind


def _hold_out(
    codes: Array, fraction: float, generator: np.random.RandomState
) -> tuple[torch.Tensor, torch.Tensor]:
    """Numbers of the training and validation graphs: a share of each class, but never all of it.

    Graphs with the code -1 are in neither.
    """
    if not 0 < fraction < 1:
        raise LookHopsError(f"validation_fraction is between 0 and 1, not {fraction!r}.")
    order = generator.permutation(len(codes))
    members = [order[codes[order] == c] for c in range(codes.max(initial=-1) + 1)]
    held = [rows[: min(round(fraction * len(rows)), len(rows) - 1)] for rows in members]
    if not sum(map(len, held)):
        largest = max(members, key=len)
        held = [largest[: min(1, len(largest) - 1)]]
    val = np.sort(np.concatenate(held)).astype(np.int64)
    train_part = np.setdiff1d(np.flatnonzero(codes >= 0), val)
    return torch.from_numpy(train_part), torch.from_numpy(val)
