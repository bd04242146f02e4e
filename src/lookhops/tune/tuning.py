"""Tuning into a folder: a search for each outer split, their test parts, the model."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from math import inf
from pathlib import Path
from typing import Any

from lookhops import files
from lookhops.datasets.splits import Split, SplitPlan
from lookhops.errors import LookHopsError
from lookhops.experiments.keys import canonical
from lookhops.experiments.runners import Tell
from lookhops.graphs import Graphs
from lookhops.models.folder import CONFIG
from lookhops.models.records import Machine
from lookhops.models.resumable_training import train_into
from lookhops.models.saving import difference, settings_of
from lookhops.options import AS_USUAL, Protocol, Reading, SearchOptions
from lookhops.tasks import task_of
from lookhops.training.candidates import CandidateTrainer
from lookhops.training.runs import Progress
from lookhops.training.trainer import choose_device, draw_splits
from lookhops.tune.importance import importance
from lookhops.tune.inner import inner_splits
from lookhops.tune.nested import test_outer
from lookhops.tune.record import TUNING, SearchRecord, Tuning
from lookhops.tune.search import Search
from lookhops.tune.space import Candidate, Space
from lookhops.tune.study import StudyFile, best, finished
from lookhops.words import counted

#: The files of a tuning in a model's folder: Optuna's storage, and the runs on the outer splits.
STUDY, STORE = "study.sqlite", "comparison.sqlite"


def tune_into(
    folder: Path | str,
    graphs: Graphs,
    protocol: Protocol | None = None,
    options: SearchOptions | None = None,
    *,
    splits: SplitPlan | None = None,
    device: str = "auto",
    overwrite: bool = False,
    tell: Tell = lambda text, finished: None,
    on_epoch: Callable[[Progress], None] = lambda progress: None,
    command: str | None = None,
    reading: Reading = AS_USUAL,
) -> Tuning:
    """Search for a configuration, measure what that gains, and keep the model in a folder.

    For each outer split (a seed of the protocol) a search of its own chooses a configuration by
    the validation parts of inner splits, which share no graph with the outer test part. When all
    searches have ended, the outer test parts are opened once, for the chosen configurations and
    for the recommended model. The folder then holds the model of the first outer split, trained as
    ``lookhops train`` does: its test part took no part in its choice.

    A call that was interrupted goes on where it was; one with more trials goes on from there.

    Args:
        folder: Where the model goes, with the study (``study.sqlite``), the runs on the outer
            splits (``comparison.sqlite``) and the record (``tuning.json``).
        graphs: Graphs with targets.
        protocol: How to train and to split; by default that of the splits, or the paper's.
        options: How to search.
        splits: The outer splits; by default the protocol's are drawn.
        device: ``cpu``, ``cuda``, or ``auto``: a GPU where there is one.
        overwrite: Begin anew, whatever is in the folder.
        tell: Called with each thing worth telling, and how many trials and runs are finished.
        on_epoch: Called after each epoch of a search and of the folder's model; an exception from
            it, or from ``tell``, ends the tuning.
        command: The command line that asked for it, kept with the model.
        reading: How the graphs were read, kept with the model.
    """
    check_optuna()
    folder, options = Path(folder), options or SearchOptions()
    protocol = protocol or (Protocol() if splits is None else splits.protocol)
    space = Space.parse(options.space, protocol)
    task = task_of(graphs, protocol.class_weights, protocol.loss)
    plan = draw_splits(graphs, task, protocol, splits)
    chosen_device = choose_device(device)
    _prepare(folder, overwrite)
    trainer = CandidateTrainer(
        graphs, task, plan.protocol, chosen_device, chosen_device.type == "cuda", on_epoch
    )
    records = _search_all(folder, plan, space, trainer, options, tell)
    chosen = {one.seed: space.candidate(one.chosen.values) for one in records}
    outer = test_outer(graphs, plan, chosen, folder / STORE, device, tell)
    found = Tuning(
        dataset=graphs.name,
        task=task.kind,
        space=space.to_dict(),
        inner=options.inner,
        searches=tuple(records),
        importance=importance(records, space),
        device=str(Machine.here(chosen_device)),
        **asdict(outer),
    )
    found.write(folder)
    first = plan.of_seeds(plan.protocol.seeds[:1])
    kept: dict[str, Any] = {"device": device, "command": command, "reading": reading}
    _train(folder, graphs, chosen[first.protocol.seeds[0]], first, on_epoch=on_epoch, **kept)
    return found


def _search_all(
    folder: Path,
    plan: SplitPlan,
    space: Space,
    trainer: CandidateTrainer,
    options: SearchOptions,
    tell: Tell,
) -> list[SearchRecord]:
    """A search for each outer split; where time is limited, each has its share of it."""
    records, start = [], time.monotonic()
    for number, seed in enumerate(plan.protocol.seeds, start=1):
        limit = inf if options.time_limit is None else options.time_limit
        until = start + limit * number / len(plan.splits)
        records.append(_search(folder, seed, plan, space, trainer, options, until, tell))
    return records


def check_optuna() -> None:
    """Say in a sentence that Optuna is missing."""
    try:
        import optuna  # noqa: F401
    except ImportError as error:
        raise LookHopsError("Tuning needs Optuna: pip install 'lookhops[tune]'.") from error


def _prepare(folder: Path, overwrite: bool) -> None:
    """See that the folder is empty, or has a tuning to go on with, or may be overwritten."""
    with files.explained(folder):
        files.make_folder(folder)
        if overwrite:
            for name in (TUNING, STORE, STUDY):
                (folder / name).unlink(missing_ok=True)
        elif any(folder.iterdir()) and not (folder / STUDY).exists():
            raise LookHopsError(
                f"{folder}: has files in it already, and no tuning to go on with; choose another "
                "folder, or begin anew with --overwrite."
            )


def _search(
    folder: Path,
    seed: int,
    plan: SplitPlan,
    space: Space,
    trainer: CandidateTrainer,
    options: SearchOptions,
    until: float,
    tell: Tell,
) -> SearchRecord:
    """The search for one outer split."""
    main = trainer.task.main
    splits = inner_splits(trainer.graphs, plan, seed, options.inner)
    settings = {
        "data": trainer.graphs.fingerprint,
        "splits": _digest(splits),
        "protocol": canonical(plan.protocol),
        "space": space.to_dict(),
        "inner": options.inner,
        "stack": options.stack,
    }
    file = StudyFile.open(folder / STUDY, f"seed {seed}", main, settings)
    search = Search(file, space, trainer, splits, options.stack)
    if known := len(finished(search.study)):
        tell(f"seed {seed}: {counted(known, 'configuration')} tried already", known)

    def after_stack(more: int, trials: Sequence[Any]) -> None:
        value = main.written(best(trials, main).value)
        said = f"seed {seed}: {len(trials)} of {options.trials} configurations"
        tell(f"{said}, best validation {main.title} {value}", more)

    search.run(options.trials, until, after_stack)
    return search.record(seed)


def _digest(splits: Mapping[int, Split]) -> str:
    """What tells inner splits from others."""
    digest = hashlib.sha256()
    for seed, one in splits.items():
        for part in (one.train, one.val):
            digest.update(f"{seed} {len(part)} ".encode() + part.cpu().numpy().tobytes())
    return digest.hexdigest()[:16]


def _train(
    folder: Path,
    graphs: Graphs,
    candidate: Candidate,
    plan: SplitPlan,
    **options: Any,
) -> None:
    """Train the chosen configuration as ``lookhops train`` does, unless the folder has it."""
    architecture, protocol = candidate.rates.applied(candidate.architecture, plan.protocol)
    settings = settings_of(graphs, architecture, protocol, plan.splits)
    begun = (folder / CONFIG, folder / "resume" / "settings.json")
    known = [files.read_json(path) for path in begun if files.current(path).is_file()]
    same = not any(difference(one, settings) for one in known)
    train_into(
        folder,
        graphs,
        architecture,
        protocol,
        splits=replace(plan, protocol=protocol),
        resume=same,
        overwrite=not same,
        **options,
    )
