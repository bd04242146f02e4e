"""A trained model as a folder: ``model.safetensors``, ``config.json``, two tables, a reference.

``history.csv`` has a row for each epoch, ``predictions.csv`` one for each test graph of a seed,
``reference.safetensors`` what new graphs are compared with.
``config.json`` holds the hashes of the others. All of them appear, and replace those of an earlier
model, in one step (:func:`~lookhops.files.changing`): who reads meanwhile sees one model or the
other.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor

from lookhops import __version__
from lookhops.datasets.splits import Split
from lookhops.encoding import Encoding
from lookhops.encoding.learnt import Learnt
from lookhops.errors import LookHopsError
from lookhops.files import (
    changing,
    current,
    pack_tensors,
    read_bytes,
    read_json,
    unpack_tensors,
    write_bytes,
    write_json,
)
from lookhops.graphs import Graphs
from lookhops.graphs.column_finder import as_read
from lookhops.models.evaluation import evaluate_runs, history_csv, predictions_csv
from lookhops.models.graph_counts import check_graph_counts, graph_counts
from lookhops.models.records import Machine, RunRecord, versions
from lookhops.models.reference import Reference
from lookhops.nn import Architecture, GraphNetwork
from lookhops.options import AS_USUAL, Protocol, Reading
from lookhops.schema import AtLeast, Count, LabelSize, NotNegative, Positive, located, read
from lookhops.tasks import Calibration, Classification, Task, task_from_dict
from lookhops.training.randomness import FINAL
from lookhops.training.trainer import Run, run_key

FORMAT = "lookhops-model-1"
WEIGHTS, CONFIG, HISTORY = "model.safetensors", "config.json", "history.csv"
PREDICTIONS, REFERENCE = "predictions.csv", "reference.safetensors"
#: The hop information that chose k, where it was measured.
INFORMATION = "information.json"
#: Begins the names of tensors that are no weights: what a network learnt to be told.
LEARNT = "learnt."
#: Of tasks that need it to answer: what was taken from the training part.
FITTED = "fitted"

T = TypeVar("T")

#: What ``config.json`` holds; a name with ``?`` may be missing, as in folders of earlier versions.
DATA = {
    **dict.fromkeys(("name", "featuriser", "fingerprint", "splits"), str),
    "graphs": Count,
    "num_features": LabelSize,
    "label_sizes": Sequence[LabelSize],
    "class_names": Sequence[str],
}
METRICS = {
    **dict.fromkeys(("seeds", "summary"), Mapping[str, Mapping[str, Any]]),
    "confusion?": Sequence[Sequence[Count]],
}
CONFIG_TYPE = AtLeast(
    {
        "architecture": Architecture,
        "protocol": Protocol,
        "data": AtLeast(DATA),
        "encoding?": Encoding,
        "task?": Mapping[str, Any],
        "versions": Mapping[str, str],
        "machine": Machine,
        "parameters": Count,
        "seconds_per_epoch": NotNegative | None,
        **dict.fromkeys(("epochs", "best_epoch"), Mapping[str, Count]),
        "members?": Mapping[str, Positive],
        "final?": bool,
        "final_model?": AtLeast(dict.fromkeys(("epochs", "graphs", "members"), Positive)),
        "metrics": AtLeast(METRICS),
        **dict.fromkeys(("format", "weights_sha256"), str),
        **dict.fromkeys(("history_sha256?", "predictions_sha256?", "reference_sha256?"), str),
        **dict.fromkeys(("stopped?", "command?"), str),
        "reading?": Mapping[str, Any],
    }
)


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
        "architecture": _plain(architecture),
        "protocol": _plain(protocol),
        "data": {
            "name": graphs.name,
            "featuriser": graphs.featuriser,
            "num_features": graphs.num_features,
            "label_sizes": list(graphs.label_sizes),
            "graphs": len(graphs),
            "class_names": list(graphs.class_names),
            "fingerprint": graphs.fingerprint,
            "splits": digest.hexdigest()[:16],
        },
        "encoding": Encoding.fit(graphs, architecture.reads_edges).to_dict(),
    }


def _plain(config: Architecture | Protocol) -> dict[str, Any]:
    """A configuration as JSON gives it back."""
    values = asdict(config)
    return {
        key: list(value) if isinstance(value, tuple) else value for key, value in values.items()
    }


def difference(stored: Mapping[str, Any], given: Mapping[str, Any]) -> str:
    """In words, where two settings differ; empty where they do not."""
    found = []
    last = [settings.get("final", False) for settings in (stored, given)]
    if last[0] != last[1]:
        found.append("final {} there, {} here".format(*last))
    kinds: dict[str, Any] = {"architecture": Architecture, "protocol": Protocol}
    for part in ("architecture", "protocol", "data"):
        there, here = stored.get(part, {}), given[part]
        if part in kinds:  # options that came later have their defaults
            with suppress(LookHopsError):
                there = _plain(read(kinds[part], there))
        for key in {**here, **there}:
            if there.get(key) != here.get(key):
                found.append(f"{key} {there.get(key)!r} there, {here.get(key)!r} here")
    return "; ".join(found)


# -------------------------------------------------------------------- writing


def save_model(
    folder: Path,
    runs: Sequence[Run],
    settings: Mapping[str, Any],
    graphs: Graphs,
    task: Task,
    device: torch.device,
    *,
    stopped: str | None = None,
    command: str | None = None,
    reading: Reading = AS_USUAL,
    information: Mapping[str, Any] | None = None,
    final: Run | None = None,
) -> dict[str, Any]:
    """Write the folder's files, in one step for who reads it; what ``config.json`` holds.

    Args:
        folder: Where.
        runs: One a seed, with weights.
        settings: What :func:`settings_of` gave.
        graphs: What it was trained and tested on.
        task: What was asked.
        device: Where it was trained.
        stopped: Why the training ended before its time, if it did.
        command: The command line that asked for it, for whoever wants it again.
        reading: How the graphs were read.
        information: The hop information that chose k, if it was measured.
        final: The run on all graphs, if there was one.
    """
    networks = [one for run in runs for one in run.networks]
    weights: dict[str, Tensor] = {}
    for run in (*runs, final) if final else runs:
        for one in run.networks:
            weights |= {f"{one.key}.{name}": value for name, value in one.weights.items()}
        weights |= {f"{run.key}.{LEARNT}{k}": v for k, v in run.learnt.tensors().items()}
        if task.num_fitted and run.fitted is not None:
            weights[f"{run.key}.{FITTED}"] = run.fitted
    content = pack_tensors(weights, {"format": FORMAT})
    metrics = evaluate_runs(runs, graphs, task, device)
    calibrations = {run.seed: _calibration(metrics, run.seed) for run in runs}
    answers = predictions_csv(runs, graphs, task, calibrations).encode()
    history = history_csv(runs).encode()
    splits = [run.split for run in ((*runs, final) if final else runs)]
    compared = Reference.of(graphs, splits, _nonconformity(runs, graphs, task, calibrations))
    reference = pack_tensors(compared.tensors(), {})
    seconds = [row["seconds"] for one in networks for row in one.history]
    config = {
        "format": FORMAT,
        **settings,
        "task": task.to_dict(),
        "versions": versions(),
        "machine": asdict(Machine.here(device)),
        "parameters": sum(value.numel() for value in runs[0].weights.values()),
        "seconds_per_epoch": float(np.mean(seconds)) if seconds else None,
        "epochs": {str(run.seed): len(run.history) for run in runs},
        "best_epoch": {str(run.seed): run.best_epoch for run in runs},
        "members": {str(run.seed): len(run.networks) for run in runs},
        **({"final_model": _about_final(final)} if final else {}),
        "metrics": metrics,
        "facts": graph_counts(graphs),
        "weights_sha256": hashlib.sha256(content).hexdigest(),
        **({"stopped": stopped} if stopped else {}),
        **({"command": command} if command else {}),
        "reading": as_read(reading, graphs).to_dict(),
        "predictions_sha256": hashlib.sha256(answers).hexdigest(),
        "reference_sha256": hashlib.sha256(reference).hexdigest(),
        "history_sha256": hashlib.sha256(history).hexdigest(),
    }
    written = {WEIGHTS: content, HISTORY: history, PREDICTIONS: answers, REFERENCE: reference}
    with changing(folder, without=[INFORMATION]) as new:
        for name, each in written.items():
            write_bytes(new / name, each)
        if information is not None:
            write_json(new / INFORMATION, information)
        write_json(new / CONFIG, config)
    return config


def _calibration(metrics: Mapping[str, Any], seed: int) -> Calibration:
    """What turns a seed's outputs into answers: it stands among the seed's metrics.

    Of the networks that were trained on all graphs it is the median of the seeds'.
    """
    if seed != FINAL:
        return metrics["seeds"].get(str(seed), {})
    each = list(metrics["seeds"].values())
    names = [name for name, value in each[0].items() if isinstance(value, float)]
    values = {name: [one.get(name) for one in each] for name in names}
    return {name: float(np.median(own)) for name, own in values.items() if None not in own}


def _about_final(run: Run) -> dict[str, Any]:
    """What is said of the networks that were trained on all graphs."""
    counts = {"epochs": len(run.history), "graphs": len(run.split.train)}
    return {**counts, "members": len(run.networks)}


def _nonconformity(
    runs: Sequence[Run], graphs: Graphs, task: Task, calibrations: Mapping[int, Calibration]
) -> dict[int, list[Tensor]]:
    """How far the truth of each seed's validation graphs is from its answers."""
    target = task.targets(graphs).cpu()
    nonconformity: dict[int, list[Tensor]] = {}
    for run in runs:
        if not run.predictions:  # its training was stopped before its time
            continue
        answers = task.answers(run.predictions["val"], calibrations[run.seed])
        nonconformity[run.seed] = [
            torch.from_numpy(
                head.task.nonconformity(
                    answers[:, head.channels], head.target(target[run.split.val])
                )
            )
            for head in task.heads
        ]
    return nonconformity


# -------------------------------------------------------------------- reading


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
        learnt: What each seed's networks learnt to be told.
        fitted: What the task took from each seed's training part, where answers need it.
        reference: What new graphs are compared with; folders of earlier versions have none.
    """

    folder: Path
    config: dict[str, Any]
    architecture: Architecture
    encoding: Encoding
    task: Task
    weights: dict[int, list[dict[str, Tensor]]]
    learnt: dict[int, Learnt]
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
        return _calibration(self.config["metrics"], seed)

    @property
    def reading(self) -> Reading:
        """How the graphs were read that it was trained on."""
        return Reading.from_dict(self.config.get("reading", {}))

    def network(self, seed: int) -> GraphNetwork:
        """The network of a seed, not trained yet."""
        sizes = {**self.learnt[seed].sizes, **self.encoding.sizes}
        width, outputs = self.encoding.width, self.task.out_channels
        return GraphNetwork.from_architecture(width, outputs, self.architecture, **sizes)

    def model(self, seed: int, member: int = 0) -> GraphNetwork:
        """A trained network of a seed, ready to predict."""
        model, weights = self.network(seed), self.weights[seed][member]
        model.to(next(iter(weights.values())).dtype).load_state_dict(weights)
        return model.eval()

    def models(self, seed: int) -> list[GraphNetwork]:
        """The trained networks of a seed, whose answers are averaged."""
        return [self.model(seed, member) for member in range(len(self.weights[seed]))]


def load_model(folder: Path | str) -> Checkpoint:
    """Read a model folder and check that its parts fit each other and this version."""
    return one_model(Path(folder), _load)


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


def _load(folder: Path) -> Checkpoint:
    config = read_config(folder)
    path = folder / WEIGHTS
    content = read_bytes(path)
    tensors, _ = unpack_tensors(content, path)
    data = config["data"]
    with located(str(folder / CONFIG)):
        earlier = {"kind": Classification.kind, "class_names": data["class_names"]}
        task = task_from_dict(config.get("task", earlier))
        architecture = read(Architecture, config["architecture"])
        named = "encoding" in config
        encoding = Encoding.from_dict(config["encoding"]) if named else Encoding.unnamed(data)
        parts = architecture, encoding, task
        found = Checkpoint(folder, config, *parts, {}, {}, {}, _read_reference(folder, config))
        expected: dict[str, Tensor] = {}
        members: dict[int, list[str]] = {}
        for seed, count in _networks(config).items():
            first = run_key(seed, 0)
            found.learnt[seed] = _learnt(tensors, first)
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


def _learnt(tensors: dict[str, Tensor], key: str) -> Learnt:
    """What a network learnt to be told, taken out of a folder's tensors."""
    prefix = f"{key}.{LEARNT}"
    own = {key: tensors.pop(key) for key in list(tensors) if key.startswith(prefix)}
    return Learnt.from_tensors({key[len(prefix) :]: value for key, value in own.items()})


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
        for name in ("epochs", "best_epoch"):
            if strange := [seed for seed in config[name] if not seed.isdecimal()]:
                raise LookHopsError(f"{name}.{strange[0]} is not a seed")
    except LookHopsError as error:
        raise LookHopsError(
            f"{path}: damaged, not what `lookhops train` wrote: {error}."
        ) from error
    return config


def run_records(config: Mapping[str, Any]) -> tuple[RunRecord, ...]:
    """The records of the seeds that were tested; those of earlier versions lack some metrics."""
    shared = {name: config[name] for name in ("versions", "machine")}
    train = int(config["protocol"]["fractions"][0] * config["data"]["graphs"])
    found = []
    for seed, metrics in config["metrics"]["seeds"].items():
        epochs = config["epochs"][seed]
        known = {
            "epochs": epochs,
            "best_epoch": config["best_epoch"][seed],
            "parameters": config["parameters"],
            "seconds": (config["seconds_per_epoch"] or 0.0) * epochs,
            "train_graphs": train,
        }
        values = {"seed": int(seed), "metrics": {**known, **metrics}, **shared}
        found.append(read(RunRecord, values, f"metrics.seeds.{seed}"))
    return tuple(found)


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
