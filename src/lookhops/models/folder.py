"""A trained model as a folder: ``model.safetensors``, ``config.json`` and two tables.

``history.csv`` has a row for each epoch, ``predictions.csv`` one for each test graph of a seed.
``config.json`` is written last and holds the hash of the weights, so a folder that has one either
is complete or says that it is not.
"""

from __future__ import annotations

import csv
import hashlib
import io
import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lookhops import __version__
from lookhops.datasets.splits import Split
from lookhops.encoding import Encoding
from lookhops.errors import LookHopsError
from lookhops.files import (
    pack_tensors,
    read_bytes,
    read_json,
    unpack_tensors,
    write_bytes,
    write_json,
)
from lookhops.graphs import Graphs
from lookhops.models.facts import predictions_csv, run_facts
from lookhops.nn import Architecture, GraphNetwork
from lookhops.tasks import Task
from lookhops.training.protocol import Protocol
from lookhops.training.trainer import Run

FORMAT = "lookhops-model-1"
WEIGHTS, CONFIG, HISTORY = "model.safetensors", "config.json", "history.csv"
PREDICTIONS = "predictions.csv"


# -------------------------------------------------------------------- what decides a run


def settings_of(
    graphs: Graphs,
    architecture: Architecture,
    protocol: Protocol,
    splits: Mapping[int, Split],
) -> dict[str, Any]:
    """Everything that decides a training run, as JSON can hold it."""
    digest = hashlib.sha256()
    for seed, split in splits.items():
        for part in ("train", "val", "test"):
            index = getattr(split, part).cpu().numpy().astype("<i8")
            digest.update(f"{seed} {part} {len(index)} ".encode() + index.tobytes())
    return {
        "architecture": asdict(architecture),
        "protocol": {key: _plain(value) for key, value in asdict(protocol).items()},
        "data": {
            **Encoding.fit(graphs).to_dict(),
            "graphs": len(graphs),
            "class_names": list(graphs.class_names),
            "fingerprint": graphs.fingerprint,
            "splits": digest.hexdigest()[:16],
        },
    }


def difference(stored: Mapping[str, Any], given: Mapping[str, Any]) -> str:
    """In words, where two settings differ; empty where they do not."""
    found = []
    for part in ("architecture", "protocol", "data"):
        there, here = stored.get(part, {}), given[part]
        for key in {**here, **there}:
            if there.get(key) != here.get(key):
                found.append(f"{key} {there.get(key)!r} there, {here.get(key)!r} here")
    return "; ".join(found)


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


# -------------------------------------------------------------------- writing


def save_model(
    folder: Path,
    runs: Sequence[Run],
    settings: Mapping[str, Any],
    results: Mapping[str, Any],
    device: torch.device,
    stopped: str | None = None,
    *,
    graphs: Graphs,
    task: Task,
    command: str | None = None,
) -> dict[str, Any]:
    """Write the folder, ``config.json`` last, and return what that holds.

    Args:
        folder: Where.
        runs: One a seed, with weights.
        settings: What :func:`settings_of` gave.
        results: What :func:`~lookhops.models.evaluation.evaluate_runs` gave.
        device: Where it was trained.
        stopped: Why the training ended before its time, if it did.
        graphs: What it was trained and tested on.
        task: What was asked.
        command: The command line that asked for it, for whoever wants it again.
    """
    weights = {f"{run.seed}.{key}": value for run in runs for key, value in run.weights.items()}
    content = pack_tensors(weights, {"format": FORMAT})
    seconds = [row["seconds"] for run in runs for row in run.history]
    config = {
        "format": FORMAT,
        **settings,
        "versions": {
            "lookhops": __version__,
            "torch": torch.__version__,
            "numpy": np.__version__,
            "python": platform.python_version(),
        },
        "machine": {
            "system": f"{platform.system()} {platform.machine()}",
            "cores": os.cpu_count(),
            "device": torch.cuda.get_device_name(device) if device.type == "cuda" else device.type,
        },
        "parameters": sum(value.numel() for value in runs[0].weights.values()),
        "seconds_per_epoch": float(np.mean(seconds)) if seconds else None,
        "epochs": {str(run.seed): len(run.history) for run in runs},
        "best_epoch": {str(run.seed): run.best_epoch for run in runs},
        "metrics": results,
        "facts": run_facts(runs, graphs),
        "weights_sha256": hashlib.sha256(content).hexdigest(),
    }
    if stopped:
        config["stopped"] = stopped
    if command:
        config["command"] = command
    calibrations = {run.seed: {"temperature": _temperature(results, run.seed)} for run in runs}
    answers = predictions_csv(runs, graphs, task, calibrations).encode()
    config["predictions_sha256"] = hashlib.sha256(answers).hexdigest()
    write_bytes(folder / WEIGHTS, content)
    write_bytes(folder / HISTORY, _history(runs).encode())
    write_bytes(folder / PREDICTIONS, answers)
    write_json(folder / CONFIG, config)
    return config


def _temperature(results: Mapping[str, Any], seed: int) -> float:
    return float(results["seeds"].get(str(seed), {}).get("temperature", 1.0))


def _history(runs: Sequence[Run]) -> str:
    text = io.StringIO()
    columns = ("epoch", "train_loss", "val_loss", "val_accuracy", "seconds")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("seed", *columns))
    for run in runs:
        writer.writerows((run.seed, *(row[key] for key in columns)) for row in run.history)
    return text.getvalue()


# -------------------------------------------------------------------- reading


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """A model folder that was read and fits together.

    Args:
        folder: Where it is.
        config: The content of ``config.json``.
        architecture: The network.
        weights: The weights of each seed.
    """

    folder: Path
    config: dict[str, Any]
    architecture: Architecture
    weights: dict[int, dict[str, Tensor]]

    @property
    def class_names(self) -> tuple[str, ...]:
        """Names of the classes."""
        return tuple(self.config["data"]["class_names"])

    @property
    def seeds(self) -> tuple[int, ...]:
        """The seeds whose weights are here."""
        return tuple(self.weights)

    def temperature(self, seed: int) -> float:
        """The temperature that calibrates a seed's probabilities."""
        return _temperature(self.config["metrics"], seed)

    def model(self, seed: int) -> GraphNetwork:
        """The trained network of a seed, ready to predict."""
        data = self.config["data"]
        model = GraphNetwork.from_architecture(
            Encoding.from_dict(data).width, len(data["class_names"]), self.architecture
        )
        weights = self.weights[seed]
        model.to(next(iter(weights.values())).dtype).load_state_dict(weights)
        return model.eval()


def load_model(folder: Path | str) -> Checkpoint:
    """Read a model folder and check that its parts fit each other and this version."""
    folder = Path(folder)
    config = read_config(folder)
    path = folder / WEIGHTS
    content = read_bytes(path)
    tensors, _ = unpack_tensors(content, path)
    try:
        architecture = _architecture(config["architecture"])
        data = config["data"]
        channels, classes = Encoding.from_dict(data).width, len(data["class_names"])
        seeds = [int(seed) for seed in config["epochs"]]
        expected = GraphNetwork.from_architecture(channels, classes, architecture).state_dict()
        whole = hashlib.sha256(content).hexdigest() == config["weights_sha256"]
        dict(config["metrics"]["seeds"])
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        if isinstance(error, LookHopsError):
            raise LookHopsError(f"{folder / CONFIG}: {error}") from error
        raise LookHopsError(f"{folder / CONFIG}: damaged ({error!r}).") from error
    _check_names(path, tensors, {f"{s}.{k}": v for s in seeds for k, v in expected.items()})
    if not whole:
        raise LookHopsError(
            f"{path}: not the weights that {CONFIG} describes; finish the training with "
            "`lookhops train ... --resume`, or train again."
        )
    weights = {seed: {key: tensors[f"{seed}.{key}"] for key in expected} for seed in seeds}
    return Checkpoint(folder, config, architecture, weights)


def read_config(folder: Path) -> dict[str, Any]:
    """The content of ``config.json``, of a version that is known here."""
    if not folder.is_dir():
        raise LookHopsError(f"{folder}: no such model folder; `lookhops train` makes one.")
    path = folder / CONFIG
    if not path.exists():
        raise LookHopsError(f"{folder}: not a folder of a trained model: it has no {CONFIG}.")
    config = read_json(path)
    if config.get("format") != FORMAT:
        raise LookHopsError(
            f"{path}: its format is {config.get('format', 'not given')!r}; this version of "
            f"LookHops ({__version__}) reads {FORMAT!r}."
        )
    return config


def _architecture(values: Mapping[str, Any]) -> Architecture:
    known = {field.name for field in fields(Architecture)}
    if strange := sorted(set(values) - known):
        raise LookHopsError(f"the architecture has {strange[0]!r}, which is not known here.")
    return Architecture(**values)


def _check_names(path: Path, found: Mapping[str, Tensor], expected: Mapping[str, Tensor]) -> None:
    for what, names in (
        ("lacks", [key for key in expected if key not in found]),
        ("also has", [key for key in found if key not in expected]),
    ):
        if names:
            more = f" and {len(names) - 1} more" if len(names) > 1 else ""
            raise LookHopsError(
                f"{path}: does not fit {CONFIG}: it {what} the parameter {names[0]!r}{more}."
            )
    for key, value in expected.items():
        if found[key].shape != value.shape or not found[key].is_floating_point():
            raise LookHopsError(
                f"{path}: does not fit {CONFIG}: {key!r} has shape {tuple(found[key].shape)}, "
                f"expected {tuple(value.shape)}."
            )
