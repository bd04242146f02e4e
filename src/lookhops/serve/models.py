"""The models that are served: each is reloaded when its folder changes, in one step."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from pathlib import Path
from typing import Any

from lookhops.core.errors import LookHopsError
from lookhops.core.files import current
from lookhops.core.words import agreeing, counted
from lookhops.graphs.features import BLANK
from lookhops.models.folder import CONFIG, REFERENCE, WEIGHTS
from lookhops.models.predictor import Predictor
from lookhops.serve.batching import Batcher, Watcher
from lookhops.serve.bodies import Refused

#: Seconds between two looks at the folders.
LOOK_EVERY = 1.0

log = logging.getLogger("lookhops.serve")


class ServedModel:
    """A model folder, and the thread that answers with it; the watcher is told of batches."""

    def __init__(self, folder: Path, device: str, watcher: Watcher) -> None:
        self.folder, self.device = folder, device
        self.name = folder.resolve().name
        self._seen = self._look()
        #: What answers now; a request stays with the one that it began with.
        self.predictor = Predictor(folder, device)
        #: Why the folder as it is now could not be read, where it could not.
        self.trouble = ""
        self.batcher = Batcher(f"model {self.name}", watcher)

    @property
    def version(self) -> str:
        """A short name for the weights."""
        return version_of(self.predictor)

    @property
    def reads_molecules(self) -> bool:
        """Whether it was trained on molecules."""
        return self.predictor.encoding.reads_molecules

    @property
    def features(self) -> list[dict[str, Any]]:
        """The features of whole graphs that a question must bring: names, and values of labels.

        Descriptors are computed, not asked for; any feature may be left blank.
        """
        encoding = self.predictor.encoding
        whole, computed = encoding.whole, {*encoding.descriptors}
        if whole is None or whole.are_unknown:
            return []
        labels = zip(whole.labels, whole.values, strict=True)
        return [
            *({"name": name} for name in whole.numbers if name not in computed),
            *({"name": name, "values": [v for v in own if v != BLANK]} for name, own in labels),
        ]

    def reload(self) -> bool:
        """Read the folder if it has changed; whether another model answers from now on.

        A folder that cannot be read changes nothing.
        """
        seen = self._look()
        if seen == self._seen and not self.trouble:
            return False
        try:
            found = Predictor(self.folder, self.device)
        except LookHopsError as error:
            if self.trouble != str(error):
                log.warning("%s; the model read before still answers", str(error).rstrip("."))
            self.trouble, self._seen = str(error), seen
            return False
        before = self.version
        self.predictor, self.trouble, self._seen = found, "", seen
        if self.version != before:
            log.info("%s: reloaded", self.name)
        return self.version != before

    def _look(self) -> tuple[tuple[int, ...], ...]:
        """What changes when the folder does."""
        return tuple(_look_at(self.folder / name) for name in (CONFIG, WEIGHTS, REFERENCE))

    def about(self) -> dict[str, Any]:
        """What there is to know of the model, as JSON can hold it."""
        checkpoint = self.predictor.checkpoint
        config = checkpoint.config
        summary, task = config["metrics"]["summary"], checkpoint.task
        heads = [{"name": head.name, **head.task.choices} for head in task.heads]
        shown = (metric for metric in task.metrics if metric.shown and summary.get(metric.name))
        return {
            "name": self.name,
            "version": self.version,
            "trained_on": config["data"]["name"],
            "graphs": config["data"]["graphs"],
            "molecules": self.reads_molecules,
            "features": self.features,
            "neighbours": self.predictor.knows_neighbours,
            "targets": heads,
            "networks": sum(len(checkpoint.members[seed]) for seed in checkpoint.answering),
            "tested": {one.title: _tested(one, summary[one.name]) for one in shown},
            "trouble": self.trouble or None,
        }


def _look_at(path: Path) -> tuple[int, ...]:
    """What changes when a file of a folder does; nothing of one that is not there."""
    try:
        found = current(path).stat()
    except OSError:
        return ()
    return found.st_mtime_ns, found.st_size, found.st_ino


def version_of(predictor: Predictor) -> str:
    """A short name for a model's weights."""
    return str(predictor.checkpoint.config["weights_sha256"])[:12]


def _tested(metric: Any, found: Mapping[str, Any]) -> str:
    """A metric of the test parts in words: ``80.1 % (77.9 to 82.3 %)``."""
    ends = found.get("interval")
    interval = f" ({metric.written(*ends, joint=' to ')})" if ends else ""
    return f"{metric.written(found['mean'])}{interval}"


class Models:
    """All models that are served, by the names of their folders; the first is the default."""

    def __init__(self, folders: Sequence[Path], device: str, watcher: Watcher) -> None:
        names = [folder.resolve().name for folder in folders]
        for name in names:
            if names.count(name) > 1:
                raise LookHopsError(
                    f"Two models are called {name!r}: models are called as their folders; rename "
                    "one."
                )
        made = (ServedModel(folder, device, watcher) for folder in folders)
        self.by_name = {model.name: model for model in made}

    def named(self, name: str | None) -> ServedModel:
        """The model of a name; the first where none is given."""
        if name is None:
            return next(iter(self.by_name.values()))
        if name not in self.by_name:
            known = ", ".join(self.by_name)
            count = len(self.by_name)
            there = f"there {agreeing(count, 'is', 'are')} {counted(count, 'model')}"
            raise Refused(HTTPStatus.NOT_FOUND, f"No model is called {name!r}; {there}: {known}.")
        return self.by_name[name]

    async def keep_fresh(self) -> None:
        """Reload models whose folders have changed, for as long as the service runs."""
        while True:
            await asyncio.sleep(LOOK_EVERY)
            for model in self.by_name.values():
                try:
                    await asyncio.to_thread(model.reload)
                except Exception:  # a failed reload does not stop the watcher
                    log.exception("%s: cannot be reloaded", model.name)

    def close(self) -> None:
        """End the threads when all that was asked is answered."""
        for model in self.by_name.values():
            model.batcher.close()
