"""The network as scikit-learn's classifiers and regressors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, make_dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d

from lookhops.datasets.splits import Split
from lookhops.encoding import Encoding
from lookhops.encoding.inputs import Packer, classes_in
from lookhops.encoding.whole import WholeGraphs
from lookhops.errors import LookHopsError
from lookhops.graphs import Graphs, Target
from lookhops.graphs.targets import is_blank, pack_targets, read_target, target_columns
from lookhops.nn import GraphNetwork
from lookhops.options import RECOMMENDED, Architecture, Protocol, options_of
from lookhops.tasks import task_of
from lookhops.training.inference import Ensemble
from lookhops.training.trainer import choose_device, train

Array = NDArray[Any]

#: The options of the network and of the training, with the defaults that they have here. The
#: held-out part has a share of each class in any case.
_NETWORK = options_of(RECOMMENDED)
_TRAINING = options_of(Protocol(max_epochs=200, batch_size=64))
_TRAINING = [option for option in _TRAINING if option.name not in ("split", "folds")]
#: What the only target is called inside.
ONE = "y"
#: Those that only one of the estimators has.
_OWN = ("class_weights", "loss")
_SHARED = [own[:3] for own in (*_NETWORK, *_TRAINING) if own.name not in _OWN]
_Options: Any = make_dataclass("_Options", _SHARED, eq=False)


@dataclass(eq=False, repr=False)
class _GraphEstimator(BaseEstimator, _Options):
    """What the estimators share: how they are fitted, and what their networks answer."""

    validation_fraction: float = 0.1
    random_state: int | np.random.RandomState | None = 0
    device: str = "auto"

    def _fit(self, packer: Packer, graphs: Graphs, codes: Array) -> None:
        """Train on graphs that carry their targets.

        Args:
            packer: How the graphs were packed.
            graphs: The graphs.
            codes: Graphs with one number are held out in proportion; those with -1 are left out.
        """
        generator = check_random_state(self.random_state)
        train_part, val_part = _hold_out(codes, self.validation_fraction, generator)
        seed = int(generator.randint(2**31 - 1))
        architecture = self._architecture()
        chosen = {own.name: getattr(self, own.name) for own in _TRAINING if hasattr(self, own.name)}
        protocol = Protocol((seed,), **chosen)
        part = Split(train_part, val_part, val_part)
        encoding = Encoding.fit(graphs, architecture.reads_edges)
        task = task_of(graphs, protocol.class_weights, protocol.loss)
        [run] = train(graphs, architecture, protocol, task=task, splits=[part], device=self.device)
        self.models_ = []
        sizes = {**run.learnt.sizes, **encoding.sizes}
        for member in run.networks:
            model = GraphNetwork.from_architecture(
                encoding.width, task.out_channels, architecture, **sizes
            )
            model.load_state_dict(member.weights)
            self.models_.append(model.eval())
        self.n_features_in_ = graphs.num_features
        self.model_ = self.models_[0]
        target = task.targets(graphs).cpu()[val_part]
        self.calibration_ = dict(task.calibrate(run.predictions["val"], target))
        self.history_ = run.history
        self.n_iter_ = len(run.history)
        self._packer, self._encoding, self._learnt = packer, encoding, run.learnt
        self._task, self._fitted = task, run.fitted

    @torch.inference_mode()
    def _answers(self, X: Any) -> dict[str, Array]:
        """The calibrated answers to each target, by name, shape (graphs, channels)."""
        check_is_fitted(self)
        graphs, device = self._encoding.read(self._packer.pack(X)), choose_device(self.device)
        whole = WholeGraphs.of(graphs.to(device), self.model_.architecture, self._encoding)
        models, task = [model.to(device) for model in self.models_], self._task
        ensemble = Ensemble(models, [self._learnt] * len(models), self._encoding)
        each = [task.in_units(output, self._fitted) for output in ensemble.outputs(whole)]
        outputs = each[0] if len(each) == 1 else task.average(each)
        answers = task.answers(outputs, self.calibration_).numpy()
        return {head.name or ONE: answers[:, head.channels] for head in task.heads}

    def _architecture(self) -> Architecture:
        return replace(RECOMMENDED, **{own.name: getattr(self, own.name) for own in _NETWORK})

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.string = True
        tags.target_tags.multi_output = True
        return tags


@dataclass(eq=False, repr=False)
class LookHopsClassifier(ClassifierMixin, _GraphEstimator):
    """Classify whole graphs, as scikit-learn's classifiers do.

    ``X`` is a :class:`~lookhops.Graphs`, or a list of PyG ``Data``, of NetworkX graphs or of
    SMILES; ``y`` any labels, numbers or text, or a table of them with a column for each of several
    targets. None, NaN and the like are blanks: such a graph is left out of training on that target,
    and of :meth:`score`. Where ``y`` is left out, the graphs' own classes are used. Works in
    ``cross_val_score``, ``GridSearchCV`` and pipelines.

    A part of the training graphs is held out to stop by and to calibrate the probabilities.

    Its parameters are the fields of :class:`~lookhops.Architecture`, by default the recommended
    network; those of :class:`~lookhops.Protocol` that are not about splits and seeds, by default
    with at most 200 epochs and batches of 64 graphs; and these:

    Args:
        validation_fraction: Of the training graphs, to stop by.
        random_state: Seed of the initial weights, the held-out part and the batches.
        device: ``cpu``, ``cuda``, or ``auto``: a GPU where there is one.

    Attributes:
        classes_: The labels, sorted; of several targets, a list with those of each.
        n_features_in_: Features of a node.
        models_: The trained :class:`~lookhops.nn.GraphNetwork` of each member.
        model_: The first of them.
        calibration_: What calibrates the probabilities.
        temperature_: Of one target: the temperature in it.
        history_: One row an epoch: losses, accuracy and seconds.
        n_iter_: Epochs that were trained.

    Example:
        >>> from lookhops import LookHopsClassifier
        >>> LookHopsClassifier().fit(["CCO", "CCN", "CCC", "CCCC"], ["yes", "yes", "no", "no"])
        LookHopsClassifier()
    """

    class_weights: bool = False

    def fit(self, X: Any, y: Any = None) -> LookHopsClassifier:
        """Train on graphs ``X`` with labels ``y``, shape (graphs) or (graphs, targets)."""
        packer = Packer.learn(X)
        graphs = packer.pack(X)
        columns = self._labels(X, y, graphs)
        found = [_classes(column) for column in columns]
        targets = [
            (Target(name, tuple(str(one) for one in classes)), codes)
            for name, (classes, codes) in zip(_names(columns), found, strict=True)
        ]
        graphs = replace(graphs, **pack_targets(targets)).to(graphs.device)
        one = len(columns) == 1
        known = ~np.isnan(np.stack([codes for _, codes in found])).all(0)
        codes = np.nan_to_num(found[0][1], nan=-1) if one else known - 1
        self._fit(packer, graphs, codes.astype(int))
        classes = [own for own, _ in found]
        self.classes_ = classes[0] if one else classes
        if one:
            self.temperature_ = self.calibration_["temperature"]
        return self

    def predict_proba(self, X: Any) -> Any:
        """Calibrated probabilities, shape (graphs, classes), columns as in ``classes_``.

        Of several targets, a list with one such table for each, as scikit-learn has it.
        """
        answers = self._answers(X)
        each = [answers[name] for name in _names(range(len(answers)))]
        return each[0] if len(each) == 1 else each

    def predict(self, X: Any) -> Array:
        """The likeliest label of each graph, shape (graphs), or (graphs, targets)."""
        probabilities = self.predict_proba(X)  # first: it says when nothing was fitted
        if isinstance(probabilities, list):
            pairs = zip(self.classes_, probabilities, strict=True)
            each = [classes[p.argmax(1)] for classes, p in pairs]
            mixed = len({own.dtype.kind for own in each}) > 1  # numbers stay numbers beside text
            return np.stack([own.astype(object) if mixed else own for own in each], axis=1)
        return self.classes_[probabilities.argmax(1)]

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Accuracy on graphs ``X`` with labels ``y``, by default their own; the mean over targets.

        Graphs without a label are left out.
        """
        check_is_fitted(self)
        true = self._labels(X, y, self._packer.pack(X) if y is None else None)
        return _mean_score(accuracy_score, true, self.predict(X), sample_weight)

    def _labels(self, X: Any, y: Any, graphs: Graphs | None) -> list[Array]:
        """The labels as given, a column for each target; by default those of the graphs."""
        if y is None:
            assert graphs is not None
            own = classes_in(X, graphs)
            if own is None:
                raise LookHopsError(
                    "requires y to be passed: the graphs carry no classes themselves."
                )
            return [own]
        return _columns(y, None if graphs is None else len(graphs))


@dataclass(eq=False, repr=False)
class LookHopsRegressor(RegressorMixin, _GraphEstimator):
    """Tell a number, or several, of whole graphs, as scikit-learn's regressors do.

    ``X`` is a :class:`~lookhops.Graphs`, or a list of PyG ``Data``, of NetworkX graphs or of
    SMILES; ``y`` one number a graph, or a row of several. None, NaN and the like are blanks: such a
    graph is left out of training on that number, and of :meth:`score`. Where ``y`` is left out, the
    graphs' own numbers are used. Works in ``cross_val_score``, ``GridSearchCV`` and pipelines.

    A part of the training graphs is held out to stop by. Targets are standardised by the others.

    Its parameters are the fields of :class:`~lookhops.Architecture`, by default the recommended
    network; those of :class:`~lookhops.Protocol` that are not about splits and seeds, by default
    with at most 200 epochs and batches of 64 graphs; and these:

    Args:
        validation_fraction: Of the training graphs, to stop by.
        random_state: Seed of the initial weights, the held-out part and the batches.
        device: ``cpu``, ``cuda``, or ``auto``: a GPU where there is one.

    Attributes:
        n_features_in_: Features of a node.
        models_: The trained :class:`~lookhops.nn.GraphNetwork` of each member.
        model_: The first of them.
        history_: One row an epoch: losses, MAE and seconds.
        n_iter_: Epochs that were trained.

    Example:
        >>> from lookhops import LookHopsRegressor
        >>> LookHopsRegressor().fit(["CCO", "CCN", "CCC", "CCCC"], [0.5, 0.25, 1.0, 2.0])
        LookHopsRegressor()
    """

    loss: str = "mse"

    def fit(self, X: Any, y: Any = None) -> LookHopsRegressor:
        """Train on graphs ``X`` with numbers ``y``, shape (graphs) or (graphs, targets)."""
        packer = Packer.learn(X)
        graphs = packer.pack(X)
        columns = self._numbers(y, graphs)
        targets = [(Target(n), own) for n, own in zip(_names(columns), columns, strict=True)]
        graphs = replace(graphs, **pack_targets(targets)).to(graphs.device)
        known = ~np.isnan(np.stack(columns)).all(0)
        if known.sum() < 2:
            raise LookHopsError(
                f"Two graphs with a number at least are needed (n_samples={known.sum()})."
            )
        self._fit(packer, graphs, known.astype(int) - 1)
        return self

    def predict(self, X: Any) -> Array:
        """The number of each graph, shape (graphs), or (graphs, targets)."""
        answers = self._answers(X)
        each = [answers[name][:, 0] for name in _names(range(len(answers)))]
        return each[0] if len(each) == 1 else np.stack(each, axis=1)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """R² on graphs ``X`` with numbers ``y``, by default their own; the mean over targets.

        Graphs without a number are left out.
        """
        check_is_fitted(self)
        true = self._numbers(y, self._packer.pack(X) if y is None else None)
        return _mean_score(r2_score, true, self.predict(X), sample_weight)

    def _numbers(self, y: Any, graphs: Graphs | None) -> list[Array]:
        """The numbers, NaN where they are blank, a column for each target."""
        if y is None:
            assert graphs is not None
            if graphs.y is None or any(target.classes for target in graphs.targets):
                raise LookHopsError(
                    "requires y to be passed: the graphs carry no numbers themselves."
                )
            return [values for _, values in target_columns(graphs.y, graphs.targets)]
        columns = _columns(y, None if graphs is None else len(graphs))
        return [read_target("y", column.tolist(), "numbers")[1] for column in columns]


_TEXTS = {own.name: f"        {own.name}: {own.help}\n" for own in (*_NETWORK, *_TRAINING)}
for _kind in (LookHopsClassifier, LookHopsRegressor):
    _own = "".join(text for name, text in _TEXTS.items() if hasattr(_kind, name))
    _kind.__doc__ = (_kind.__doc__ or "").replace("Args:\n", "Args:\n" + _own, 1)


def _names(columns: Sequence[Any]) -> list[str]:
    """What the targets are called inside: none is known by its name."""
    if len(columns) == 1:
        return [ONE]
    return [f"y{number}" for number in range(len(columns))]


def _columns(y: Any, count: int | None) -> list[Array]:
    """A list, an array, a Series or a table as its columns, each of as many as there are graphs."""
    table = np.asarray(y)
    if table.ndim > 2:
        raise LookHopsError(f"y has a column for each target, not the shape {table.shape}.")
    if table.ndim < 2 or table.shape[1] == 1:
        table = column_or_1d(table, warn=True)[:, None]
    if count is not None and len(table) != count:
        raise LookHopsError(f"There are {count} graphs but {len(table)} labels in y.")
    return list(table.T)


def _classes(column: Array) -> tuple[Array, Array]:
    """The labels of a column, sorted, and the place of each graph's among them; NaN where blank."""
    known = np.array([not is_blank(value) for value in column.tolist()], dtype=bool)
    values = np.asarray(column[known].tolist())
    if not len(values):
        raise LookHopsError("No graph has a label (Found array with 0 sample(s)).")
    check_classification_targets(values)
    classes, places = np.unique(values, return_inverse=True)
    codes = np.full(len(column), np.nan)
    codes[known] = places.reshape(-1)
    return classes, codes


def _mean_score(score: Any, true: Sequence[Array], answers: Array, sample_weight: Any) -> float:
    """The mean over targets of a score on the graphs that have them."""
    found = []
    for column, own in zip(true, answers.reshape(len(answers), -1).T, strict=True):
        known = np.array([not is_blank(value) for value in column.tolist()], dtype=bool)
        weight = None if sample_weight is None else np.asarray(sample_weight)[known]
        pair = (np.asarray(values[known].tolist()) for values in (column, own))
        found.append(score(*pair, sample_weight=weight))
    return float(np.mean(found))


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
    held = [own[: min(round(fraction * len(own)), len(own) - 1)] for own in members]
    if not sum(map(len, held)):
        largest = max(members, key=len)
        held = [largest[: min(1, len(largest) - 1)]]
    val = np.sort(np.concatenate(held)).astype(np.int64)
    train_part = np.setdiff1d(np.flatnonzero(codes >= 0), val)
    return torch.from_numpy(train_part), torch.from_numpy(val)
