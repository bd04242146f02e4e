"""The state of an unfinished training, so that it can go on as if it had not been interrupted.

It lies in ``FOLDER/resume``: ``settings.json``, written before training begins, and one file for
each stack of seeds that an engine trains, replaced in one rename. What finished stacks predicted is
computed again from their state.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from torch import Tensor

from lookhops.datasets.splits import Split
from lookhops.errors import LookHopsError
from lookhops.files import (
    pack_tensors,
    read_bytes,
    read_json,
    unpack_tensors,
    write_bytes,
    write_json,
)
from lookhops.models.folder import difference
from lookhops.training.trainer import Progress, Run

_FIELDS = ("seed", "history", "best_epoch", "best_loss")


class ResumeState:
    """Reads and writes the state of one training.

    Args:
        folder: The model's folder.
        settings: What :func:`~lookhops.models.folder.settings_of` gave.
        every: Seconds between two writes.
    """

    def __init__(self, folder: Path, settings: Mapping[str, Any], every: float = 10.0) -> None:
        self.folder = folder / "resume"
        self.settings = settings
        self.every = every
        self._written: dict[int, float] = {}

    def exists(self) -> bool:
        """Whether a training was begun here and is not finished."""
        return (self.folder / "settings.json").exists()

    def begin(self) -> None:
        """Start from nothing; fails here, and not hours later, where the folder is not writable."""
        self.clear()
        write_json(self.folder / "settings.json", self.settings)

    def check(self) -> None:
        """Refuse to go on with other settings than those that the training began with."""
        path = self.folder / "settings.json"
        if different := difference(read_json(path), self.settings):
            raise LookHopsError(
                f"{path}: the training began with other settings ({different}); resume it with "
                "the same, or begin anew with --overwrite."
            )

    def save(self, progress: Progress, now: bool = True) -> None:
        """Write the state of a stack; with ``now`` false only if the last write was long ago."""
        stack = progress.runs[0].seed
        moment = time.monotonic()
        if not now and moment - self._written.get(stack, -float("inf")) < self.every:
            return
        runs = [{key: getattr(run, key) for key in _FIELDS} for run in progress.runs]
        content = pack_tensors(progress.engine.state(), {"runs": runs})
        write_bytes(self._file(stack), content)
        self._written[stack] = moment

    def load(
        self, seeds: Sequence[int], splits: Mapping[int, Split]
    ) -> tuple[list[Run], dict[str, Tensor]] | None:
        """The runs and the engine's state of a stack, or none if it was not begun."""
        path = self._file(seeds[0])
        if not path.exists():
            return None
        state, note = unpack_tensors(read_bytes(path), path)
        try:
            runs = [
                Run(split=splits[run["seed"]], **{key: run[key] for key in _FIELDS})
                for run in note["runs"]
            ]
        except (KeyError, TypeError) as error:
            raise LookHopsError(f"{path}: damaged ({error!r}); use --overwrite.") from error
        # Another machine may stack other seeds together: then the stack begins anew.
        return (runs, state) if [run.seed for run in runs] == list(seeds) else None

    def clear(self) -> None:
        """Remove the state, the settings first: without them nothing is resumed by halves."""
        if not self.folder.is_dir():
            return
        try:
            files = sorted(self.folder.iterdir(), key=lambda file: file.name != "settings.json")
            for file in files:
                if file.suffix in (".safetensors", ".part") or file.name == "settings.json":
                    file.unlink()
            if not any(self.folder.iterdir()):
                self.folder.rmdir()
        except OSError as error:
            raise LookHopsError(f"{self.folder}: cannot be removed ({error.strerror}).") from error

    def _file(self, seed: int) -> Path:
        return self.folder / f"{seed}.safetensors"
