"""What lies in a model's folder, read for a report: each part is optional but ``config.json``."""

from __future__ import annotations

import io
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from lookhops.core.errors import LookHopsError
from lookhops.core.files import current, read_bytes, read_json
from lookhops.core.reading import AS_USUAL, Reading
from lookhops.core.schema import located
from lookhops.core.tables import with_formula
from lookhops.core.words import counted
from lookhops.learners import Learner
from lookhops.models.config import (
    CONFIG,
    HISTORY,
    INFORMATION,
    PREDICTIONS,
    learner_in,
    one_model,
    read_config,
    task_in,
)
from lookhops.models.folder import check_hash
from lookhops.report.sections.data import check_information
from lookhops.runs.tune.tuning import Tuning, read_tuning
from lookhops.tasks import Metric, Task
from lookhops.tasks.answers import TestAnswers, Tested
from lookhops.tasks.task import Head

COLUMNS = ("epoch", "train_loss", "val_loss")
#: Of each seed and member, its epochs, one a row.
History = Mapping[tuple[int, int], pd.DataFrame]


@dataclass(frozen=True, eq=False)
class ModelFolder:
    """A model's folder."""

    path: Path
    config: Mapping[str, Any]  #: the content of ``config.json``
    history: History
    #: What the seeds answered to their test graphs, the truth of classes as their numbers, NaN
    #: where it is blank; none without ``predictions.csv``.
    predictions: pd.DataFrame | None
    information: Mapping[str, Any] | None = None  #: of hops, where it was measured

    @cached_property
    def learner(self) -> Learner:
        return learner_in(self.config)

    @cached_property
    def task(self) -> Task:
        return task_in(self.config)

    @cached_property
    def tuning(self) -> Tuning | None:
        return read_tuning(self.path)

    @property
    def graphs(self) -> str:
        """How many graphs it was made from, and what was known of them."""
        return f"{counted(self.config['data']['graphs'], 'graph')} {self.task.asked}"

    @property
    def seeds(self) -> list[int]:
        return [int(seed) for seed in self.config["epochs"]]

    @property
    def best_epoch(self) -> dict[int, int]:
        return {int(seed): int(epoch) for seed, epoch in self.config["best_epoch"].items()}

    def score(self, metric: Metric) -> str | None:
        """A metric of the test parts over the seeds, as it is written; none where none is known."""
        found = self.config["metrics"]["summary"].get(metric.name)
        spread = [found["std"]] if found and len(self.seeds) > 1 else []
        return metric.written(found["mean"], *spread) if found else None

    def answers(self, head: Head) -> TestAnswers | None:
        """What the seeds answered to the test graphs whose target is known, if it was kept."""
        if self.predictions is None:
            return None
        truth, given = columns_of(self.task)
        column = truth[max(head.column, 0)]
        rows = self.predictions.dropna(subset=[column])
        about = {name: rows[name].to_numpy() for name in ("seed", "graph", "nodes")}
        values = rows[given].to_numpy()[:, head.channels]
        return TestAnswers(
            ids=rows["id"].tolist(), truth=rows[column].to_numpy(), values=values, **about
        )

    def tested(self, head: Head, n: str) -> Tested:
        """What the tests gave for one target, under the names of its own task."""
        answers = self.answers(head) or None  # none where all are blank
        return Tested.of(self.config["metrics"], head, n, answers)


def read_folder(path: Path) -> ModelFolder:
    """Read a model's folder, or say in a sentence what is wrong with it."""
    return replace(one_model(path, _read_folder), information=read_information(path))


def _read_folder(path: Path) -> ModelFolder:
    config = read_config(path)
    found = ModelFolder(path, config, _history(path, config), _predictions(path, config))
    first = {seed: len(rows) for (seed, member), rows in found.history.items() if member == 0}
    if any(count < found.best_epoch.get(seed, 0) for seed, count in first.items()):
        raise LookHopsError(f"{path / HISTORY}: has fewer epochs than {CONFIG} says; remove it.")
    return found


def read_information(folder: Path) -> dict[str, Any] | None:
    """The hop information that was measured for the models of a folder, if it is there."""
    path = folder / INFORMATION
    if not current(path).is_file():
        return None
    with located(f"{path}: not what `lookhops look --json` prints, remove it"):
        return check_information(read_json(path))


def model_folders(path: Path) -> list[Path]:
    """The folders in a folder that hold a model."""
    try:
        return sorted(one for one in path.iterdir() if current(one / CONFIG).is_file())
    except OSError as error:
        raise LookHopsError(f"{path}: cannot be read ({error.strerror}).") from error


def reading_of(path: Path) -> Reading:
    """How the graphs were read that the model of a folder, or the first of several, was trained on.

    As usual where there is no model.
    """
    if not path.is_dir():
        return AS_USUAL
    folders = [path] if current(path / CONFIG).is_file() else model_folders(path)
    return Reading.from_dict(read_config(folders[0]).get("reading", {})) if folders else AS_USUAL


def _history(folder: Path, config: Mapping[str, Any]) -> History:
    """The epochs of each seed and member; none where there is no such file."""
    watched = f"val_{task_in(config).watched.name}"
    columns = {"seed": int, **dict.fromkeys((*COLUMNS, watched), float), "member": int}
    optional = (watched, "member")
    rows = _table(folder / HISTORY, config["history_sha256"], columns, optional)
    if rows is None:
        return {}
    if "member" not in rows:
        rows["member"] = 0
    parts: Any = rows.groupby(["seed", "member"], sort=False)
    return dict(iter(parts))


def _predictions(folder: Path, config: Mapping[str, Any]) -> pd.DataFrame | None:
    task = task_in(config)
    truth, given = columns_of(task)
    columns: dict[str, Any] = dict.fromkeys(("seed", "graph", "nodes"), int)
    columns |= {"id": str, **dict.fromkeys(given, float)}
    columns |= {name: head.task.parse for name, head in zip(truth, task.heads, strict=True)}
    rows = _table(folder / PREDICTIONS, config["predictions_sha256"], columns)
    return None if rows is None or rows.empty else rows


def columns_of(task: Task) -> tuple[list[str], list[str]]:
    """The columns of ``predictions.csv`` that hold the truth, and those with the answers."""
    count = len(task.heads)
    return list(task.columns[:count]), list(task.columns[count:])


def _table(
    path: Path, sha256: str, columns: Mapping[str, Any], optional: Collection[str] = ()
) -> pd.DataFrame | None:
    """Columns of a table, each by its type or by what reads its texts.

    None where there is no such file; one that is not the model's is refused.
    """
    if not current(path).is_file():
        return None
    content = read_bytes(path)
    check_hash(path, content, sha256, "remove the file")
    try:  # as text first: a class may be called "NA", and Python reads numbers to the last digit
        texts = pd.read_csv(io.BytesIO(content), dtype=str, na_filter=False)
        texts = texts.map(with_formula).rename(columns=with_formula)
        return pd.DataFrame(
            {
                name: texts[name].astype(kind) if isinstance(kind, type) else kind([*texts[name]])
                for name, kind in columns.items()
                if name in texts or name not in optional
            }
        )
    except (ValueError, KeyError) as error:
        raise LookHopsError(f"{path}: not a table of `lookhops train` ({error}).") from error
