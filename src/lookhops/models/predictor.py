"""Using a trained model: one answer from all its seeds, with calibrated probabilities."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lookhops.encoding.whole import WholeGraphs
from lookhops.errors import LookHopsError
from lookhops.graphs import Graphs
from lookhops.models.evaluation import graph_ids
from lookhops.models.folder import Checkpoint, load_model
from lookhops.nn import GraphNetwork
from lookhops.tasks.conformal import COVERAGE
from lookhops.training.inputs import MemberInputs
from lookhops.training.trainer import choose_device

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Predictions:
    """Answers for some graphs, and how sure they are.

    Args:
        ids: What each graph is called, shape (g).
        probabilities: Calibrated, the mean over seeds, shape (g, classes).
        agreement: The share of seeds that, asked alone, give the same class, shape (g).
        spread: Standard deviation over the seeds of that class's probability, shape (g).
        class_names: Names of the classes.
        sets: Which classes the conformal set holds, shape (g, classes); none where the folder, of
            an earlier version, lacks what it takes.
        similarity: To the most similar training graph, from 0 to 1, shape (g), or none as above.
        limit: Graphs below this similarity are unlike those that the model was trained on.
    """

    ids: list[str]
    probabilities: Array
    agreement: Array
    spread: Array
    class_names: tuple[str, ...]
    sets: Array | None = None
    similarity: Array | None = None
    limit: float = 0.0

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def numbers(self) -> Array:
        """Number of each graph's likeliest class, shape (g)."""
        return self.probabilities.argmax(1)

    @property
    def classes(self) -> list[str]:
        """Name of each graph's likeliest class."""
        return [self.class_names[number] for number in self.numbers]

    def named_set(self, graph: int) -> list[str]:
        """Names of the classes in a graph's conformal set."""
        held = () if self.sets is None else np.flatnonzero(self.sets[graph])
        return [self.class_names[number] for number in held]

    @property
    def unlike(self) -> Array:
        """Whether each graph is unlike all that the model was trained on, shape (g)."""
        if self.similarity is None:
            return np.zeros(len(self), dtype=bool)
        return np.asarray(self.similarity < self.limit)


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
        """The class of each graph, with probabilities and how sure they are.

        Args:
            graphs: The graphs.
            coverage: The probability with which the true class is to be in its conformal set.
        """
        whole = self.whole(graphs)
        each = torch.stack([self.probabilities(whole, seed) for seed in self.models])
        mean = each.mean(0)
        chosen = mean.argmax(-1)
        agreement = (each.argmax(-1) == chosen).double().mean(0)
        own = each.gather(-1, chosen.expand(len(each), -1).unsqueeze(-1)).squeeze(-1)
        return Predictions(
            graph_ids(graphs),
            mean.numpy(),
            agreement.numpy(),
            own.std(0, correction=0).numpy(),
            self.checkpoint.class_names,
            **self._compared(whole.graphs, each, coverage),
        )

    def _compared(self, graphs: Graphs, each: Tensor, coverage: float) -> dict[str, Any]:
        """What is known from the graphs that the model has seen: sets and similarity."""
        if not 0 < coverage < 1:
            raise LookHopsError(f"A coverage is between 0 and 1, not {coverage}.")
        reference = self.checkpoint.reference
        if reference is None:
            return {}
        answers = {
            seed: own.numpy()
            for seed, own in zip(self.models, each, strict=True)
            if seed in reference.nonconformity  # a stopped training has none
        }
        sets = None
        if answers:
            known = [reference.nonconformity[seed].numpy() for seed in answers]
            sets = self.checkpoint.task.regions(np.stack([*answers.values()]), known, coverage)
        near = reference.index.nearest(graphs)
        return {"sets": sets, "similarity": near, "limit": reference.limit}

    def probabilities(self, whole: WholeGraphs, seed: int) -> Tensor:
        """One seed's calibrated probabilities, shape (g, classes), in main memory."""
        outputs = self.inputs(whole, seed).outputs(self.models[seed])
        outputs = self.checkpoint.task.in_units(outputs, self.checkpoint.fitted.get(seed))
        return self.checkpoint.task.answers(outputs, self.checkpoint.calibration(seed))
