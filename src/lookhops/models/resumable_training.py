"""Training into a folder: every interruption leaves it resumable or complete.

The state of an unfinished training lies in ``FOLDER/resume``: ``settings.json``, written before
training begins, and one file for each stack of runs that an engine trains, replaced in one rename.
What finished stacks predicted is computed again from their state.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import torch
from torch import Tensor

from lookhops import files
from lookhops.datasets.splits import Split, SplitPlan
from lookhops.encoding import Encoding
from lookhops.errors import LookHopsError
from lookhops.graphs import Graphs
from lookhops.models.checkpoint import load_model
from lookhops.models.folder import CONFIG
from lookhops.models.saving import difference, save_model, settings_of
from lookhops.nn import Architecture, GraphNetwork
from lookhops.options import AS_USUAL, Protocol, Reading
from lookhops.schema import AtLeast, located, read
from lookhops.tasks import Task, task_of
from lookhops.training.runs import NotFinite, Progress, Run
from lookhops.training.trainer import choose_device, draw_splits, train, train_on_all
from lookhops.training.workers import ALONE, Workers

BEGUN_WITH = AtLeast(dict.fromkeys(("architecture", "protocol", "data"), Mapping[str, Any]))
_FIELDS = ("seed", "member", "history", "best_epoch", "best_loss")


def train_into(
    folder: Path | str,
    graphs: Graphs,
    architecture: Architecture | None = None,
    protocol: Protocol | None = None,
    *,
    splits: SplitPlan | Sequence[Split] | None = None,
    device: str | torch.device = "auto",
    resume: bool = False,
    overwrite: bool = False,
    save_every: float = 10.0,
    on_epoch: Callable[[Progress], None] = lambda progress: None,
    threshold: str | None = None,
    command: str | None = None,
    reading: Reading = AS_USUAL,
    information: Mapping[str, Any] | None = None,
    final: bool = False,
    workers: Workers = ALONE,
) -> dict[str, Any]:
    """Train as :func:`~lookhops.training.train` does, and keep the models in a folder.

    Whatever ends the training early (an exception from ``on_epoch`` too), the same call with
    ``resume=True`` goes on and ends as a training that was left alone, bit for bit.

    Args:
        folder: Where the model goes; must be empty or new, unless told otherwise.
        graphs, architecture, protocol, splits, device, on_epoch: As for ``train``.
        resume: Go on with the training that was begun here; begin it if there is none.
        overwrite: Train anew; what is in the folder stays until the new model is complete.
        save_every: Seconds between two writes of the state.
        threshold: Of two classes: from which probability the second is answered, such as ``0.3``,
            or what it is chosen for on the validation part: ``f1`` or ``youden``.
        command: The command line that asked for it, kept with the model.
        reading: How the graphs were read, kept with the model: new ones are read so too.
        information: The hop information that chose k, kept with the model.
        final: Whether to train on all graphs in the end, for the median of the best numbers of
            epochs: that model answers, and the metrics are those of the others.
        workers: The processes that make this call together, each for its share of every batch; the
            first of them writes.

    Returns:
        What ``config.json`` holds: settings, metrics and all.
    """
    folder, chosen = Path(folder), choose_device(device)
    architecture, protocol = architecture or Architecture(), protocol or Protocol()
    task = task_of(graphs, protocol.class_weights, protocol.loss, threshold)
    plan = draw_splits(graphs, task, protocol, splits)
    _check_network(graphs, architecture, task)
    settings = settings_of(graphs, architecture, plan.protocol, plan.splits) | {"final": final}
    _check_same(settings, workers)
    state = ResumeState(folder, settings, save_every)
    if (config := workers.from_first(lambda: state.prepare(resume, overwrite))) is not None:
        return config
    options: dict[str, Any] = {
        **{"task": task, "device": chosen, "workers": workers},
        "resume": lambda stack: workers.from_first(lambda: state.load(stack)),
        "on_epoch": _after_epoch(state, on_epoch, workers),
    }
    runs, last, stopped = _train(graphs, architecture, plan, final, options)
    said: dict[str, Any] = {"stopped": str(stopped) if stopped else None, "command": command}
    said |= {"reading": reading, "information": information, "final": last}

    def save() -> dict[str, Any]:
        config = save_model(folder, runs, settings, graphs, task, chosen, **said)
        state.clear()
        return config

    config = workers.from_first(save)
    if stopped:
        raise stopped
    return config


def _check_network(graphs: Graphs, architecture: Architecture, task: Task) -> None:
    """An architecture that cannot be says so before anything is written."""
    told = Encoding.fit(graphs, architecture.reads_edges)
    GraphNetwork.from_architecture(told.width, task.out_channels, architecture, **told.sizes)


def _train(
    graphs: Graphs, architecture: Architecture, plan: SplitPlan, final: bool, options: Any
) -> tuple[list[Run], Run | None, NotFinite | None]:
    """The runs, that on all graphs where it is wanted, and what stopped them early if it did."""
    runs: list[Run] = []
    try:
        runs = train(graphs, architecture, plan.protocol, splits=plan, **options)
        if not final:
            return runs, None, None
        epochs = median_epoch(runs)
        return runs, train_on_all(graphs, architecture, plan.protocol, epochs, **options), None
    except NotFinite as error:
        return runs or error.runs, None, error


def _check_same(settings: Mapping[str, Any], workers: Workers) -> None:
    """Refuse to train where a worker has other graphs or other options than the first."""
    different = difference(workers.from_first(lambda: settings), settings)
    if workers.any(bool(different)):
        raise LookHopsError(
            f"Worker {workers.rank} was started with other settings than the first ({different})."
            if different
            else "Another worker was started with other settings; all must have the same."
        )


def _after_epoch(
    state: ResumeState, on_epoch: Callable[[Progress], None], workers: Workers
) -> Callable[[Progress], None]:
    """What is done after each epoch: all workers stop together, and the first keeps the state."""

    def stop_together(progress: Progress) -> None:
        stop: KeyboardInterrupt | None = None
        try:
            on_epoch(progress)
        except KeyboardInterrupt as asked:
            stop = asked
        if workers.any(stop is not None):
            raise stop or KeyboardInterrupt

    if workers.is_first:
        return lambda progress: state.after_epoch(progress, stop_together)
    return stop_together


def median_epoch(runs: Sequence[Run]) -> int:
    """The median of the epochs whose weights were kept, at least 1."""
    return max(1, round(median(one.best_epoch for run in runs for one in run.networks)))


class ResumeState:
    """The state of one training, so that it can go on as if it had not been interrupted.

    Args:
        folder: The model's folder.
        settings: What :func:`~lookhops.models.saving.settings_of` gave.
        every: Seconds between two writes.
    """

    def __init__(self, folder: Path, settings: Mapping[str, Any], every: float) -> None:
        self.model, self.folder = folder, folder / "resume"
        self.begun_with = self.folder / "settings.json"
        self.settings, self.every = settings, every
        self._written: dict[str, float] = {}

    def prepare(self, resume: bool, overwrite: bool) -> dict[str, Any] | None:
        """Make the folder ready; the config of a training that was complete already, else none."""
        if resume and overwrite:
            raise LookHopsError("A training is either resumed or overwritten, not both.")
        with files.explained(self.model):
            return self._prepare(resume, overwrite)

    def _prepare(self, resume: bool, overwrite: bool) -> dict[str, Any] | None:
        if self.model.is_dir():
            files.remove_leftovers(self.model)
            files.finish_change(self.model)
        begun = self.begun_with.exists()
        if resume and begun:
            with tempfile.TemporaryFile(dir=self.folder):
                pass  # fail now, not at the first write, where the folder is read-only
            begun_with = files.read_json(self.begun_with)
            with located(f"{self.begun_with}: damaged"):
                read(BEGUN_WITH, begun_with)
            if different := difference(begun_with, self.settings):
                raise LookHopsError(
                    f"{self.begun_with}: the training began with other settings ({different}); "
                    "resume it with the same, or begin anew with --overwrite."
                )
            return None
        if resume and (self.model / CONFIG).exists():
            config = load_model(self.model).config
            if different := difference(config, self.settings):
                raise LookHopsError(
                    f"{self.model}: holds a finished model with other settings ({different}); "
                    "train into another folder, or anew with --overwrite."
                )
            return config
        if not overwrite and not resume and _has_files(self.model):
            unfinished = "an unfinished training" if begun else "files"
            advice = "go on with --resume, or begin anew with --overwrite"
            raise LookHopsError(f"{self.model}: has {unfinished} in it already; {advice}.")
        self.clear()  # and fail here, not hours later, where the folder is not writable
        files.write_json(self.begun_with, self.settings)
        return None

    def after_epoch(self, progress: Progress, on_epoch: Callable[[Progress], None]) -> None:
        """Tell of an epoch and write the state; what ends the training here loses nothing of it."""
        try:
            on_epoch(progress)
        except BaseException:
            self.save(progress)
            raise
        protocol = progress.engine.protocol
        self.save(progress, now=all(run.done(protocol) for run in progress.runs))

    def save(self, progress: Progress, now: bool = True) -> None:
        """Write the state of a stack; with ``now`` false only if the last write was long ago."""
        stack = progress.runs[0].key
        moment = time.monotonic()
        if not now and moment - self._written.get(stack, -float("inf")) < self.every:
            return
        runs = [{key: getattr(run, key) for key in _FIELDS} for run in progress.runs]
        content = files.pack_tensors(progress.state(), {"runs": runs})
        files.write_bytes(self._file(stack), content)
        self._written[stack] = moment

    def load(self, stack: Sequence[Run]) -> tuple[list[Run], dict[str, Tensor]] | None:
        """The runs and the engine's state of a stack, or none if it was not begun."""
        path = self._file(stack[0].key)
        if not path.exists():
            return None
        advice = "begin anew with --overwrite"
        try:
            state, note = files.unpack_tensors(files.read_bytes(path), path)
        except LookHopsError as error:
            raise LookHopsError(f"{str(error).rstrip('.')}; {advice}.") from error
        if note[files.CHECKSUM] is None:
            raise LookHopsError(f"{path}: of an earlier version of LookHops; {advice}.")
        try:
            noted = [{key: run[key] for key in _FIELDS if key in run} for run in note["runs"]]
            # Another machine may stack other runs together: then the stack begins anew.
            if [(one["seed"], one.get("member", 0)) for one in noted] != [
                (run.seed, run.member) for run in stack
            ]:
                return None
            runs = [replace(run, **one) for run, one in zip(stack, noted, strict=True)]
        except (KeyError, TypeError, AttributeError) as error:
            raise LookHopsError(f"{path}: damaged ({error!r}); {advice}.") from error
        return runs, state

    def clear(self) -> None:
        """Remove the state, the settings first: without them nothing is resumed by halves."""
        if not self.folder.is_dir():
            return
        try:
            for file in sorted(self.folder.iterdir(), key=lambda file: file != self.begun_with):
                if file.suffix in (".safetensors", ".part") or file == self.begun_with:
                    file.unlink()
            if not any(self.folder.iterdir()):
                self.folder.rmdir()
        except OSError as error:
            raise LookHopsError(f"{self.folder}: cannot be removed ({error.strerror}).") from error

    def _file(self, stack: str) -> Path:
        return self.folder / f"{stack}.safetensors"


def _has_files(folder: Path) -> bool:
    try:
        return folder.exists() and (not folder.is_dir() or any(folder.iterdir()))
    except OSError as error:
        raise LookHopsError(f"{folder}: cannot be read ({error.strerror}).") from error
