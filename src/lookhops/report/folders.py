"""What lies in a model's folder, read for a report: each part is optional but ``config.json``."""

from __future__ import annotations

import csv
import hashlib
import io
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookhops.errors import LookHopsError
from lookhops.files import read_bytes, read_json
from lookhops.models.folder import CONFIG, HISTORY, PREDICTIONS, read_config
from lookhops.tasks import Classification, Task, task_from_dict

INFORMATION = "information.json"
COLUMNS = ("epoch", "train_loss", "val_loss", "val_accuracy")


@dataclass(frozen=True, eq=False)
class Answers:
    """What the seeds answered to their test graphs: the content of ``predictions.csv``.

    Args:
        seed: Seed of each answer, shape (n).
        graph: Number of the graph, shape (n).
        ids: What the graph is called.
        true: Number of its class, shape (n).
        p: Calibrated probabilities, shape (n, classes).
    """

    seed: NDArray[np.int64]
    graph: NDArray[np.int64]
    ids: list[str]
    true: NDArray[np.int64]
    p: NDArray[np.float64]

    def of_seed(self, seed: int) -> Answers:
        """The answers of one seed."""
        rows = np.flatnonzero(self.seed == seed)
        ids = [self.ids[row] for row in rows]
        return Answers(self.seed[rows], self.graph[rows], ids, self.true[rows], self.p[rows])


@dataclass(frozen=True, eq=False)
class ModelFolder:
    """A model's folder.

    Args:
        path: Where it is.
        config: The content of ``config.json``.
        history: Of each seed, the columns of its epochs.
        answers: What it answered to the test graphs; none in folders of earlier versions.
    """

    path: Path
    config: Mapping[str, Any]
    history: Mapping[int, Mapping[str, list[float]]]
    answers: Answers | None

    @property
    def seeds(self) -> list[int]:
        """The seeds, in the order of training."""
        return [int(seed) for seed in self.config["epochs"]]

    @property
    def best_epoch(self) -> dict[int, int]:
        """Of each seed, the epoch whose weights were kept."""
        return {int(seed): int(epoch) for seed, epoch in self.config["best_epoch"].items()}

    @property
    def class_names(self) -> list[str]:
        """Names of the classes."""
        return list(self.config["data"]["class_names"])

    @property
    def task(self) -> Task:
        """What was asked; folders that do not say were trained on classes."""
        asked = self.config.get("task")
        return task_from_dict(asked) if asked else Classification(tuple(self.class_names))


def read_folder(path: Path) -> ModelFolder:
    """Read a model's folder, or say in a sentence what is wrong with it."""
    config = read_config(path)
    names = [str(name) for name in config["data"]["class_names"]]
    return ModelFolder(path, config, _history(path / HISTORY), _answers(path, config, names))


def read_information(folder: Path) -> dict[str, Any] | None:
    """The hop information that was measured for the models of a folder, if it is there."""
    path = folder / INFORMATION
    if not path.is_file():
        return None
    found = read_json(path)
    if not {"k", "gain", "fit", "sentence"} <= found.keys():
        raise LookHopsError(f"{path}: not what `lookhops look --json` prints; remove it.")
    return found


def model_folders(path: Path) -> list[Path]:
    """The folders in a folder that hold a model."""
    try:
        return sorted(one for one in path.iterdir() if (one / CONFIG).is_file())
    except OSError as error:
        raise LookHopsError(f"{path}: cannot be read ({error.strerror}).") from error


def _history(path: Path) -> dict[int, dict[str, list[float]]]:
    if not path.is_file():
        return {}
    found: dict[int, dict[str, list[float]]] = {}
    for row in _rows(path, ("seed", *COLUMNS)):
        try:
            columns = found.setdefault(int(row["seed"]), {name: [] for name in COLUMNS})
            for name in COLUMNS:
                columns[name].append(float(row[name]))
        except (TypeError, ValueError) as error:
            raise LookHopsError(f"{path}: not a history of training ({error}).") from error
    return found


def _answers(folder: Path, config: Mapping[str, Any], names: list[str]) -> Answers | None:
    """The test graphs' answers; none where there is no such file."""
    path = folder / PREDICTIONS
    if not path.is_file() or "predictions_sha256" not in config:
        return None
    if hashlib.sha256(read_bytes(path)).hexdigest() != config["predictions_sha256"]:
        raise LookHopsError(
            f"{path}: not the predictions that {CONFIG} describes; finish the training with "
            "`lookhops train ... --resume`, or remove the file."
        )
    rows = _rows(path, ("seed", "graph", "id", "class", *(f"p({name})" for name in names)))
    if not rows:
        return None
    number = {name: i for i, name in enumerate(names)}
    return Answers(
        np.array([int(row["seed"]) for row in rows]),
        np.array([int(row["graph"]) for row in rows]),
        [row["id"] for row in rows],
        np.array([number[row["class"]] for row in rows]),
        np.array([[float(row[f"p({name})"]) for name in names] for row in rows]),
    )


def _rows(path: Path, columns: tuple[str, ...]) -> list[dict[str, str]]:
    try:
        text = read_bytes(path).decode()
        reader = csv.DictReader(io.StringIO(text, newline=""))
        found = list(reader)
    except (UnicodeDecodeError, csv.Error) as error:
        raise LookHopsError(f"{path}: not a table ({error}).") from error
    if lacking := [name for name in columns if name not in (reader.fieldnames or ())]:
        raise LookHopsError(f"{path}: has no column {lacking[0]!r}.")
    return found
