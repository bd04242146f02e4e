"""Training into a folder: every interruption leaves it resumable or complete."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from functools import partial
from multiprocessing import current_process
from pathlib import Path
from statistics import median
from typing import Any

import torch

from lookhops.core.errors import LookHopsError
from lookhops.core.machine import usable_cores
from lookhops.core.options import Architecture, Protocol
from lookhops.graphs import Graphs
from lookhops.learners import Learner, Model, learner_of
from lookhops.models.config import CONFIG
from lookhops.models.folder import UNKNOWN, Provenance, save_model
from lookhops.models.predictor import Predictor
from lookhops.runs.processes import Processes
from lookhops.runs.side_by_side import beside
from lookhops.runs.state import ResumeState, difference, settings_of
from lookhops.sources.splits import Split, SplitPlan
from lookhops.tasks import Task, task_of
from lookhops.training.device import choose_device, limited_threads
from lookhops.training.runs import Epoch, NotFinite, OnEpoch, Run, draw_splits
from lookhops.training.windows import packed_bytes
from lookhops.training.workers import ALONE, Workers

#: Bytes of graphs that the processes beside this one are sent, all of them together.
MOST_SENT = 2 << 30


def train_into(
    folder: Path | str,
    graphs: Graphs,
    model: Learner | Model | str | None = None,
    protocol: Protocol | None = None,
    *,
    splits: SplitPlan | Sequence[Split] | None = None,
    device: str | torch.device = "auto",
    stacked: bool | None = None,
    resume: bool = False,
    overwrite: bool = False,
    save_every: float = 10.0,
    on_epoch: OnEpoch = lambda epoch: None,
    threshold: str | None = None,
    provenance: Provenance = UNKNOWN,
    final: bool = False,
    workers: Workers = ALONE,
    processes: int | None = 1,
) -> dict[str, Any]:
    """Fit a model for each seed, test each once, keep them in a folder; its ``config.json``.

    Whatever ends the training early (an exception from ``on_epoch`` too), the same call with
    ``resume=True`` goes on and ends as a training that was left alone, bit for bit.

    Args:
        folder: Where the model goes; empty or new, but for ``resume`` and ``overwrite``.
        graphs, protocol, splits, device, stacked, on_epoch: As :func:`~lookhops.training.train`.
        model: A name such as ``"licheb+lookhops/k=3"`` or ``"wl-oa"``, an architecture or a
            learner; by default the paper's LiCheb without pooling.
        resume: Go on with the training that was begun here; begin it if there is none.
        overwrite: Begin again; what is in the folder stays until the new model is complete.
        save_every: Seconds between two writes of the state.
        threshold: Of two classes: from which probability the second is answered, such as ``0.3``,
            or what it is chosen for on the validation part: ``f1`` or ``youden``.
        provenance: How the graphs were read and what else is kept with the model.
        final: Whether a model trained on all graphs answers, for the median of the best numbers of
            epochs; the metrics are those of the others.
        workers: The processes that make this call together, each for its share of every batch.
        processes: How many networks are trained at a time on a CPU, where that pays, with the same
            numbers; none means one a core. More than one need ``if __name__ == "__main__"``.
    """
    learner, protocol = learner_of(model or Architecture()), protocol or Protocol()
    task = task_of(graphs, protocol.class_weights, protocol.loss, threshold)
    plan, chosen = draw_splits(graphs, task, protocol, splits), choose_device(device)
    settings = _settings(graphs, learner, task, plan, final, workers, processes)
    state = ResumeState(Path(folder), settings, save_every)
    published = partial(_published, state.model)
    config = workers.from_first(lambda: state.prepare(resume, overwrite, published))
    if config is not None:
        return config
    options = {"task": task, "device": chosen, **_of_workers(state, on_epoch, workers)}
    runs, stopped = _train(graphs, learner, plan, final, stacked, processes, options)
    save = partial(save_model, state.model, runs, settings, graphs, task, chosen)
    with limited_threads(learner.threads(graphs, protocol)):
        config = workers.from_first(lambda: save(provenance, stopped))
    workers.from_first(state.clear)
    if stopped:
        raise stopped
    return config


def _published(folder: Path) -> dict[str, Any] | None:
    return Predictor(folder, "cpu").config if (folder / CONFIG).exists() else None


def _settings(
    graphs: Graphs,
    learner: Learner,
    task: Task,
    plan: SplitPlan,
    final: bool,
    workers: Workers,
    processes: int | None,
) -> dict[str, Any]:
    """What decides the training, the same for all workers; an error before anything is written."""
    if processes != 1 and getattr(current_process(), "_inheriting", False):
        raise LookHopsError(
            "A script that trains in several processes keeps what it runs below "
            '`if __name__ == "__main__":`; this one is being run again by one of them.'
        )
    learner.check(graphs, task)
    if final and not learner.trains_on_all:
        raise LookHopsError(
            f"{learner.name} needs a validation part to choose by: leave out --final, which trains "
            "a network on all graphs."
        )
    settings = settings_of(graphs, learner, plan.protocol, plan.splits) | {"final": final}
    different = difference(workers.from_first(lambda: settings), settings)
    if workers.any(bool(different)):
        raise LookHopsError(
            f"Worker {workers.rank} was started with other settings than the first ({different})."
            if different
            else "Another worker was started with other settings; all must have the same."
        )
    return settings


def _train(
    graphs: Graphs,
    learner: Learner,
    plan: SplitPlan,
    final: bool,
    stacked: bool | None,
    processes: int | None,
    options: dict[str, Any],
) -> tuple[list[Run], NotFinite | None]:
    """The runs, last that on all graphs where it is wanted, and what stopped them, if anything."""
    wanted = (usable_cores() if processes is None else processes) - 1
    on_cpu = options["device"].type == "cpu"
    count = min(wanted, MOST_SENT // max(packed_bytes(graphs), 1)) if on_cpu else 0
    runs: list[Run] = []
    with Processes(count) if count > 0 else nullcontext() as helpers:
        options["execute"] = None if helpers is None else beside(helpers)
        try:
            runs = learner.train(graphs, plan.protocol, splits=plan, stacked=stacked, **options)
            if final:
                best = [one.best_epoch for run in runs for one in run.networks]
                epochs = max(1, round(median(best)))
                runs.append(learner.train_on_all(graphs, plan.protocol, epochs, **options))
        except NotFinite as error:
            return runs or error.runs, error
    return runs, None


def _of_workers(state: ResumeState, on_epoch: OnEpoch, workers: Workers) -> dict[str, Any]:
    """How workers train: all of them stop together, and the first keeps the state for all."""

    def stop_together(epoch: Epoch) -> None:
        stop: KeyboardInterrupt | None = None
        try:
            on_epoch(epoch)
        except KeyboardInterrupt as asked:
            stop = asked
        if workers.any(stop is not None):
            raise stop or KeyboardInterrupt

    def keep(epoch: Epoch) -> None:
        state.after_epoch(epoch, stop_together)

    return {
        "workers": workers,
        "resume": lambda stack: workers.from_first(lambda: state.load(stack)),
        "on_epoch": keep if workers.is_first else stop_together,
    }
