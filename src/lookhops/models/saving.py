"""Writing the model that came out of a training."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from lookhops.core.files import changing, write_bytes, write_json
from lookhops.core.options import Reading
from lookhops.core.tensor_files import pack_tensors
from lookhops.graphs import Graphs
from lookhops.learners.learner import shared_tensors
from lookhops.models.card import model_card
from lookhops.models.folder import (
    CARD,
    CHECKSUMS,
    CONFIG,
    FORMAT,
    HISTORY,
    INFORMATION,
    PREDICTIONS,
    REFERENCE,
    WEIGHTS,
    calibration_of,
    commonest_key,
    learner_in,
    with_totals,
)
from lookhops.models.reference import Reference
from lookhops.runs.evaluation import evaluate_runs, history_csv, predictions_csv
from lookhops.runs.record import Machine, about_training, versions
from lookhops.runs.settings import UNKNOWN, Provenance
from lookhops.sources.graph_counts import graph_counts
from lookhops.tasks import Calibration, Task
from lookhops.training.runs import NotFinite, Run


@dataclass(frozen=True, eq=False)
class Trained:
    """What came out of a training.

    Args:
        runs: One a seed, with weights.
        final: The run on all graphs, if there was one.
        stopped: What ended the training before its time, if anything did.
    """

    runs: Sequence[Run]
    final: Run | None = None
    stopped: NotFinite | None = None


def save_model(
    folder: Path,
    trained: Trained,
    settings: Mapping[str, Any],
    graphs: Graphs,
    task: Task,
    device: torch.device,
    provenance: Provenance = UNKNOWN,
) -> dict[str, Any]:
    """Write the folder's files, in one step for who reads it; what ``config.json`` holds.

    Args:
        folder: Where.
        trained: What came out of the training.
        settings: What :func:`~lookhops.runs.settings.settings_of` gave.
        graphs: What it was trained and tested on.
        task: What was asked.
        device: Where it was trained.
        provenance: What else is kept.
    """
    runs, final = trained.runs, trained.final
    every = [*runs, final] if final else list(runs)
    metrics = evaluate_runs(runs, graphs, task, device)
    calibrations = {run.seed: calibration_of(metrics, run.seed) for run in runs}
    far = _nonconformity(runs, graphs, task, calibrations)
    ignores_edges = learner_in(settings).ignores_edges
    reference = Reference.of(graphs, [run.split for run in every], far, ignores_edges)
    written = {
        WEIGHTS: pack_tensors(_weights(every, task), {"format": FORMAT}),
        HISTORY: history_csv(runs).encode(),
        PREDICTIONS: predictions_csv(runs, graphs, task, calibrations).encode(),
        REFERENCE: pack_tensors(reference.tensors(), {}),
    }
    untested = {str(run.seed): about_training(run) for run in runs if not run.predictions}
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
        **_commonest([final] if final else runs, graphs, task),
        "facts": graph_counts(graphs),
        **({"stopped": str(trained.stopped)} if trained.stopped else {}),
        **({"command": provenance.command} if provenance.command else {}),
        "reading": _as_read(provenance.reading, graphs).to_dict(),
        **{key: hashlib.sha256(written[name]).hexdigest() for key, name in CHECKSUMS.items()},
    }
    written[CARD] = model_card(with_totals(config), task, reference.limit).encode()
    with changing(folder, without=[INFORMATION]) as new:
        for name, content in written.items():
            write_bytes(new / name, content)
        if provenance.information is not None:
            write_json(new / INFORMATION, provenance.information)
        write_json(new / CONFIG, config)
    return with_totals(config)


def _weights(runs: Sequence[Run], task: Task) -> dict[str, Tensor]:
    """What was fitted for each member by its key; what members share stands with the first."""
    weights: dict[str, Tensor] = {}
    for run in runs:
        for one in run.networks:
            weights |= {f"{one.key}.{name}": value for name, value in one.weights.items()}
        shared = shared_tensors(run, task)
        weights |= {f"{run.key}.{name}": value for name, value in shared.items()}
    return weights


def _about_final(run: Run) -> dict[str, Any]:
    """What is said of the networks that were trained on all graphs."""
    counts = {"epochs": len(run.history), "graphs": len(run.split.train)}
    return {**counts, "members": len(run.networks)}


def _commonest(runs: Sequence[Run], graphs: Graphs, task: Task) -> dict[str, dict[str, str]]:
    """Of each target of classes, the one that is commonest in the training parts of these runs."""
    target = task.targets(graphs).cpu()
    trained = torch.cat([target[run.split.train] for run in runs])
    found = {
        commonest_key(head): label
        for head in task.heads
        if (label := head.task.commonest_label(head.target(trained))) is not None
    }
    return {"commonest": found} if found else {}


def _nonconformity(
    runs: Sequence[Run], graphs: Graphs, task: Task, calibrations: Mapping[int, Calibration]
) -> dict[int, list[Tensor]]:
    """How far the truth of each seed's validation graphs is from its answers."""
    target = task.targets(graphs).cpu()
    nonconformity: dict[int, list[Tensor]] = {}
    for run in runs:
        if not run.predictions:  # its training was stopped before its time
            continue
        outputs = run.predictions.get("unseen", run.predictions["val"])
        answers = task.answers(outputs, calibrations[run.seed])
        nonconformity[run.seed] = [
            torch.from_numpy(
                head.task.nonconformity(
                    answers[:, head.channels], head.target(target[run.split.val])
                )
            )
            for head in task.heads
        ]
    return nonconformity


def _as_read(reading: Reading, graphs: Graphs) -> Reading:
    """A reading that also says which features of these graphs are categories and which numbers.

    A later table is then read in the same way, although its values alone may look otherwise: of a
    few graphs a column of whole numbers has few.
    """
    if graphs.featuriser:
        return reading
    labels = {*graphs.nodes.label_names, *graphs.edges.label_names}
    numbers = {*graphs.nodes.number_names, *graphs.edges.number_names}
    clear = {name for name in labels ^ numbers if "," not in name}
    return replace(
        reading,
        categories=",".join(sorted(labels & clear)) or None,
        numbers=",".join(sorted(numbers & clear)) or None,
    )
