"""One model on several machines: workers of a Ray cluster train it together, by Ray Train."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from lookhops.errors import LookHopsError
from lookhops.experiments.ray_runner import RETRIES, connected, import_ray
from lookhops.graphs import Graphs
from lookhops.models import train_into
from lookhops.models.folder import read_config
from lookhops.options import Architecture, Protocol
from lookhops.training.workers import WorkerLost, Workers


def train_on_ray(
    folder: Path | str,
    graphs: Graphs,
    architecture: Architecture,
    protocol: Protocol,
    *,
    workers: int,
    address: str | None = None,
    device: str = "auto",
    **options: Any,
) -> dict[str, Any]:
    """Train as :func:`~lookhops.models.train_into` does, by workers of a Ray cluster.

    Each worker takes its share of every batch. The graphs travel to the workers; the first of them
    writes the folder, which must lie on a disk that it shares with this machine. Where a worker is
    lost, all are started again and go on from the last state that was written.

    Args:
        folder, graphs, architecture, protocol: As for ``train_into``.
        workers: How many.
        address: The cluster; none starts one on this machine.
        device: ``cpu``, ``cuda``, or ``auto``: GPUs where the cluster has one for each worker.
        options: The others of ``train_into``, but ``on_epoch``.
    """
    ray = import_ray()
    with connected(ray, address):
        on_gpu = _check_room(ray.cluster_resources(), workers, device)
        place = Path(folder).absolute()
        told = {"folder": place, "graphs": ray.put(graphs), "architecture": architecture}
        told |= {"protocol": protocol, "device": "cuda" if on_gpu else "cpu", **options}
        for attempt in range(RETRIES + 1):
            try:
                _fit(told, workers, on_gpu)
            except Exception as error:
                _say_cause(error)
                if attempt == RETRIES:
                    raise LookHopsError(
                        f"Workers of the Ray cluster were lost {attempt + 1} times; the state of "
                        f"{folder} is kept, and --resume goes on."
                    ) from error
                told |= {"resume": True, "overwrite": False}
            else:
                break
        config = read_config(place)
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


def _fit(told: dict[str, Any], workers: int, on_gpu: bool) -> None:
    """One attempt; Ray Train connects the workers."""
    from ray.train import RunConfig, ScalingConfig
    from ray.train.torch import TorchTrainer

    with tempfile.TemporaryDirectory(prefix="lookhops-ray-") as logs:
        TorchTrainer(
            _train,
            train_loop_config=told,
            scaling_config=ScalingConfig(num_workers=workers, use_gpu=on_gpu),
            run_config=RunConfig(name="lookhops", storage_path=logs),
        ).fit()


def _train(told: dict[str, Any]) -> None:
    """What each worker does."""
    import ray

    given = dict(told)
    graphs = ray.get(given.pop("graphs"))
    train_into(given.pop("folder"), graphs, workers=Workers.joined(), **given)


def _say_cause(error: BaseException) -> None:
    """Raise the sentence that a worker raised, if it was one that the user can mend."""
    for cause in _causes(error):
        if isinstance(cause, LookHopsError) and not isinstance(cause, WorkerLost):
            raise LookHopsError(str(cause)) from error


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """An error, those of workers that it tells of, and what they came from."""
    if error is None:
        return
    yield error
    yield from _causes(getattr(error, "cause", None) or error.__cause__)
    for own in getattr(error, "worker_failures", {}).values():
        yield from _causes(own)
