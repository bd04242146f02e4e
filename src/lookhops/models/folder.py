"""A trained model as a folder: ``model.safetensors``, ``config.json``, two tables, a reference.

``history.csv`` has a row for each epoch, ``predictions.csv`` one for each test graph of a seed,
``reference.safetensors`` what new graphs are compared with, ``MODEL.md`` is the model card.
``config.json`` holds the hashes of the others. All of them appear, and replace those of an earlier
model, in one step (:func:`~lookhops.core.files.changing`): a reader sees one model or the other.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypeVar, cast

import numpy as np
from torch import Tensor

from lookhops import __version__
from lookhops.core.errors import LookHopsError
from lookhops.core.files import current, read_bytes, read_json, unpack_tensors
from lookhops.core.options import Architecture, Protocol
from lookhops.core.reading import Reading
from lookhops.core.schema import AtLeast, Count, NotNegative, Positive, Range, Share, located, read
from lookhops.encoding import Encoding
from lookhops.encoding.preprocessing import Preprocessing
from lookhops.learners import Fitted, FittedNetwork, Learner, learner_from_dict
from lookhops.learners.learner import FITTED
from lookhops.learners.registry import SAVED
from lookhops.models.reference import Reference
from lookhops.runs.record import Machine, RunRecord
from lookhops.sources.counts import check_graph_counts
from lookhops.tasks import Calibration, Task, task_from_dict
from lookhops.tasks.task import Head
from lookhops.training.runs import FINAL, run_key

FORMAT = "lookhops-model-2"
WEIGHTS, CONFIG, HISTORY = "model.safetensors", "config.json", "history.csv"
PREDICTIONS, REFERENCE = "predictions.csv", "reference.safetensors"
#: The model card, for people: nothing is read from it.
CARD = "MODEL.md"
#: The hop information that chose k, where it was measured.
INFORMATION = "information.json"
#: Where ``config.json`` says what the other files' hashes are.
CHECKSUMS = {
    "weights_sha256": WEIGHTS,
    "history_sha256": HISTORY,
    "predictions_sha256": PREDICTIONS,
    "reference_sha256": REFERENCE,
}

T = TypeVar("T")

#: What ``config.json`` holds; a name with ``?`` may be missing.
DATA = {
    **dict.fromkeys(("name", "featuriser", "fingerprint", "splits"), str),
    "graphs": Count,
    "class_names": Sequence[str],
}
METRICS = {
    **dict.fromkeys(("seeds", "summary"), Mapping[str, Mapping[str, Any]]),
    "confusion?": Sequence[Sequence[Count]],
    "in_sets?": Sequence[Count],
}
#: What turns a seed's outputs into answers and regions. In the record of a seed the name of the
#: target may stand before it, ``logS: ``, and that of a class behind it, `` of high``.
CALIBRATION: Mapping[str, Any] = {
    "temperature": Annotated[float, Range(1e-3, 1e3)],
    "threshold": Share,
    **dict.fromkeys(("conformal_quantile", "deviation_weight"), NotNegative),
}
#: What the record of a seed says of its training; of one that ended before its test all there is.
TRAINED = {
    **dict.fromkeys(("epochs", "best_epoch", "parameters"), Count | None),
    "seconds_per_epoch?": NotNegative,
}
CONFIG_TYPE = AtLeast(
    {
        "learner": SAVED,
        "protocol": Protocol,
        "data": AtLeast(DATA),
        "encoding": Encoding,
        "task": Mapping[str, Any],
        "versions": Mapping[str, str],
        "machine": Machine,
        "untested?": Mapping[str, Mapping[str, Count | None]],
        "members": Mapping[str, Positive],
        "final": bool,
        "final_model?": AtLeast(dict.fromkeys(("epochs", "graphs", "members"), Positive)),
        "metrics": AtLeast(METRICS),
        "commonest?": Mapping[str, str],
        **dict.fromkeys(("format", *CHECKSUMS), str),
        **dict.fromkeys(("stopped?", "command?"), str),
        "reading": Mapping[str, Any],
    }
)


def read_config(folder: Path) -> dict[str, Any]:
    """The content of ``config.json``, of a version that is known here, checked."""
    if not folder.is_dir():
        raise LookHopsError(f"{folder}: no such model folder; `lookhops train` makes one.")
    path = folder / CONFIG
    if not current(path).exists():
        raise LookHopsError(f"{folder}: not a folder of a trained model: it has no {CONFIG}.")
    config = read_json(path)
    if config.get("format") != FORMAT:
        raise LookHopsError(
            f"{path}: its format is {config.get('format', 'not given')!r}; this version of "
            f"LookHops ({__version__}) reads {FORMAT!r}."
        )
    try:
        read(CONFIG_TYPE, config)
        if "facts" in config:
            check_graph_counts(config["facts"], "facts")
        classes, confusion = len(config["data"]["class_names"]), config["metrics"].get("confusion")
        if confusion is not None and {len(confusion), *map(len, confusion)} != {classes}:
            raise LookHopsError(f"metrics.confusion is not a table of {classes} by {classes}")
        if len(config["metrics"].get("in_sets") or [0] * classes) != classes:
            raise LookHopsError(f"metrics.in_sets is not of {classes} classes")
        config = with_totals(config)
        for name in ("epochs", "best_epoch"):
            if strange := [seed for seed in config[name] if not seed.isdecimal()]:
                raise LookHopsError(f"{name}.{strange[0]} is not a seed")
    except LookHopsError as error:
        raise LookHopsError(
            f"{path}: damaged, not what `lookhops train` wrote: {error}."
        ) from error
    return config


def with_totals(config: Mapping[str, Any]) -> dict[str, Any]:
    """What ``config.json`` holds, with what its records say of all seeds.

    Added are the ``epochs`` and the ``best_epoch`` of each seed, the ``parameters`` of a network
    and the mean ``seconds_per_epoch``.
    """
    tested, untested = config["metrics"]["seeds"], config.get("untested", {})
    runs: dict[str, Mapping[str, Any]] = {}
    for seed in map(str, config["protocol"]["seeds"]):
        if seed in tested or seed in untested:
            runs[seed] = tested.get(seed) or untested[seed]
            read(AtLeast(TRAINED), runs[seed], f"metrics.seeds.{seed}")
            for name, value in runs[seed].items():
                kind = CALIBRATION.get(name.rpartition(": ")[2].partition(" of ")[0])
                if kind is not None:
                    read(kind, value, f"metrics.seeds.{seed}.{name}")
    if not runs:
        raise LookHopsError("metrics.seeds has no seed of the protocol")
    first = next(iter(runs))
    parameters = runs[first]["parameters"]
    seconds = [run["seconds_per_epoch"] for run in tested.values() if "seconds_per_epoch" in run]
    totals = {
        "parameters": parameters and parameters // config["members"].get(first, 1),
        "seconds_per_epoch": float(np.mean(seconds)) if seconds else None,
        **{n: {seed: run[n] for seed, run in runs.items()} for n in ("epochs", "best_epoch")},
    }
    return {**config, **totals}


def run_records(config: Mapping[str, Any]) -> tuple[RunRecord, ...]:
    """The records of the seeds that were tested."""
    shared = {name: config[name] for name in ("versions", "machine")}
    found = []
    for seed, metrics in config["metrics"]["seeds"].items():
        record = {"seed": int(seed), "metrics": metrics, **shared}
        found.append(RunRecord.from_dict(record, f"metrics.seeds.{seed}"))
    return tuple(found)


def one_model(folder: Path, read_from: Callable[[Path], T]) -> T:
    """What is read from a folder's files, all of one model: again where another took its place."""
    path = folder / CONFIG
    while True:
        config = read_bytes(path) if current(path).is_file() else None
        try:
            return read_from(folder)
        except LookHopsError:
            if config is None or not current(path).is_file() or read_bytes(path) == config:
                raise


def calibration_of(metrics: Mapping[str, Any], seed: int) -> Calibration:
    """What turns a seed's outputs into answers: it stands among the seed's metrics.

    Of the networks that were trained on all graphs it is the median of the seeds'.
    """
    if seed != FINAL:
        return metrics["seeds"].get(str(seed), {})
    each = list(metrics["seeds"].values())
    names = [name for name, value in each[0].items() if isinstance(value, float)]
    values = {name: [one.get(name) for one in each] for name in names}
    return {name: float(np.median(each)) for name, each in values.items() if None not in each}


def commonest_key(head: Head) -> str:
    """Where ``commonest`` of ``config.json`` has the commonest class of a target."""
    return head.name or "class"


def learner_in(config: Mapping[str, Any]) -> Learner:
    """What was fitted."""
    return learner_from_dict(config["learner"])


def task_in(config: Mapping[str, Any]) -> Task:
    """What was asked of it."""
    return task_from_dict(config["task"])


# -------------------------------------------------------------------- the model


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """A model folder that was read and fits together.

    Args:
        folder: Where it is.
        config: The content of ``config.json``, with its totals.
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
    config, path = read_config(folder), folder / WEIGHTS
    content = read_bytes(path)
    tensors, _ = unpack_tensors(content, path)
    with located(str(folder / CONFIG)):
        learner, task = learner_in(config), task_in(config)
        encoding = Encoding.from_dict(config["encoding"])
    counts = {int(seed): config["members"].get(seed, 1) for seed in config["epochs"]}
    if last := config.get("final_model"):
        counts[FINAL] = last["members"]
    by_member: dict[str, dict[str, Tensor]] = {}
    for key, value in tensors.items():
        owner, _, name = key.partition(".")
        by_member.setdefault(owner, {})[name] = value
    members: dict[int, list[Fitted]] = {}
    with located(f"{path}: does not fit {CONFIG}"):
        for seed, count in counts.items():
            keys = [run_key(seed, member) for member in range(count)]
            first = by_member.get(keys[0], {})  # which has what all members share
            each = [{**first, **by_member.pop(key, {})} for key in keys]
            members[seed] = [
                learner.fitted.from_tensors(learner, task, encoding, one) for one in each
            ]
        if by_member:
            raise LookHopsError(f"it also has tensors of {next(iter(by_member))!r}")
    _check_hash(path, content, config["weights_sha256"], "train again")
    fitted = {
        seed: tensors[key] for seed in members if (key := f"{run_key(seed, 0)}.{FITTED}") in tensors
    }
    reference, path = None, folder / REFERENCE
    if current(path).is_file():
        content = read_bytes(path)
        _check_hash(path, content, config["reference_sha256"], "remove the file")
        with located(str(path)):
            reference = Reference.from_tensors(unpack_tensors(content, path)[0], task)
    return Checkpoint(folder, config, learner, encoding, task, members, fitted, reference)


def _check_hash(path: Path, content: bytes, expected: str, otherwise: str) -> None:
    if hashlib.sha256(content).hexdigest() != expected:
        what = "the weights that" if path.name == WEIGHTS else "what"
        raise LookHopsError(
            f"{path}: not {what} {CONFIG} describes; finish the training with "
            f"`lookhops train ... --resume`, or {otherwise}."
        )
