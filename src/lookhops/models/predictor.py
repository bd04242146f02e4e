"""Using a trained model: one answer from all its seeds, with calibrated probabilities."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lookhops.encoding.whole import WholeGraphs
from lookhops.errors import LookHopsError
from lookhops.graphs import Graphs
from lookhops.models.answers import ClassAnswers, NumberAnswers, Predictions
from lookhops.models.evaluation import graph_ids
from lookhops.models.folder import Checkpoint, load_model
from lookhops.nn import GraphNetwork
from lookhops.tasks import Calibration, Classification
from lookhops.tasks.conformal import COVERAGE
from lookhops.tasks.task import Head
from lookhops.training.inputs import MemberInputs
from lookhops.training.trainer import choose_device


class Predictor:
    """A model folder, ready to answer.

    Args:
        folder: What ``lookhops train`` or :func:`~lookhops.training.train_into` wrote.
        device: ``cpu``, ``cuda``, or ``auto``: a GPU where there is one.
    """

    def __init__(self, folder: Path | str, device: str | torch.device = "auto") -> None:
        self.checkpoint: Checkpoint = load_model(folder)
        self.encoding = self.checkpoint.encoding
        self.device = choose_device(device)
        self.models: dict[int, GraphNetwork] = {
            seed: self.checkpoint.model(seed).to(self.device) for seed in self.checkpoint.seeds
        }

    def read(self, graphs: Graphs) -> Graphs:
        """The graphs in the columns that the model was trained on; others are refused."""
        return self.encoding.read(graphs)

    def whole(self, graphs: Graphs) -> WholeGraphs:
        """The graphs as the model reads them, and what is known of them as wholes."""
        graphs = self.read(graphs).to(self.device)
        return WholeGraphs.of(graphs, self.checkpoint.architecture, self.encoding)

    def inputs(self, whole: WholeGraphs, seed: int) -> MemberInputs:
        """Graphs as a seed's network is told of them."""
        return MemberInputs(whole, self.encoding, self.checkpoint.learnt[seed])

    @torch.inference_mode()
    def predict(self, graphs: Graphs, coverage: float = COVERAGE) -> Predictions:
        """What the models of all seeds answer together, and how sure that is.

        Args:
            graphs: The graphs.
            coverage: The probability with which the truth is to be in its conformal set or
                interval.
        """
        if not 0 < coverage < 1:
            raise LookHopsError(f"A coverage is between 0 and 1, not {coverage}.")
        whole = self.whole(graphs)
        each = torch.stack([self.answers(whole, seed) for seed in self.models]).numpy()
        heads = enumerate(self.checkpoint.task.heads)
        targets = tuple(self._target(head, number, each, coverage) for number, head in heads)
        reference = self.checkpoint.reference
        if reference is None:
            return Predictions(graph_ids(graphs), targets)
        near = reference.index.nearest(whole.graphs)
        return Predictions(graph_ids(graphs), targets, near, reference.limit)

    def _target(
        self, head: Head, number: int, each: NDArray[Any], coverage: float
    ) -> ClassAnswers | NumberAnswers:
        """The answers to one target.

        Args:
            head: The target.
            number: Its place among the targets.
            each: All answers of each seed, shape (seeds, g, channels).
            coverage: As for :meth:`predict`.
        """
        own = each[..., head.channels]
        mean, region = own.mean(0), self._region(head, number, own, coverage)
        if not isinstance(head.task, Classification):
            return NumberAnswers(head.task.name, mean[:, 0], own.std(0)[:, 0], len(own), region)
        calibrations = [head.calibration(self.checkpoint.calibration(s)) for s in self.models]
        chosen = head.task.decided(mean, _together(calibrations))
        pairs = zip(own, calibrations, strict=True)
        alone = np.stack([head.task.decided(p, calibration) for p, calibration in pairs])
        likely = np.take_along_axis(own, np.broadcast_to(chosen, alone.shape)[..., None], -1)
        if region is not None:  # what is answered is never left out
            region |= np.arange(mean.shape[1]) == chosen[:, None]
        return ClassAnswers(
            head.name,
            head.task.class_names,
            mean,
            chosen,
            (alone == chosen).mean(0),
            likely[..., 0].std(0),
            len(own),
            region,
        )

    def _region(
        self, head: Head, number: int, own: NDArray[Any], coverage: float
    ) -> NDArray[Any] | None:
        """The conformal sets or intervals of one target, where the folder has what it takes."""
        reference = self.checkpoint.reference
        known = {} if reference is None else reference.nonconformity
        answers = [p for seed, p in zip(self.models, own, strict=True) if seed in known]
        if not answers:
            return None
        values = [known[seed][number].numpy() for seed in self.models if seed in known]
        return head.task.regions(np.stack(answers), values, coverage)

    def answers(self, whole: WholeGraphs, seed: int) -> Tensor:
        """One seed's calibrated answers, shape (g, channels), in main memory."""
        outputs = self.inputs(whole, seed).outputs(self.models[seed])
        outputs = self.checkpoint.task.in_units(outputs, self.checkpoint.fitted.get(seed))
        return self.checkpoint.task.answers(outputs, self.checkpoint.calibration(seed))


def _together(calibrations: Sequence[Calibration]) -> Calibration:
    """The threshold that the mean of all seeds' probabilities is held against, where there is one.

    It is the mean of the seeds' thresholds.
    """
    known = [one["threshold"] for one in calibrations if "threshold" in one]
    return {"threshold": float(np.mean(known))} if known else {}
