"""Using a trained model: one answer from all its seeds, with calibrated probabilities."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lookhops.encoding import Encoding
from lookhops.graphs import Graphs
from lookhops.models.evaluation import graph_ids
from lookhops.models.folder import Checkpoint, load_model
from lookhops.nn import GraphNetwork, Pooled
from lookhops.training.trainer import choose_device

BATCH_SIZE = 256


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
        self.models: dict[int, GraphNetwork] = {
            seed: self.checkpoint.model(seed).to(self.device) for seed in self.checkpoint.seeds
        }

    def check(self, graphs: Graphs) -> None:
        """Refuse graphs whose features the model does not know."""
        self.encoding.check(graphs)

    @torch.inference_mode()
    def predict(self, graphs: Graphs) -> Predictions:
        """The class of each graph, with probabilities and how much the seeds agree."""
        self.check(graphs)
        each = torch.stack([self.probabilities(graphs, seed) for seed in self.models])
        mean = each.mean(0)
        agreement = (each.argmax(-1) == mean.argmax(-1)).double().mean(0)
        return Predictions(
            graph_ids(graphs), mean.numpy(), agreement.numpy(), self.checkpoint.class_names
        )

    def probabilities(self, graphs: Graphs, seed: int) -> Tensor:
        """One seed's calibrated probabilities, shape (g, classes), in main memory."""
        outputs = network_outputs(self.models[seed], graphs, self.encoding, self.device)
        calibration = {"temperature": self.checkpoint.temperature(seed)}
        return self.checkpoint.task.answers(outputs, calibration)

    def classify(self, batch: Graphs, seed: int) -> tuple[Tensor, list[Pooled]]:
        """One seed's outputs, shape (g, outputs), and what its pooling layers decided."""
        model, batch = self.models[seed], batch.to(self.device)
        columns = self.encoding.columns(batch, dtype=next(model.parameters()).dtype)
        return model.classify(model.level(batch, columns))


def network_outputs(
    model: GraphNetwork, graphs: Graphs, encoding: Encoding, device: torch.device
) -> Tensor:
    """What a network gives for each graph, shape (g, outputs), in main memory."""
    dtype = next(model.parameters()).dtype
    found = [torch.zeros(0, model.out_channels, dtype=dtype)]
    for batch in graphs.batches(BATCH_SIZE):
        batch = batch.to(device)
        found.append(model(model.level(batch, encoding.columns(batch, dtype=dtype))).cpu())
    return torch.cat(found).double()
