"""Bulk prediction on a cluster: Ray Data hands parts of a source to workers that hold the model."""

from __future__ import annotations

import os
import pickle
from collections.abc import Iterator, Sequence
from dataclasses import replace
from importlib import import_module
from itertools import islice
from pathlib import Path
from types import ModuleType
from typing import Any

from lookhops.core.errors import LookHopsError
from lookhops.graphs import Graphs
from lookhops.models.answers import Predictions
from lookhops.models.predictor import Predictor
from lookhops.runs.ray_runner import connected, import_ray
from lookhops.sources.parts import Part, Stream

#: Parts for each worker that are sent out at a time: so much is held here.
AT_A_TIME = 16


class AnsweringWorker:
    """What a worker of Ray Data does: it loads the model once and answers parts.

    Args:
        folder: The model's folder, on a disk that the workers share.
        device: Where it answers.
        coverage: As for :meth:`~lookhops.models.Predictor.predict`.
    """

    def __init__(self, folder: Path, device: str, coverage: float) -> None:
        self.predictor, self.coverage = Predictor(folder, device), coverage

    def __call__(self, rows: dict[str, Any]) -> dict[str, Any]:
        """The answers to some parts, as bytes."""
        parts: Iterator[Graphs] = map(pickle.loads, rows["graphs"])
        found = [self.predictor.predict(graphs, self.coverage) for graphs in parts]
        return {"number": rows["number"], "answers": [pickle.dumps(own) for own in found]}


class RayAnswers(Stream):
    """A stream whose parts are answered by workers of a Ray cluster before they are given.

    Args:
        stream: The source.
        folder: The model's folder, on a disk that the workers share.
        device: Where workers answer: ``cuda`` takes a GPU for each.
        coverage: As for :meth:`~lookhops.models.Predictor.predict`.
        workers: How many.
        address: The cluster; none starts one on this machine.
    """

    def __init__(
        self,
        stream: Stream,
        folder: Path | str,
        device: str,
        coverage: float,
        workers: int,
        address: str | None = None,
    ) -> None:
        super().__init__(stream.name, stream.head, stream.types)
        self.stream, self.workers, self.address = stream, workers, address
        self.options: dict[str, Any] = {
            "fn_constructor_args": (Path(folder).absolute(), device, coverage),
            "batch_size": 1,
            **({"num_gpus": 1} if device.startswith("cuda") else {"num_cpus": 1}),
        }
        self.answers: Predictions | None = None

    def skip(self, count: int) -> Iterator[Sequence[Any]]:
        """Pass over rows of the source."""
        return self.stream.skip(count)

    def remarks(self) -> list[str]:
        """Those of the source."""
        return self.stream.remarks()

    def parts(self, size: int) -> Iterator[Part]:
        """The parts of the source in their order; :meth:`answer` then has the answers to each."""
        ray = _import_quietly()
        parts = self.stream.parts(size)
        with connected(ray, self.address):
            while some := list(islice(parts, AT_A_TIME * self.workers)):
                for part, answers in zip(some, self._answered(some), strict=True):
                    self.answers = answers
                    yield part

    def answer(self, part: Part) -> Predictions:
        """The answers to the part that was given last."""
        assert self.answers is not None
        return self.answers

    def _answered(self, parts: Sequence[Part]) -> list[Predictions]:
        """The answers to some parts, in their order."""
        import ray.data
        from ray.exceptions import RayError

        rows = [
            {"number": number, "graphs": _packed(part.graphs)} for number, part in enumerate(parts)
        ]
        try:
            made = ray.data.from_items(rows, override_num_blocks=len(rows))
            pool = ray.data.ActorPoolStrategy(size=min(self.workers, len(rows)))
            done = made.map_batches(AnsweringWorker, compute=pool, **self.options).take_all()
        except RayError as error:
            raise LookHopsError(
                f"Workers of the Ray cluster could not answer ({str(error).splitlines()[-1]}); "
                "what was already written is kept, and --resume goes on."
            ) from error
        found = sorted(done, key=lambda row: row["number"])
        return [pickle.loads(row["answers"]) for row in found]


def _import_quietly() -> ModuleType:
    """Ray, whose remarks on how it works are not for our users."""
    for name, level in (("RAY_BACKEND_LOG_LEVEL", "fatal"), ("RAY_DATA_LOG_LEVEL", "ERROR")):
        os.environ.setdefault(name, level)
    ray = import_ray()
    import_module("ray.data").DataContext.get_current().enable_progress_bars = False
    return ray


def _packed(graphs: Graphs) -> bytes:
    """Graphs as bytes, without what their tensors are slices of."""
    own: Any = {name: tensor.clone() for name, tensor in graphs._tensors().items()}
    return pickle.dumps(replace(graphs, node_ids=None, **own))
