"""A model on a Ray cluster: many workers train it, or answer parts of a source."""

from __future__ import annotations

import os
import pickle
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any

from lookhops.core.errors import LookHopsError
from lookhops.core.options import Protocol
from lookhops.graphs import Graphs
from lookhops.learners import Learner, Model
from lookhops.models.answers import Predictions
from lookhops.models.config import read_config
from lookhops.models.predictor import Predictor
from lookhops.models.training import train_into
from lookhops.runs.ray import RETRIES, connected, import_ray
from lookhops.sources.streams import Part
from lookhops.training.workers import WorkerLost, Workers

#: Parts for each worker that are sent out at a time: so much is held here.
AT_A_TIME = 16


class AnsweringWorker:
    """What a worker of Ray Data does: it loads the model once and answers parts."""

    def __init__(self, folder: Path, device: str, asked: Mapping[str, Any]) -> None:
        self.predictor, self.asked = Predictor(folder, device), asked

    def __call__(self, rows: dict[str, Any]) -> dict[str, Any]:
        """The answers to some parts, as bytes."""
        parts: Iterator[Graphs] = map(pickle.loads, rows["graphs"])
        answers = [pickle.dumps(self.predictor.predict(part, **self.asked)) for part in parts]
        return {"number": rows["number"], "answers": answers}


def answered(
    parts: Iterator[Part],
    folder: Path | str,
    device: str,
    asked: Mapping[str, Any],
    workers: int,
    address: str | None = None,
) -> Iterator[tuple[Part, Predictions]]:
    """Parts of a source in their order, each with its answers, which workers of a cluster give.

    The model's folder is on a disk that the workers share; the device ``cuda`` takes a GPU for
    each. ``asked`` are further arguments of :meth:`~lookhops.models.Predictor.predict`. Without an
    address a cluster is started on this machine.
    """
    options: dict[str, Any] = {
        "fn_constructor_args": (Path(folder).absolute(), device, asked),
        "batch_size": 1,
        **({"num_gpus": 1} if device.startswith("cuda") else {"num_cpus": 1}),
    }
    # Ray's remarks on how it works are not for our users.
    for name, level in (("RAY_BACKEND_LOG_LEVEL", "fatal"), ("RAY_DATA_LOG_LEVEL", "ERROR")):
        os.environ.setdefault(name, level)
    ray = import_ray()
    import_module("ray.data").DataContext.get_current().enable_progress_bars = False
    with connected(ray, address):
        while sent := list(islice(parts, AT_A_TIME * workers)):
            yield from zip(sent, _answers(sent, workers, options), strict=True)


def _answers(parts: Sequence[Part], workers: int, options: dict[str, Any]) -> list[Predictions]:
    import ray.data
    from ray.exceptions import RayError

    rows: list[dict[str, Any]] = []
    for number, part in enumerate(parts):
        # Without what the tensors are slices of.
        copies = {name: tensor.clone() for name, tensor in part.graphs.tensors.items()}
        graphs = replace(part.graphs, node_ids=None).with_tensors(copies)
        rows.append({"number": number, "graphs": pickle.dumps(graphs)})
    try:
        made = ray.data.from_items(rows, override_num_blocks=len(rows))
        pool = ray.data.ActorPoolStrategy(size=min(workers, len(rows)))
        done = made.map_batches(AnsweringWorker, compute=pool, **options).take_all()
    except RayError as error:
        raise LookHopsError(
            f"Workers of the Ray cluster could not answer ({str(error).splitlines()[-1]}); "
            "what was already written is kept, and --resume goes on."
        ) from error
    found = sorted(done, key=lambda row: row["number"])
    return [pickle.loads(row["answers"]) for row in found]


# -------------------------------------------------------------------- training


def train_on_ray(
    folder: Path | str,
    graphs: Graphs,
    model: Learner | Model | str,
    protocol: Protocol,
    *,
    workers: int,
    address: str | None = None,
    device: str = "auto",
    **options: Any,
) -> dict[str, Any]:
    """Train as :func:`~lookhops.models.train_into` does, by workers of a Ray cluster.

    Each worker takes its share of every batch. The first of them writes the folder, which must lie
    on a disk that it shares with this machine. Where a worker is lost, all are started again and go
    on from the last state that was written.

    Args:
        address: The cluster; none starts one on this machine.
        device: ``cpu``, ``cuda``, or ``auto``: GPUs where the cluster has one for each worker.
        options: The others of ``train_into``, but ``on_epoch``.
    """
    ray = import_ray()
    with connected(ray, address):
        on_gpu = _check_room(ray.cluster_resources(), workers, device)
        absolute = Path(folder).absolute()
        arguments = {"folder": absolute, "graphs": ray.put(graphs), "model": model}
        arguments |= {"protocol": protocol, "device": "cuda" if on_gpu else "cpu", **options}
        for attempt in range(RETRIES + 1):
            try:
                _fit(arguments, workers, on_gpu)
            except Exception as error:
                for cause in _causes(error):  # a sentence of a worker that the user can act on
                    if isinstance(cause, LookHopsError) and not isinstance(cause, WorkerLost):
                        raise LookHopsError(str(cause)) from error
                if attempt == RETRIES:
                    raise LookHopsError(
                        f"Workers of the Ray cluster were lost {attempt + 1} times "
                        f"({str(error).strip().splitlines()[-1]}); the state of {folder} is kept, "
                        "and --resume goes on."
                    ) from error
                arguments |= {"resume": True, "overwrite": False}
            else:
                break
        config = read_config(absolute)
    return config


def _check_room(there: Mapping[str, float], workers: int, device: str) -> bool:
    """Whether each worker has a GPU; an error where one would wait for its place for ever."""
    needed = {"CPU": workers, "GPU": workers if device.startswith("cuda") else 0}
    for what, count in needed.items():
        if there.get(what, 0) < count:
            raise LookHopsError(
                f"{workers} workers (--workers) take a {what} each, and the cluster has "
                f"{there.get(what, 0):g} in all."
            )
    return device != "cpu" and there.get("GPU", 0) >= workers


def _fit(arguments: dict[str, Any], workers: int, on_gpu: bool) -> None:
    """One attempt; Ray Train connects the workers."""
    from ray.train import RunConfig, ScalingConfig
    from ray.train.torch import TorchTrainer

    with tempfile.TemporaryDirectory(prefix="lookhops-ray-") as logs:
        TorchTrainer(
            _train,
            train_loop_config=arguments,
            scaling_config=ScalingConfig(num_workers=workers, use_gpu=on_gpu),
            run_config=RunConfig(name="lookhops", storage_path=logs),
        ).fit()


def _train(arguments: dict[str, Any]) -> None:
    import ray

    given = dict(arguments)
    graphs = ray.get(given.pop("graphs"))
    train_into(given.pop("folder"), graphs, workers=Workers.joined(), **given)


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """An error, those of workers that it tells of, and what they came from."""
    if error is None:
        return
    yield error
    yield from _causes(getattr(error, "cause", None) or error.__cause__)
    for failure in getattr(error, "worker_failures", {}).values():
        yield from _causes(failure)
