"""A model folder that is read, each of its parts checked against the others."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from lookhops.core.errors import LookHopsError
from lookhops.core.files import current, read_bytes
from lookhops.core.options import Reading
from lookhops.core.schema import located, read
from lookhops.core.tensor_files import unpack_tensors
from lookhops.encoding import Encoding
from lookhops.encoding.preprocessing import Preprocessing
from lookhops.models.folder import (
    CONFIG,
    FITTED,
    PREPROCESSING,
    REFERENCE,
    WEIGHTS,
    calibration_of,
    one_model,
    read_config,
    task_in,
)
from lookhops.models.reference import Reference
from lookhops.nn import Architecture, GraphNetwork
from lookhops.tasks import Calibration, Task
from lookhops.training.randomness import FINAL
from lookhops.training.runs import run_key


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """A model folder that was read and fits together.

    Args:
        folder: Where it is.
        config: The content of ``config.json``.
        architecture: The network.
        encoding: What it is told.
        task: What it is asked.
        weights: The weights of each seed's members.
        preprocessing: What was fitted on a training part.
        fitted: What the task took from each seed's training part, where answers need it.
        reference: What new graphs are compared with; folders of earlier versions have none.
    """

    folder: Path
    config: dict[str, Any]
    architecture: Architecture
    encoding: Encoding
    task: Task
    weights: dict[int, list[dict[str, Tensor]]]
    preprocessing: dict[int, Preprocessing]
    fitted: dict[int, Tensor]
    reference: Reference | None = None

    @property
    def class_names(self) -> tuple[str, ...]:
        """Names of the classes."""
        return tuple(self.config["data"]["class_names"])

    @property
    def seeds(self) -> tuple[int, ...]:
        """The seeds whose weights are here."""
        return tuple(seed for seed in self.weights if seed != FINAL)

    @property
    def answering(self) -> tuple[int, ...]:
        """The seeds whose networks answer: all, or those that were trained on all graphs alone."""
        return (FINAL,) if FINAL in self.weights else self.seeds

    def calibration(self, seed: int) -> Calibration:
        """What turns a seed's outputs into answers."""
        return calibration_of(self.config["metrics"], seed)

    @property
    def reading(self) -> Reading:
        """How the graphs were read that it was trained on."""
        return Reading.from_dict(self.config.get("reading", {}))

    def network(self, seed: int) -> GraphNetwork:
        """The network of a seed, not trained yet."""
        sizes = {**self.preprocessing[seed].sizes, **self.encoding.sizes}
        width, outputs = self.encoding.width, self.task.out_channels
        return GraphNetwork.from_architecture(width, outputs, self.architecture, **sizes)

    def model(self, seed: int, member: int = 0) -> GraphNetwork:
        """A trained network of a seed, ready to predict."""
        model, weights = self.network(seed), self.weights[seed][member]
        dtype = next(own.dtype for own in weights.values() if own.is_floating_point())
        model.to(dtype).load_state_dict(weights)
        return model.eval()

    def models(self, seed: int) -> list[GraphNetwork]:
        """The trained networks of a seed, whose answers are averaged."""
        return [self.model(seed, member) for member in range(len(self.weights[seed]))]


def load_model(folder: Path | str) -> Checkpoint:
    """Read a model folder and check that its parts fit each other and this version."""
    return one_model(Path(folder), _load)


def _load(folder: Path) -> Checkpoint:
    config = read_config(folder)
    path = folder / WEIGHTS
    content = read_bytes(path)
    tensors, _ = unpack_tensors(content, path)
    with located(str(folder / CONFIG)):
        task = task_in(config)
        architecture = read(Architecture, config["architecture"])
        encoding = Encoding.from_dict(config["encoding"])
        parts = architecture, encoding, task
        found = Checkpoint(folder, config, *parts, {}, {}, {}, _read_reference(folder, config))
        expected: dict[str, Tensor] = {}
        members: dict[int, list[str]] = {}
        for seed, count in _networks(config).items():
            first = run_key(seed, 0)
            found.preprocessing[seed] = _preprocessing(tensors, first)
            # On no device: what a file says may be far larger than what it holds.
            with torch.device("meta"):
                network = found.network(seed).state_dict()
            members[seed] = [run_key(seed, member) for member in range(count)]
            for own in members[seed]:
                expected |= {f"{own}.{key}": value for key, value in network.items()}
            if task.num_fitted:
                expected[f"{first}.{FITTED}"] = torch.zeros(task.num_fitted)
    _check_names(path, tensors, expected)
    if hashlib.sha256(content).hexdigest() != config["weights_sha256"]:
        raise LookHopsError(
            f"{path}: not the weights that {CONFIG} describes; finish the training with "
            "`lookhops train ... --resume`, or train again."
        )
    by_name: dict[str, dict[str, Tensor]] = {}
    for key in expected:
        owner, _, name = key.partition(".")
        by_name.setdefault(owner, {})[name] = tensors[key]
    for seed, names in members.items():
        if task.num_fitted:
            found.fitted[seed] = by_name[names[0]].pop(FITTED)
        found.weights[seed] = [by_name[own] for own in names]
    return found


def _networks(config: Mapping[str, Any]) -> dict[int, int]:
    """How many networks each seed has, and those that were trained on all graphs."""
    seeds = {int(seed): config.get("members", {}).get(seed, 1) for seed in config["epochs"]}
    last = config.get("final_model")
    return seeds | ({FINAL: last["members"]} if last else {})


def _read_reference(folder: Path, config: Mapping[str, Any]) -> Reference | None:
    """What new graphs are compared with, if the folder has it."""
    path = folder / REFERENCE
    if "reference_sha256" not in config or not current(path).is_file():
        return None
    content = read_bytes(path)
    if hashlib.sha256(content).hexdigest() != config["reference_sha256"]:
        raise LookHopsError(
            f"{path}: not what {CONFIG} describes; finish the training with "
            "`lookhops train ... --resume`, or remove the file."
        )
    return Reference.from_tensors(unpack_tensors(content, path)[0])


def _preprocessing(tensors: dict[str, Tensor], key: str) -> Preprocessing:
    """What a network learnt to be told, taken out of a folder's tensors."""
    prefix = f"{key}.{PREPROCESSING}"
    own = {key: tensors.pop(key) for key in list(tensors) if key.startswith(prefix)}
    return Preprocessing.from_tensors({key[len(prefix) :]: value for key, value in own.items()})


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
        of_one_kind = found[key].is_floating_point() == value.is_floating_point()
        if found[key].shape != value.shape or not of_one_kind:
            raise LookHopsError(
                f"{path}: does not fit {CONFIG}: {key!r} has shape {tuple(found[key].shape)}, "
                f"expected {tuple(value.shape)}."
            )
