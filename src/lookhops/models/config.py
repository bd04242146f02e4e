"""What ``config.json`` of a model folder holds, and the names of the folder's other files."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, TypeVar

import numpy as np

from lookhops import __version__
from lookhops.core.errors import LookHopsError
from lookhops.core.files import current, read_bytes, read_json
from lookhops.core.options import Protocol
from lookhops.core.reading import Reading
from lookhops.core.schema import (
    AtLeast,
    Count,
    NotNegative,
    Positive,
    Range,
    Share,
    read,
    refuse_missing,
)
from lookhops.encoding import Encoding
from lookhops.learners import Learner, learner_from_dict
from lookhops.learners.registry import SAVED
from lookhops.runs.record import Machine, RunRecord
from lookhops.sources.counts import check_graph_counts
from lookhops.tasks import Calibration, Task, task_from_dict
from lookhops.tasks.task import Head
from lookhops.training.runs import FINAL

FORMAT = "lookhops-model-2"
WEIGHTS, CONFIG = "model.safetensors", "config.json"
#: A row for each epoch, and one for each test graph of a seed.
HISTORY, PREDICTIONS = "history.csv", "predictions.csv"
#: What new graphs are compared with.
REFERENCE = "reference.safetensors"
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

#: Where ``config.json`` has the hash of all else that it says; an earlier folder has none.
OF_CONFIG = "config_sha256"

T = TypeVar("T")

#: What ``config.json`` holds; a name with ``?`` may be missing.
DATA = {
    **dict.fromkeys(("name", "featuriser", "fingerprint", "splits"), str),
    "graphs": Count,
    "class_names": Sequence[str],
}
STATISTICS = {"mean": float, "std": NotNegative, "values": Sequence[float]}
OVER_SEEDS: Any = AtLeast({**STATISTICS, "interval?": tuple[float, float] | None})
OVERVIEW = {"confusion?": Sequence[Sequence[Count]], "in_sets?": Sequence[Count]}
OF_TARGET: Any = AtLeast(OVERVIEW)
METRICS = {
    "seeds": Mapping[str, Mapping[str, Any]],
    "summary": Mapping[str, OVER_SEEDS],
    "targets?": Mapping[str, OF_TARGET],
    **OVERVIEW,
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
        "versions": AtLeast(dict.fromkeys(("lookhops", "torch"), str)),
        "machine": Machine,
        "untested?": Mapping[str, Mapping[str, Count | None]],
        "members": Mapping[str, Positive],
        "final": bool,
        "final_model?": AtLeast(dict.fromkeys(("epochs", "graphs", "members"), Positive)),
        "metrics": AtLeast(METRICS),
        "commonest?": Mapping[str, str],
        **dict.fromkeys(("format", *CHECKSUMS), str),
        **dict.fromkeys(("stopped?", "command?", f"{OF_CONFIG}?"), str),
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
        return _checked(config)
    except LookHopsError as error:
        raise LookHopsError(
            f"{path}: damaged, not what `lookhops train` wrote: {error}."
        ) from error


def _checked(config: dict[str, Any]) -> dict[str, Any]:
    """All of ``config.json``, its parts made once and held against each other; with its totals."""
    read(CONFIG_TYPE, config)
    versions: Mapping[str, str] = read(Mapping[str, str], config["versions"], "versions")
    learner, task = learner_in(config), task_in(config)
    encoding = Encoding.from_dict(config["encoding"])
    protocol = read(Protocol, config["protocol"], "protocol")
    Reading.from_dict(config["reading"])
    if versions.get("lookhops") == __version__:  # an earlier one may know fewer options
        for name, part in (("learner", learner), ("task", task), ("encoding", encoding)):
            refuse_missing(config[name], part.to_dict(), name)
        refuse_missing(config["protocol"], asdict(protocol), "protocol")
    if (encoding.edges is not None) != learner.reads_edges:
        raise LookHopsError(f"encoding.edges is not what a {learner.name} of these options reads")
    if "facts" in config:
        check_graph_counts(config["facts"], "facts")
    metrics, names = config["metrics"], config["data"]["class_names"]
    if task.class_names and task.class_names != tuple(names):
        raise LookHopsError("data.class_names are not those of the task")
    for head in task.heads:
        if head.name and head.name not in metrics.get("targets", ()):
            raise LookHopsError(f"metrics.targets.{head.name} is missing")
        overview = metrics["targets"][head.name] if head.name else metrics
        classes, confusion = len(head.task.class_names), overview.get("confusion")
        if confusion is not None and {len(confusion), *map(len, confusion)} != {classes}:
            raise LookHopsError(f"metrics: confusion is not a table of {classes} by {classes}")
        if len(overview.get("in_sets", [0] * classes)) != classes:
            raise LookHopsError(f"metrics: in_sets is not of {classes} classes")
    calibrated = [head.key(name) for head in task.heads for name in head.task.calibrated]
    for seed, measured in metrics["seeds"].items():
        if seed not in map(str, protocol.seeds):
            raise LookHopsError(f"metrics.seeds.{seed} is not a seed of the protocol")
        for name in (*calibrated, *metrics["summary"]):
            if name not in measured:
                raise LookHopsError(f"metrics.seeds.{seed}.{name} is missing")
        for metric in task.metrics:
            read(AtLeast({f"{metric.name}?": float | None}), measured, f"metrics.seeds.{seed}")
    run_records(config)
    if config.get(OF_CONFIG, found := hash_of_config(config)) != found:
        raise LookHopsError("it does not fit its checksum")
    return with_totals(config)


def hash_of_config(config: Mapping[str, Any]) -> str:
    """The hash of all that ``config.json`` says but that hash."""
    others = {name: value for name, value in config.items() if name != OF_CONFIG}
    text = json.dumps(others, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode(errors="replace")).hexdigest()  # as it is written


def with_totals(config: Mapping[str, Any]) -> dict[str, Any]:
    """What ``config.json`` holds, with what its records say of all seeds.

    That is the ``epochs`` and the ``best_epoch`` of each, the ``parameters`` of a network and the
    mean ``seconds_per_epoch``.
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
