"""The state of an unfinished training, so that every interruption leaves it resumable or complete.

It lies in ``FOLDER/resume``: ``settings.json``, written before training begins, and one file for
each stack of runs that an engine trains, replaced in one rename. What finished stacks predicted is
computed again from their state.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from math import inf
from pathlib import Path
from typing import Any

from torch import Tensor

from lookhops.core import files
from lookhops.core.errors import LookHopsError
from lookhops.core.files import pack_tensors, unpack_tensors
from lookhops.core.options import Protocol
from lookhops.core.schema import AtLeast, located, read
from lookhops.graphs import Graphs
from lookhops.learners import Learner
from lookhops.learners.registry import SAVED
from lookhops.sources.splits import Split
from lookhops.training.runs import Epoch, OnEpoch, Run

SETTINGS = AtLeast({**dict.fromkeys(("protocol", "data"), Mapping[str, Any]), "learner": SAVED})
#: What is kept of a run beside the engine's state.
FIELDS = ("seed", "member", "history", "best_epoch", "best_loss")


class ResumeState:
    """The state of one training, so that it can continue as if it had not been interrupted.

    ``settings`` are those of :func:`settings_of`; ``every`` counts the seconds between two writes.
    """

    def __init__(self, folder: Path, settings: Mapping[str, Any], every: float) -> None:
        self.model, self.folder = folder, folder / "resume"
        self.path = self.folder / "settings.json"
        self.settings, self.every = settings, every
        self._written: dict[str, float] = {}

    def prepare(
        self, resume: bool, overwrite: bool, published: Callable[[], dict[str, Any] | None]
    ) -> dict[str, Any] | None:
        """Make the folder ready; the config of a training that was complete already, else none."""
        if resume and overwrite:
            raise LookHopsError("A training is either resumed or overwritten, not both.")
        with files.explained(self.model):
            if self.model.is_dir():
                files.remove_leftovers(self.model)
                files.finish_change(self.model)
            begun = self.path.exists()
            if resume and begun:
                with tempfile.TemporaryFile(dir=self.folder):
                    pass  # fail now, not at the first write, where the folder is read-only
                begun_with = files.read_json(self.path)
                with located(f"{self.path}: damaged"):
                    read(SETTINGS, begun_with)
                if different := difference(begun_with, self.settings):
                    raise LookHopsError(
                        f"{self.path}: the training began with other settings ({different}); "
                        "resume it with the same, or begin again with --overwrite."
                    )
                return None
            if resume and (config := published()) is not None:
                if different := difference(config, self.settings):
                    raise LookHopsError(
                        f"{self.model}: holds a finished model with other settings ({different}); "
                        "train into another folder, or again with --overwrite."
                    )
                return config
            with files.explained(self.model, "read"):
                is_empty = not self.model.exists() or (
                    self.model.is_dir() and not any(self.model.iterdir())
                )
            if not (overwrite or resume or is_empty):
                unfinished = "an unfinished training" if begun else "files"
                advice = "go on with --resume, or begin again with --overwrite"
                raise LookHopsError(f"{self.model}: has {unfinished} in it already; {advice}.")
            self.clear()  # and fail here, not hours later, where the folder is not writable
            files.write_json(self.path, self.settings)
            return None

    def after_epoch(self, epoch: Epoch, on_epoch: OnEpoch) -> None:
        try:
            on_epoch(epoch)
        except BaseException:
            self.save(epoch)
            raise
        self.save(epoch, now=all(run.done(epoch.protocol) for run in epoch.runs))

    def save(self, epoch: Epoch, now: bool = True) -> None:
        """Write the state of a stack; with ``now`` false only if the last write was long ago."""
        stack, moment = epoch.runs[0].key, time.monotonic()
        if now or moment - self._written.get(stack, -inf) >= self.every:
            runs = [{key: getattr(run, key) for key in FIELDS} for run in epoch.runs]
            files.write_bytes(self._file(stack), pack_tensors(epoch.state(), {"runs": runs}))
            self._written[stack] = moment

    def load(self, stack: Sequence[Run]) -> tuple[list[Run], dict[str, Tensor]] | None:
        """The runs and the engine's state of a stack, or none if it was not begun."""
        path = self._file(stack[0].key)
        if not path.exists():
            return None
        advice = "begin again with --overwrite"
        try:
            state, note = unpack_tensors(files.read_bytes(path), path)
        except LookHopsError as error:
            raise LookHopsError(f"{str(error).rstrip('.')}; {advice}.") from error
        try:
            noted = [{key: run[key] for key in FIELDS} for run in note["runs"]]
            # Another machine may stack other runs together: then the stack begins again.
            if [(one["seed"], one["member"]) for one in noted] != [
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
        with files.explained(self.folder, "removed"):
            for file in sorted(self.folder.iterdir(), key=lambda file: file != self.path):
                if file.suffix in (".safetensors", ".part") or file == self.path:
                    file.unlink()
            if not any(self.folder.iterdir()):
                self.folder.rmdir()

    def _file(self, stack: str) -> Path:
        return self.folder / f"{stack}.safetensors"


def settings_of(
    graphs: Graphs, learner: Learner, protocol: Protocol, splits: Mapping[int, Split]
) -> dict[str, Any]:
    """Everything that decides a training run, as JSON can hold it."""
    digest = hashlib.sha256()
    for seed, split in splits.items():
        for part in ("train", "val", "test"):
            index = getattr(split, part).cpu().numpy().astype("<i8")
            digest.update(f"{seed} {part} {len(index)} ".encode() + index.tobytes())
    return {
        "learner": learner.to_dict(),
        "protocol": json.loads(json.dumps(asdict(protocol))),
        "data": {
            "name": graphs.name,
            "featuriser": graphs.featuriser,
            "graphs": len(graphs),
            "class_names": list(graphs.class_names),
            "fingerprint": graphs.fingerprint,
            "splits": digest.hexdigest()[:16],
        },
        "encoding": learner.encoding(graphs).to_dict(),
    }


def difference(stored: Mapping[str, Any], given: Mapping[str, Any]) -> str:
    """In words, where two settings differ; empty where they do not."""

    def options(settings: Mapping[str, Any]) -> dict[str, Any]:
        learner = settings["learner"]
        named = {"final": settings.get("final", False), "model": learner["name"]}
        return {**named, **learner["options"], **settings["protocol"], **settings["data"]}

    there, here = options(stored), options(given)
    pairs = {key: (there.get(key), here.get(key)) for key in {**here, **there}}
    return "; ".join(f"{key} {a!r} there, {b!r} here" for key, (a, b) in pairs.items() if a != b)
