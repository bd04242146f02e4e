"""Using a trained model: one answer from all its seeds, with calibrated probabilities."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lookhops.encoding.whole import WholeGraphs
from lookhops.graphs import Graphs
from lookhops.models.evaluation import graph_ids
from lookhops.models.folder import Checkpoint, load_model
from lookhops.nn import GraphNetwork
from lookhops.training.inputs import MemberInputs
from lookhops.training.trainer import choose_device


@dataclass(frozen=True, eq=False)
class Predictions:
    """Answers for some graphs.

    Args:
        ids: What each graph is called, shape (g).
        probabilities: Calibrated, the mean over seeds, shape (g, classes).
        agreement: The share of seeds that, asked alone, give the same class, shape (g).
        class_names: Names of the classes.
    """

    ids: list[str]
    probabilities: NDArray[np.float64]
    agreement: NDArray[np.float64]
    class_names: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def numbers(self) -> NDArray[np.int64]:
        """Number of each graph's likeliest class, shape (g)."""
        return self.probabilities.argmax(1)

    @property
    def classes(self) -> list[str]:
        """Name of each graph's likeliest class."""
        return [self.class_names[number] for number in self.numbers]


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
        #: The networks of each seed, whose answers are averaged.
        self.members: dict[int, list[GraphNetwork]] = {
            seed: [model.to(self.device) for model in self.checkpoint.models(seed)]
            for seed in self.checkpoint.seeds
        }
        #: The first network of each seed, to look into.
        self.models = {seed: members[0] for seed, members in self.members.items()}

    def check(self, graphs: Graphs) -> None:
        """Refuse graphs whose features the model does not know."""
        self.encoding.check(graphs)

    def whole(self, graphs: Graphs) -> WholeGraphs:
        """The graphs on the models' device, and what is known of them as wholes."""
        architecture = self.checkpoint.architecture
        return WholeGraphs.of(graphs.to(self.device), architecture.fingerprint, architecture.totals)

    def inputs(self, whole: WholeGraphs, seed: int) -> MemberInputs:
        """Graphs as a seed's network is told of them."""
        return MemberInputs(whole, self.encoding, self.checkpoint.learnt[seed])

    @torch.inference_mode()
    def predict(self, graphs: Graphs) -> Predictions:
        """The class of each graph, with probabilities and how much the seeds agree."""
        self.check(graphs)
        whole = self.whole(graphs)
        each = torch.stack([self.probabilities(whole, seed) for seed in self.models])
        mean = each.mean(0)
        agreement = (each.argmax(-1) == mean.argmax(-1)).double().mean(0)
        return Predictions(
            graph_ids(graphs), mean.numpy(), agreement.numpy(), self.checkpoint.class_names
        )

    def outputs(self, whole: WholeGraphs, seed: int) -> Tensor:
        """What a seed's network gives, or the average of its networks, shape (g, outputs)."""
        inputs = self.inputs(whole, seed)
        found = [inputs.outputs(network) for network in self.members[seed]]
        return found[0] if len(found) == 1 else self.checkpoint.task.average(found)

    def probabilities(self, whole: WholeGraphs, seed: int) -> Tensor:
        """One seed's calibrated probabilities, shape (g, classes), in main memory."""
        outputs = self.outputs(whole, seed)
        calibration = {"temperature": self.checkpoint.temperature(seed)}
        return self.checkpoint.task.answers(outputs, calibration)
