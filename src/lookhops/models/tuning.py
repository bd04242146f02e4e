"""Tuning into a folder: a search for each outer split, their test parts, the model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from lookhops.core import files
from lookhops.core.errors import LookHopsError
from lookhops.core.options import Protocol, SearchOptions
from lookhops.graphs import Graphs
from lookhops.learners import learner_of
from lookhops.models.config import CONFIG
from lookhops.models.folder import UNKNOWN, Provenance
from lookhops.models.training import train_into
from lookhops.runs.record import Machine
from lookhops.runs.state import difference, settings_of
from lookhops.runs.tune.search import Judge
from lookhops.runs.tune.space import Candidate, Space
from lookhops.runs.tune.tuning import TUNING, Tuning, importance, search_outer, test_outer
from lookhops.sources.splits import SplitPlan
from lookhops.tasks import task_of
from lookhops.training.device import choose_device
from lookhops.training.runs import OnEvent, draw_splits

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
    on_event: OnEvent = lambda event: None,
    provenance: Provenance = UNKNOWN,
) -> Tuning:
    """Search for a configuration, measure what that gains, and keep the model in a folder.

    For each outer split (a seed of the protocol) a search of its own chooses a configuration by
    the validation parts of inner splits, which share no graph with the outer test part. When all
    searches have ended, the outer test parts are opened once, for the chosen configurations and
    for the recommended model. The folder then holds the model of the first outer split, trained as
    ``lookhops train`` does: its test part took no part in its choice.

    A call that was interrupted goes on where it was; one with more trials goes on from there.

    Args:
        folder: Where the model goes, with ``study.sqlite``, ``comparison.sqlite`` (the runs on the
            outer splits) and ``tuning.json``, the record.
        graphs: Graphs with targets.
        protocol: How to train and to split; by default that of the splits, or the paper's.
        options: How to search.
        splits: The outer splits; by default the protocol's are drawn.
        device: ``cpu``, ``cuda``, or ``auto``: a GPU where there is one.
        overwrite: Begin again, whatever is in the folder.
        on_event: Called after each epoch, and with what has been tried and trained; an exception
            from it ends the tuning.
        provenance: How the graphs were read and what else is kept with the model.
    """
    folder, options = Path(folder), options or SearchOptions()
    protocol = protocol or (Protocol() if splits is None else splits.protocol)
    space = Space.parse(options.space, protocol)
    task = task_of(graphs, protocol.class_weights, protocol.loss)
    plan = draw_splits(graphs, task, protocol, splits)
    where = choose_device(device)
    _prepare(folder, overwrite)
    judge = Judge(graphs, task, plan.protocol, where, where.type == "cuda", on_event)
    records = search_outer(folder / STUDY, plan, space, judge, options)
    chosen = {one.seed: space.candidate(one.chosen.values) for one in records}
    outer = test_outer(graphs, plan, chosen, folder / STORE, device, on_event)
    found = Tuning(
        dataset=graphs.name,
        task=task.kind,
        space=space.to_dict(),
        inner=options.inner,
        searches=tuple(records),
        importance=importance(records, space),
        device=str(Machine.here(where)),
        **outer,
    )
    files.write_json(folder / TUNING, found.to_dict())
    _train(folder, graphs, plan, chosen, device=device, on_epoch=on_event, provenance=provenance)
    return found


def check_optuna() -> None:
    """Refuse to tune where Optuna is missing."""
    try:
        import optuna  # noqa: F401
    except ImportError as error:
        raise LookHopsError("Tuning needs Optuna: pip install 'lookhops[tune]'.") from error


def _prepare(folder: Path, overwrite: bool) -> None:
    """Make the folder, or refuse one that has files and no tuning to resume."""
    check_optuna()
    with files.explained(folder):
        files.make_folder(folder)
        if overwrite:
            for name in (TUNING, STORE, STUDY):
                (folder / name).unlink(missing_ok=True)
        elif any(folder.iterdir()) and not (folder / STUDY).exists():
            raise LookHopsError(
                f"{folder}: has files in it already, and no tuning to resume; choose another "
                "folder, or begin again with --overwrite."
            )


def _train(
    folder: Path,
    graphs: Graphs,
    plan: SplitPlan,
    chosen: Mapping[int, Candidate],
    **options: Any,
) -> None:
    """Train the first split's choice as ``lookhops train`` does, unless the folder has it."""
    first = plan.of_seeds(plan.protocol.seeds[:1])
    entry = chosen[first.protocol.seeds[0]].entry
    architecture, protocol = entry.model, entry.protocol(first.protocol)
    settings = settings_of(graphs, learner_of(architecture), protocol, first.splits)
    begun = (folder / CONFIG, folder / "resume" / "settings.json")
    known = [files.read_json(path) for path in begun if files.current(path).is_file()]
    same = not any(difference(one, settings) for one in known)
    train_into(
        folder,
        graphs,
        architecture,
        protocol,
        splits=replace(first, protocol=protocol),
        resume=same,
        overwrite=not same,
        **options,
    )
