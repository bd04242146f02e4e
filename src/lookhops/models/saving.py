"""What decides a training, and writing the model that came out of it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from lookhops.datasets.splits import Split
from lookhops.encoding import Encoding
from lookhops.errors import LookHopsError
from lookhops.files import changing, pack_tensors, write_bytes, write_json
from lookhops.graphs import Graphs
from lookhops.graphs.column_finder import as_read
from lookhops.models.card import model_card
from lookhops.models.evaluation import evaluate_runs, history_csv, predictions_csv
from lookhops.models.folder import (
    CARD,
    CONFIG,
    FITTED,
    FORMAT,
    HISTORY,
    INFORMATION,
    LEARNT,
    PREDICTIONS,
    REFERENCE,
    WEIGHTS,
    calibration_of,
    with_totals,
)
from lookhops.models.graph_counts import graph_counts
from lookhops.models.records import Machine, trained, versions
from lookhops.models.reference import Reference
from lookhops.nn import Architecture
from lookhops.options import AS_USUAL, Protocol, Reading
from lookhops.schema import read
from lookhops.tasks import Calibration, Task
from lookhops.training.runs import Run


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
    every = [*runs, final] if final else list(runs)
    content = pack_tensors(_weights(every, task), {"format": FORMAT})
    metrics = evaluate_runs(runs, graphs, task, device)
    calibrations = {run.seed: calibration_of(metrics, run.seed) for run in runs}
    answers = predictions_csv(runs, graphs, task, calibrations).encode()
    history = history_csv(runs).encode()
    far = _nonconformity(runs, graphs, task, calibrations)
    ignores_edges = settings["architecture"].get("edges") == "ignore"
    compared = Reference.of(graphs, [run.split for run in every], far, ignores_edges)
    reference = pack_tensors(compared.tensors(), {})
    untested = {str(run.seed): trained(run) for run in runs if not run.predictions}
    config = {
        "format": FORMAT,
        **settings,
        "task": task.to_dict(),
        "versions": versions(),
        "machine": asdict(Machine.here(device)),
        **({"untested": untested} if untested else {}),
        "members": {str(run.seed): len(run.networks) for run in runs},
        **({"final_model": _about_final(final)} if final else {}),
        "metrics": metrics,
        "facts": graph_counts(graphs),
        "weights_sha256": hashlib.sha256(content).hexdigest(),
        **{key: said for key, said in (("stopped", stopped), ("command", command)) if said},
        "reading": as_read(reading, graphs).to_dict(),
        "predictions_sha256": hashlib.sha256(answers).hexdigest(),
        "reference_sha256": hashlib.sha256(reference).hexdigest(),
        "history_sha256": hashlib.sha256(history).hexdigest(),
    }
    written = {WEIGHTS: content, HISTORY: history, PREDICTIONS: answers, REFERENCE: reference}
    written[CARD] = model_card(with_totals(config), task, compared.limit).encode()
    with changing(folder, without=[INFORMATION]) as new:
        for name, each in written.items():
            write_bytes(new / name, each)
        if information is not None:
            write_json(new / INFORMATION, information)
        write_json(new / CONFIG, config)
    return with_totals(config)


def _weights(runs: Sequence[Run], task: Task) -> dict[str, Tensor]:
    """What the networks learnt, and what was fitted for each seed, by its key."""
    weights: dict[str, Tensor] = {}
    for run in runs:
        for one in run.networks:
            weights |= {f"{one.key}.{name}": value for name, value in one.weights.items()}
        weights |= {f"{run.key}.{LEARNT}{k}": v for k, v in run.learnt.tensors().items()}
        if task.num_fitted and run.fitted is not None:
            weights[f"{run.key}.{FITTED}"] = run.fitted
    return weights


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
        answers = task.answers(run.predictions["unseen"], calibrations[run.seed])
        nonconformity[run.seed] = [
            torch.from_numpy(
                head.task.nonconformity(
                    answers[:, head.channels], head.target(target[run.split.val])
                )
            )
            for head in task.heads
        ]
    return nonconformity
