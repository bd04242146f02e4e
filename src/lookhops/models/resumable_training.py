"""Training into a folder: every interruption leaves it resumable or complete."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from lookhops.datasets.splits import Split
from lookhops.encoding import Encoding
from lookhops.errors import LookHopsError
from lookhops.graphs import Graphs
from lookhops.models.folder import CONFIG, difference, load_model, save_model, settings_of
from lookhops.models.resume import ResumeState
from lookhops.nn import Architecture, GraphNetwork
from lookhops.options import Protocol
from lookhops.tasks import task_of
from lookhops.training.trainer import NotFinite, Progress, choose_device, draw_splits, train


def train_into(
    folder: Path | str,
    graphs: Graphs,
    architecture: Architecture | None = None,
    protocol: Protocol | None = None,
    *,
    splits: Sequence[Split] | None = None,
    device: str | torch.device = "auto",
    resume: bool = False,
    overwrite: bool = False,
    save_every: float = 10.0,
    on_epoch: Callable[[Progress], None] = lambda progress: None,
    command: str | None = None,
) -> dict[str, Any]:
    """Train as :func:`~lookhops.training.train` does, and keep the models in a folder.

    Whatever ends the training early (an exception from ``on_epoch`` too, which is how a command
    stops it politely), the same call with ``resume=True`` goes on where it was and ends with the
    same weights, history and predictions as a training that was left alone.

    Args:
        folder: Where the model goes; must be empty or new, unless told otherwise.
        graphs, architecture, protocol, splits, device, on_epoch: As for ``train``.
        resume: Go on with the training that was begun here; begin it if there is none.
        overwrite: Train anew although the folder is not empty. What is there stays until the new
            model is complete.
        save_every: Seconds between two writes of the state.
        command: The command line that asked for it, kept with the model.

    Returns:
        What ``config.json`` holds: settings, metrics and all.
    """
    folder = Path(folder)
    architecture, protocol = architecture or Architecture(), protocol or Protocol()
    chosen = choose_device(device)
    task = task_of(graphs, protocol.class_weights)
    parts = draw_splits(graphs, task, protocol, splits)
    # An architecture that cannot be says so before anything is written.
    width = Encoding.fit(graphs).width
    GraphNetwork.from_architecture(width, task.out_channels, architecture)
    settings = settings_of(graphs, architecture, protocol, parts)
    state = ResumeState(folder, settings, save_every)
    if (config := _prepare(folder, state, settings, resume, overwrite)) is not None:
        return config

    def after_epoch(progress: Progress) -> None:
        done = all(run.done(protocol) for run in progress.runs)
        try:
            on_epoch(progress)
        except BaseException:  # between two epochs: nothing of the last one is lost
            state.save(progress)
            raise
        state.save(progress, now=done)

    stopped: NotFinite | None = None
    try:
        runs = train(
            graphs,
            architecture,
            protocol,
            task=task,
            splits=list(parts.values()),
            device=chosen,
            resume=lambda seeds: state.load(seeds, parts),
            on_epoch=after_epoch,
        )
    except NotFinite as error:
        runs, stopped = error.runs, error
    why = str(stopped) if stopped else None
    config = save_model(folder, runs, settings, graphs, task, chosen, stopped=why, command=command)
    state.clear()
    if stopped is not None:
        raise stopped
    return config


def _prepare(
    folder: Path, state: ResumeState, settings: dict[str, Any], resume: bool, overwrite: bool
) -> dict[str, Any] | None:
    """Make the folder ready; the config of a training that was complete already, else none."""
    if resume and overwrite:
        raise LookHopsError("A training is either resumed or overwritten, not both.")
    if resume and state.exists():
        state.check()
        return None
    if resume and (folder / CONFIG).exists():
        config = load_model(folder).config
        if different := difference(config, settings):
            raise LookHopsError(
                f"{folder}: holds a finished model with other settings ({different}); "
                "train into another folder, or anew with --overwrite."
            )
        return config
    if not overwrite and not resume and _has_files(folder):
        unfinished = "an unfinished training" if state.exists() else "files"
        advice = "go on with --resume, or begin anew with --overwrite"
        raise LookHopsError(f"{folder}: has {unfinished} in it already; {advice}.")
    state.begin()
    return None


def _has_files(folder: Path) -> bool:
    try:
        return folder.exists() and (not folder.is_dir() or any(folder.iterdir()))
    except OSError as error:
        raise LookHopsError(f"{folder}: cannot be read ({error.strerror}).") from error
