"""A model folder that is read, each of its parts checked against the others."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from torch import Tensor

from lookhops.core.errors import LookHopsError
from lookhops.core.files import current, read_bytes
from lookhops.core.options import Architecture, Reading
from lookhops.core.schema import located
from lookhops.core.tensor_files import unpack_tensors
from lookhops.encoding import Encoding
from lookhops.encoding.graph_encoding import Preprocessing
from lookhops.learners import Fitted, FittedNetwork, Learner
from lookhops.learners.learner import FITTED
from lookhops.models.folder import (
    CONFIG,
    REFERENCE,
    WEIGHTS,
    calibration_of,
    learner_in,
    one_model,
    read_config,
    task_in,
)
from lookhops.models.reference import Reference
from lookhops.tasks import Calibration, Task
from lookhops.training.randomness import FINAL
from lookhops.training.runs import run_key


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """A model folder that was read and fits together.

    Args:
        folder: Where it is.
        config: The content of ``config.json``.
        learner: What was fitted.
        encoding: The columns of the graphs that it reads.
        task: What it is asked.
        members: What was fitted for each seed: one, or several whose answers are averaged.
        fitted: What the task took from each seed's training part, where answers need it.
        reference: What new graphs are compared with; none where that file was removed.
    """

    folder: Path
    config: dict[str, Any]
    learner: Learner
    encoding: Encoding
    task: Task
    members: dict[int, list[Fitted]]
    fitted: dict[int, Tensor]
    reference: Reference | None = None

    @property
    def architecture(self) -> Architecture:
        """That of its networks; other learners have none, and are refused by name."""
        with located(str(self.folder)):
            return self.learner.network_architecture

    @property
    def seeds(self) -> tuple[int, ...]:
        """The seeds whose models are here."""
        return tuple(seed for seed in self.members if seed != FINAL)

    @property
    def answering(self) -> tuple[int, ...]:
        """The seeds whose models answer: all, or what was trained on all graphs alone."""
        return (FINAL,) if FINAL in self.members else self.seeds

    def calibration(self, seed: int) -> Calibration:
        """What turns a seed's outputs into answers."""
        return calibration_of(self.config["metrics"], seed)

    @property
    def reading(self) -> Reading:
        """How the graphs were read that it was trained on."""
        return Reading.from_dict(self.config["reading"])

    def networks(self, seed: int) -> list[FittedNetwork]:
        """The trained networks of a seed; other learners are refused by name."""
        _ = self.architecture
        return cast(list[FittedNetwork], self.members[seed])

    def preprocessing(self, seed: int) -> Preprocessing:
        """What was fitted beside the weights of a seed's networks."""
        return self.networks(seed)[0].preprocessing


def load_model(folder: Path | str) -> Checkpoint:
    """Read a model folder and check that its parts fit each other and this version."""
    return one_model(Path(folder), _load)


def _load(folder: Path) -> Checkpoint:
    config = read_config(folder)
    path = folder / WEIGHTS
    content = read_bytes(path)
    tensors, _ = unpack_tensors(content, path)
    with located(str(folder / CONFIG)):
        learner, task = learner_in(config), task_in(config)
        encoding = Encoding.from_dict(config["encoding"])
    members: dict[int, list[Fitted]] = {}
    with located(f"{path}: does not fit {CONFIG}"):
        by_member = _by_member(tensors)
        for seed, count in _members(config).items():
            names = [run_key(seed, member) for member in range(count)]
            first = by_member.get(names[0], {})  # which has what all members share
            each = [{**first, **by_member.pop(own, {})} for own in names]
            members[seed] = [
                learner.fitted.from_tensors(learner, task, encoding, own) for own in each
            ]
        if by_member:
            raise LookHopsError(f"it also has tensors of {next(iter(by_member))!r}")
    if hashlib.sha256(content).hexdigest() != config["weights_sha256"]:
        raise LookHopsError(
            f"{path}: not the weights that {CONFIG} describes; finish the training with "
            "`lookhops train ... --resume`, or train again."
        )
    keys = {seed: f"{run_key(seed, 0)}.{FITTED}" for seed in members}
    fitted = {seed: tensors[key] for seed, key in keys.items() if key in tensors}
    reference = _read_reference(folder, config, task)
    return Checkpoint(folder, config, learner, encoding, task, members, fitted, reference)


def _by_member(tensors: Mapping[str, Tensor]) -> dict[str, dict[str, Tensor]]:
    """The tensors of each seed's members, which begin with the member's key."""
    found: dict[str, dict[str, Tensor]] = {}
    for key, value in tensors.items():
        owner, _, name = key.partition(".")
        found.setdefault(owner, {})[name] = value
    return found


def _members(config: Mapping[str, Any]) -> dict[int, int]:
    """How many members each seed has, and those that were trained on all graphs."""
    seeds = {int(seed): config["members"].get(seed, 1) for seed in config["epochs"]}
    last = config.get("final_model")
    return seeds | ({FINAL: last["members"]} if last else {})


def _read_reference(folder: Path, config: Mapping[str, Any], task: Task) -> Reference | None:
    """What new graphs are compared with, if the folder has it."""
    path = folder / REFERENCE
    if not current(path).is_file():
        return None
    content = read_bytes(path)
    if hashlib.sha256(content).hexdigest() != config["reference_sha256"]:
        raise LookHopsError(
            f"{path}: not what {CONFIG} describes; finish the training with "
            "`lookhops train ... --resume`, or remove the file."
        )
    with located(str(path)):
        return Reference.from_tensors(unpack_tensors(content, path)[0], task)
