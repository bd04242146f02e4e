"""What the estimators share: their options, how they are fitted, what their networks answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, make_dataclass, replace
from typing import Any, TypeVar

import numpy as np
import torch
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from lookhops.core.arrays import Array
from lookhops.core.errors import LookHopsError
from lookhops.core.options import RECOMMENDED, Protocol, options_of
from lookhops.core.words import joined
from lookhops.encoding.inputs import Packer
from lookhops.graphs import Graphs, Target
from lookhops.graphs.targets import pack_targets
from lookhops.learners import Learner, Network, fitted_of, learner_of, recommend
from lookhops.learners.learner import mean_variance
from lookhops.models.estimators.columns import ONE
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
#: Those that only one of the estimators has.
_OWN = ("class_weights", "loss")
_SHARED = [own[:3] for own in (*_NETWORK, *_TRAINING) if own.name not in _OWN]
_Options: Any = make_dataclass("_Options", _SHARED, eq=False)


@dataclass(eq=False, repr=False)
class GraphEstimator(BaseEstimator, _Options):
    """How estimators are fitted, and what their networks answer."""

    model: str | None = None
    validation_fraction: float = 0.1
    random_state: int | np.random.RandomState | None = 0
    device: str = "auto"

    def _fit(
        self,
        packer: Packer,
        graphs: Graphs,
        targets: Sequence[tuple[Target, Array]],
        by_class: bool = False,
    ) -> None:
        """Train on graphs.

        Args:
            packer: How the graphs were packed.
            graphs: The graphs.
            targets: Class numbers, or numbers, NaN where blank; graphs without any are left out.
            by_class: Whether the graphs of each class of the first are held out in proportion.
        """
        graphs = replace(graphs, **pack_targets(targets)).to(graphs.device)
        values = np.stack([own for _, own in targets])
        known = ~np.isnan(values).all(0)
        codes = np.where(known, np.nan_to_num(values[0]) if by_class else 0, -1).astype(int)
        generator = check_random_state(self.random_state)
        train_part, val_part = _hold_out(codes, self.validation_fraction, generator)
        seed = int(generator.randint(2**31 - 1))
        learner = self._learner(graphs, len(train_part))
        chosen = {own.name: getattr(self, own.name) for own in _TRAINING if hasattr(self, own.name)}
        protocol = Protocol((seed,), **chosen)
        part = Split(train_part, val_part, val_part)
        encoding = learner.encoding(graphs)
        if packer.has_features and not learner.reads_whole:
            raise LookHopsError(
                f"{learner.name} reads no features of whole graphs: choose another model, or leave "
                "out features."
            )
        task = task_of(graphs, protocol.class_weights, protocol.loss)
        [run] = learner.train(graphs, protocol, task=task, splits=[part], device=self.device)
        self._members = fitted_of(learner, task, encoding, run)
        self.models_ = [getattr(one, "network", one) for one in self._members]
        self.n_features_in_ = graphs.num_features
        self.model_ = self.models_[0]
        target = task.targets(graphs).cpu()[val_part]
        self.calibration_ = dict(calibration_of(run, task, target))
        self._scores = conformal_scores(run, task, target, self.calibration_)
        self.history_ = run.history
        self.n_iter_ = len(run.history)
        self._packer, self._encoding = packer, encoding
        self._task, self._asked = task, learner

    def _learner(self, graphs: Graphs, training_graphs: int) -> Learner:
        """The learner that ``model`` names, by default the one recommended for these graphs.

        Where an option of a network or of its training is not the usual one, it is the network.
        """
        usual = {own.name: own.default for own in (*_NETWORK, *_TRAINING)}
        changed = [n for n, value in usual.items() if getattr(self, n, value) != value]
        networks = {own.name: getattr(self, own.name) for own in _NETWORK}
        if self.model in (None, "recommended") and not changed:
            return recommend(graphs, task_of(graphs), training_graphs).learner
        if self.model in (None, "recommended", "network"):
            return Network(replace(RECOMMENDED, **networks))
        learner = learner_of(self.model)
        refused = [n for n in changed if n in networks or not learner.has_epochs]
        if refused:
            raise LookHopsError(
                f"model={self.model!r} names the whole model, which does not read "
                f"{joined(refused)}: write options of a network in its name, as licheb/k=3."
            )
        return learner

    def _answers(self, X: Any, features: Any = None) -> dict[str, Array]:
        """The calibrated answers to each target, by name, shape (graphs, channels)."""
        answers, _ = self._answers_and_deviation(X, features, regions=False)
        return {head.name or ONE: answers[:, head.channels] for head in self._task.heads}

    @torch.inference_mode()
    def _answers_and_deviation(
        self, X: Any, features: Any, regions: bool
    ) -> tuple[Array, Tensor | None]:
        """The same side by side, and where regions are wanted :meth:`Task.deviation`."""
        check_is_fitted(self)
        graphs = self._encoding.read(self._packer.pack(X, features))
        device = choose_device(self.device)
        learner, task = self._asked, self._task
        members = [one.to(device) for one in self._members]
        prepared = learner.prepare(graphs.to(device), self._encoding)
        each = learner.together(members)(prepared)
        outputs = each[0] if len(each) == 1 else task.average(each)
        answers = task.answers(outputs, self.calibration_).numpy()
        if not regions:
            return answers, None
        return answers, task.deviation(each, mean_variance(members, prepared.graphs, task))

    def _regions(self, X: Any, coverage: float, features: Any = None) -> dict[str, Array]:
        """The conformal sets or intervals of each target, by name."""
        if not 0 < coverage < 1:
            raise LookHopsError(f"coverage is a probability between 0 and 1, not {coverage}.")
        answers, deviation = self._answers_and_deviation(X, features, regions=True)
        each = self._task.conformal_regions(answers[None], [self._scores], coverage, [deviation])
        names = [head.name or ONE for head in self._task.heads]
        return dict(zip(names, each, strict=True))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.string = True
        tags.target_tags.multi_output = True
        return tags


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
    known = [own for own in (*_NETWORK, *_TRAINING) if hasattr(kind, own.name)]
    options = "".join(f"        {own.name}: {own.help}\n" for own in known)
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
    held = [own[: min(round(fraction * len(own)), len(own) - 1)] for own in members]
    if not sum(map(len, held)):
        largest = max(members, key=len)
        held = [largest[: min(1, len(largest) - 1)]]
    val = np.sort(np.concatenate(held)).astype(np.int64)
    train_part = np.setdiff1d(np.flatnonzero(codes >= 0), val)
    return torch.from_numpy(train_part), torch.from_numpy(val)
