"""The network as a scikit-learn classifier."""

from __future__ import annotations

from dataclasses import dataclass, make_dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d

from lookhops.datasets.splits import Split
from lookhops.encoding import Encoding
from lookhops.encoding.inputs import Packer, classes_in
from lookhops.encoding.whole import WholeGraphs
from lookhops.errors import LookHopsError
from lookhops.graphs import Graphs, Target
from lookhops.nn import GraphNetwork
from lookhops.options import RECOMMENDED, Architecture, Protocol, options_of
from lookhops.tasks import Classification
from lookhops.training.inputs import MemberInputs
from lookhops.training.trainer import choose_device, train

Array = NDArray[Any]

#: The options of the network and of the training, with the defaults that they have here. The
#: held-out part has a share of each class in any case.
_NETWORK = options_of(RECOMMENDED)
_TRAINING = options_of(Protocol(max_epochs=200, batch_size=64))
_TRAINING = [option for option in _TRAINING if option.name not in ("split", "folds")]
_Options: Any = make_dataclass("_Options", [own[:3] for own in (*_NETWORK, *_TRAINING)], eq=False)


@dataclass(eq=False, repr=False)
class LookHopsClassifier(ClassifierMixin, BaseEstimator, _Options):
    """Classify whole graphs, as scikit-learn's classifiers do.

    ``X`` is a :class:`~lookhops.Graphs`, or a list of PyG ``Data``, of NetworkX graphs or of
    SMILES; ``y`` any labels, numbers or text. Where ``y`` is left out, the graphs' own classes
    are used. Works in ``cross_val_score``, ``GridSearchCV`` and pipelines.

    A part of the training graphs is held out to stop by and to calibrate the probabilities.

    Its parameters are the fields of :class:`~lookhops.Architecture`, by default the recommended
    network; those of :class:`~lookhops.Protocol` that are not about splits and seeds, by default
    with at most 200 epochs and batches of 64 graphs; and these:

    Args:
        validation_fraction: Of the training graphs, to stop by.
        random_state: Seed of the initial weights, the held-out part and the batches.
        device: ``cpu``, ``cuda``, or ``auto``: a GPU where there is one.

    Attributes:
        classes_: The labels, sorted.
        n_features_in_: Features of a node.
        models_: The trained :class:`~lookhops.nn.GraphNetwork` of each member.
        model_: The first of them.
        temperature_: What calibrates the probabilities.
        history_: One row an epoch: losses, accuracy and seconds.
        n_iter_: Epochs that were trained.

    Example:
        >>> from lookhops import LookHopsClassifier
        >>> LookHopsClassifier().fit(["CCO", "CCN", "CCC", "CCCC"], ["yes", "yes", "no", "no"])
        LookHopsClassifier()
    """

    validation_fraction: float = 0.1
    random_state: int | np.random.RandomState | None = 0
    device: str = "auto"

    def fit(self, X: Any, y: ArrayLike | None = None) -> LookHopsClassifier:
        """Train on graphs ``X`` with labels ``y``."""
        packer = Packer.learn(X)
        graphs = packer.pack(X)
        classes, codes = np.unique(_labels(X, y, graphs), return_inverse=True)
        names = tuple(str(name) for name in classes)
        y = torch.from_numpy(codes.reshape(-1)).to(graphs.device)
        graphs = replace(graphs, y=y, targets=(Target("class", names),))
        generator = check_random_state(self.random_state)
        train_part, val_part = _hold_out(codes.reshape(-1), self.validation_fraction, generator)
        seed = int(generator.randint(2**31 - 1))
        architecture = self._architecture()
        protocol = Protocol((seed,), **{own.name: getattr(self, own.name) for own in _TRAINING})
        part = Split(train_part, val_part, val_part)
        encoding = Encoding.fit(graphs, architecture.reads_edges)
        task = Classification.of(graphs, self.class_weights)
        [run] = train(graphs, architecture, protocol, task=task, splits=[part], device=self.device)
        self.models_ = []
        sizes = {**run.learnt.sizes, **encoding.sizes}
        for member in run.networks:
            model = GraphNetwork.from_architecture(
                encoding.width, len(classes), architecture, **sizes
            )
            model.load_state_dict(member.weights)
            self.models_.append(model.eval())
        self.classes_ = classes
        self.n_features_in_ = graphs.num_features
        self.model_ = self.models_[0]
        target = task.targets(graphs).cpu()[val_part]
        self.temperature_ = task.calibrate(run.predictions["val"], target)["temperature"]
        self.history_ = run.history
        self.n_iter_ = len(run.history)
        self._packer, self._encoding, self._learnt = packer, encoding, run.learnt
        self._task = task
        return self

    @torch.inference_mode()
    def predict_proba(self, X: Any) -> Array:
        """Calibrated probabilities, shape (graphs, classes), columns as in ``classes_``."""
        check_is_fitted(self)
        graphs, device = self._encoding.read(self._packer.pack(X)), choose_device(self.device)
        whole = WholeGraphs.of(graphs.to(device), self.model_.architecture, self._encoding)
        inputs = MemberInputs(whole, self._encoding, self._learnt)
        each = [inputs.outputs(model.to(device)) for model in self.models_]
        outputs = each[0] if len(each) == 1 else self._task.average(each)
        return (outputs.double() / self.temperature_).softmax(-1).numpy()

    def predict(self, X: Any) -> Array:
        """The likeliest label of each graph, shape (graphs)."""
        probabilities = self.predict_proba(X)  # first: it says when nothing was fitted
        return self.classes_[probabilities.argmax(1)]

    def score(self, X: Any, y: ArrayLike | None = None, sample_weight: Any = None) -> float:
        """Accuracy on graphs ``X`` with labels ``y``, by default their own."""
        check_is_fitted(self)
        true = _labels(X, y, self._packer.pack(X)) if y is None else y
        return float(super().score(X, true, sample_weight))

    def _architecture(self) -> Architecture:
        return replace(RECOMMENDED, **{own.name: getattr(self, own.name) for own in _NETWORK})

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.string = True
        return tags


_TEXTS = "".join(f"        {own.name}: {own.help}\n" for own in (*_NETWORK, *_TRAINING))
LookHopsClassifier.__doc__ = (LookHopsClassifier.__doc__ or "").replace(
    "Args:\n", "Args:\n" + _TEXTS
)


def _labels(X: Any, y: ArrayLike | None, graphs: Graphs) -> Array:
    if y is None:
        own = classes_in(X, graphs)
        if own is None:
            raise LookHopsError("requires y to be passed: the graphs carry no classes themselves.")
        return own
    labels = column_or_1d(y, warn=True)
    if len(labels) != len(graphs):
        raise LookHopsError(f"There are {len(graphs)} graphs but {len(labels)} labels in y.")
    check_classification_targets(labels)
    return labels


def _hold_out(
    codes: Array, fraction: float, generator: np.random.RandomState
) -> tuple[torch.Tensor, torch.Tensor]:
    """Numbers of the training and validation graphs: a share of each class, but never all of it."""
    if not 0 < fraction < 1:
        raise LookHopsError(f"validation_fraction is between 0 and 1, not {fraction!r}.")
    order = generator.permutation(len(codes))
    members = [order[codes[order] == c] for c in range(codes.max(initial=-1) + 1)]
    held = [own[: min(round(fraction * len(own)), len(own) - 1)] for own in members]
    if not sum(map(len, held)):
        largest = max(members, key=len)
        held = [largest[: min(1, len(largest) - 1)]]
    val = np.sort(np.concatenate(held)).astype(np.int64)
    train_part = np.setdiff1d(np.arange(len(codes)), val)
    return torch.from_numpy(train_part), torch.from_numpy(val)
