"""A trained model as a folder: what writes it, and what reads it, each part checked.

All files of a folder appear, and replace those of an earlier model, in one step
(:func:`~lookhops.core.files.changing`): a reader sees one model or the other.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from lookhops.core.arrays import resolving
from lookhops.core.errors import LookHopsError
from lookhops.core.files import (
    changing,
    pack_tensors,
    write_bytes,
    write_json,
)
from lookhops.core.reading import AS_USUAL, Reading
from lookhops.core.tables import csv_text
from lookhops.graphs import Graphs
from lookhops.learners.learner import shared_tensors
from lookhops.models.card import model_card
from lookhops.models.config import (
    CARD,
    CHECKSUMS,
    CONFIG,
    FORMAT,
    HISTORY,
    INFORMATION,
    OF_CONFIG,
    PREDICTIONS,
    REFERENCE,
    WEIGHTS,
    calibration_of,
    commonest_key,
    hash_of_config,
    learner_in,
    with_totals,
)
from lookhops.models.reference import Reference
from lookhops.runs.record import Machine, about_training, conformal_scores, evaluate_runs, versions
from lookhops.sources.counts import graph_counts
from lookhops.sources.rdkit.descriptors import rdkit_version
from lookhops.tasks import Calibration, Task
from lookhops.training.runs import FINAL, NotFinite, Run

#: Columns of a history in which not one epoch was finished.
LOSSES = ("epoch", "train_loss", "val_loss", "seconds")


@dataclass(frozen=True)
class Provenance:
    """Where a model comes from, kept with it; nothing in it decides the training.

    Args:
        reading: How the graphs were read: new ones are read so too.
        command: The command line that asked for the model, for whoever wants it again.
        information: The hop information that chose k, as JSON can hold it.
    """

    reading: Reading = AS_USUAL
    command: str | None = None
    information: Mapping[str, Any] | None = None


UNKNOWN = Provenance()


def save_model(
    folder: Path,
    every: Sequence[Run],
    settings: Mapping[str, Any],
    graphs: Graphs,
    task: Task,
    device: torch.device,
    provenance: Provenance = UNKNOWN,
    stopped: NotFinite | None = None,
) -> dict[str, Any]:
    """Write the folder's files in one step; what ``config.json`` holds.

    Args:
        every: The runs, one a seed, with weights, and perhaps that on all graphs.
        stopped: What ended the training before its time, if anything did.
    """
    runs = [run for run in every if run.seed != FINAL]
    metrics = evaluate_runs(runs, graphs, task, device)
    calibrations = {run.seed: calibration_of(metrics, run.seed) for run in runs}
    target = task.targets(graphs).cpu()
    scores = {
        run.seed: conformal_scores(run, task, target[run.split.val], calibrations[run.seed])
        for run in runs
        if run.predictions  # else its training was stopped before its time
    }
    learner, splits = learner_in(settings), [run.split for run in every]
    descriptors = learner.encoding(graphs).descriptors
    reference = Reference.of(graphs, task, splits, scores, learner.ignores_edges, descriptors)
    written = {
        WEIGHTS: pack_tensors(_weights(every, task), {"format": FORMAT}),
        HISTORY: history_csv(runs).encode(),
        PREDICTIONS: predictions_csv(runs, graphs, task, calibrations).encode(),
        REFERENCE: pack_tensors(reference.tensors, {}),
    }
    config = {
        "format": FORMAT,
        **settings,
        "task": task.to_dict(),
        "versions": versions() | ({"rdkit": rdkit_version()} if descriptors else {}),
        "machine": asdict(Machine.here(device)),
        "members": {str(run.seed): len(run.networks) for run in runs},
        "facts": graph_counts(graphs),
        "reading": _as_read(provenance.reading, graphs).to_dict(),
        **_where_known(every, graphs, task, provenance),
        "metrics": metrics,
        **({"stopped": str(stopped)} if stopped else {}),
        **{key: hashlib.sha256(written[name]).hexdigest() for key, name in CHECKSUMS.items()},
    }
    config[OF_CONFIG] = hash_of_config(config)
    complete = with_totals(config)
    written[CARD] = model_card(complete, task, reference.limit).encode()
    with changing(folder, without=[INFORMATION]) as new:
        for name, content in written.items():
            write_bytes(new / name, content)
        if provenance.information is not None:
            write_json(new / INFORMATION, provenance.information)
        write_json(new / CONFIG, config)
    return complete


def _where_known(
    every: Sequence[Run], graphs: Graphs, task: Task, provenance: Provenance
) -> dict[str, Any]:
    """What ``config.json`` says only where there is something to say."""
    runs = [run for run in every if run.seed != FINAL]
    found: dict[str, Any] = {
        "untested": {str(run.seed): about_training(run) for run in runs if not run.predictions},
        "command": provenance.command,
    }
    final = [run for run in every if run.seed == FINAL]
    for run in final:
        sizes = {"epochs": len(run.history), "graphs": len(run.split.train)}
        found["final_model"] = {**sizes, "members": len(run.networks)}
    found["commonest"] = _commonest(final or runs, graphs, task)
    return {name: value for name, value in found.items() if value}


def _weights(runs: Sequence[Run], task: Task) -> dict[str, Tensor]:
    """What was fitted for each member by its key; what members share stands with the first."""
    weights: dict[str, Tensor] = {}
    for run in runs:
        for one in run.networks:
            weights |= {f"{one.key}.{name}": value for name, value in one.weights.items()}
        shared = shared_tensors(run, task)
        weights |= {f"{run.key}.{name}": value for name, value in shared.items()}
    return weights


def _commonest(runs: Sequence[Run], graphs: Graphs, task: Task) -> dict[str, str]:
    """Of each target of classes, the one that is commonest in the training parts of these runs."""
    target = task.targets(graphs).cpu()
    trained = torch.cat([target[run.split.train] for run in runs])
    heads = {commonest_key(head): head for head in task.heads}
    counts = {key: one.task.count_labels(one.target(trained)) for key, one in heads.items()}
    return {key: max(each, key=each.__getitem__) for key, each in counts.items() if each}


def _as_read(reading: Reading, graphs: Graphs) -> Reading:
    """A reading that also says which features of these graphs are categories and which numbers.

    A later table is then read in the same way, although its values alone may look otherwise: of a
    few graphs a column of whole numbers has few. Where all columns were features, these are named.
    """
    read = [name for name in graphs.whole.names.features if name in graphs.columns]
    if reading.features is not None and not any("," in name for name in read):
        reading = replace(reading, features=",".join(read) or None)
    if graphs.featuriser:
        return reading
    labels = {*graphs.nodes.label_names, *graphs.edges.label_names}
    numbers = {*graphs.nodes.number_names, *graphs.edges.number_names}
    clear = {name for name in labels ^ numbers if "," not in name}
    categories, numeric = (",".join(sorted(names & clear)) or None for names in (labels, numbers))
    return replace(reading, categories=categories, numbers=numeric)


def history_csv(runs: Sequence[Run]) -> str:
    """Every epoch of every seed, one line each; of several members, of each."""
    keys = ("seed", "member") if any(run.members for run in runs) else ("seed",)
    columns = next((list(run.history[0]) for run in runs if run.history), list(LOSSES))
    rows = [
        (*(getattr(one, key) for key in keys), *(row[name] for name in columns))
        for run in runs
        for one in run.networks
        for row in one.history
    ]
    return csv_text((*keys, *columns), rows)


def predictions_csv(
    runs: Sequence[Run], graphs: Graphs, task: Task, calibrations: Mapping[int, Calibration]
) -> str:
    """The answers to the test part of every seed, one line a graph.

    Columns: seed, graph (its number from 0), id, nodes, and the task's: of classes, ``class`` (the
    true one) and the calibrated probability of each, ``p(NAME)``; of a number, the one that was
    measured and the one that is answered.
    """
    target, ids = task.targets(graphs).tolist(), graphs.ids
    nodes = graphs.nodes_per_graph.tolist()
    rows = []
    for run in runs:
        if "test" not in run.predictions:  # its training was stopped before its time
            continue
        answers = task.answers(run.predictions["test"], calibrations[run.seed])
        written = [resolving(column) for column in answers.numpy().T]
        for number, row in zip(run.split.test.tolist(), answers.tolist(), strict=True):
            known = (run.seed, number, ids[number], nodes[number], *task.labels(target[number]))
            rows.append((*known, *(form % value for form, value in zip(written, row, strict=True))))
    return csv_text(("seed", "graph", "id", "nodes", *task.columns), rows)


def check_hash(path: Path, content: bytes, expected: str, otherwise: str = "train again") -> None:
    """Refuse a file that is not the one that the model was saved with."""
    if hashlib.sha256(content).hexdigest() != expected:
        names = {WEIGHTS: "weights", HISTORY: "history", PREDICTIONS: "predictions"}
        what = f"the {names[path.name]} that" if path.name in names else "what"
        raise LookHopsError(
            f"{path}: not {what} {CONFIG} describes; finish the training with "
            f"`lookhops train ... --resume`, or {otherwise}."
        )
