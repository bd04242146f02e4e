"""Studies of Optuna: one in memory to work with, and its finished trials in an SQLite file."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lookhops.core.errors import LookHopsError
from lookhops.tasks import Metric

if TYPE_CHECKING:
    from optuna import Study
    from optuna.trial import FrozenTrial

#: Seconds to wait for another process that writes.
WAIT = 60
#: Where a study keeps what it was begun with.
SETTINGS = "settings"


@dataclass(frozen=True, eq=False)
class StudyFile:
    """The study of one search in an SQLite file, which Optuna's own tools read too.

    Only finished trials go there: a file is slow to write one number at a time, and what was on its
    way when a process was killed is tried again.
    """

    path: Path
    study: Study

    @classmethod
    def open(cls, path: Path, name: str, metric: Metric, settings: Mapping[str, Any]) -> StudyFile:
        """Begin a study in a file, perhaps beside others, or continue it.

        ``settings`` are all that decides the search but the number of trials; a study that was
        begun with others is refused.
        """
        from optuna.storages import RDBStorage
        from sqlalchemy import URL

        url = URL.create("sqlite", database=str(path)).render_as_string()
        plain = json.loads(json.dumps(settings))
        with _explained(path):
            storage = RDBStorage(url, {"connect_args": {"timeout": WAIT}})
            study = new_study(metric, storage=storage, study_name=name, load_if_exists=True)
            begun = study.user_attrs.get(SETTINGS)
            if begun is None:
                study.set_user_attr(SETTINGS, plain)
        if begun is not None and begun != plain:
            differs = [key for key in plain if begun.get(key) != plain[key]] or list(begun)
            raise LookHopsError(
                f"{path}: the search began with other settings ({', '.join(differs)}); continue "
                "with the same, tune into another folder, or begin again with --overwrite."
            )
        return cls(path, study)

    def in_memory(self, metric: Metric) -> Study:
        """A study to work with, which has the trials of the file."""
        study = new_study(metric)
        with _explained(self.path):
            study.add_trials(finished(self.study))
        return study

    def add(self, trials: Sequence[FrozenTrial]) -> None:
        """Keep finished trials."""
        with _explained(self.path):
            self.study.add_trials(trials)


def new_study(metric: Metric, **where: Any) -> Study:
    """A study whose trials are judged by a metric; in memory, unless a storage is given."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    return optuna.create_study(
        direction="maximize" if metric.higher_is_better else "minimize", **where
    )


def finished(study: Study) -> list[FrozenTrial]:
    """The trials that are judged, pruned ones too."""
    from optuna.trial import TrialState

    return study.get_trials(deepcopy=False, states=(TrialState.COMPLETE, TrialState.PRUNED))


def is_complete(trial: FrozenTrial) -> bool:
    """Whether a trial was judged on all inner splits: the value of a pruned one is no mean."""
    from optuna.trial import TrialState

    return trial.state == TrialState.COMPLETE


def best(trials: Sequence[FrozenTrial], metric: Metric) -> FrozenTrial:
    """The trial with the best mean over all inner splits; of equal ones the first."""
    known = [trial for trial in trials if is_complete(trial)]
    if not known:
        raise LookHopsError(
            "No configuration could be judged: the loss of each stopped being a number, or the "
            "validation parts are too small for the metric."
        )
    sign = -1 if metric.higher_is_better else 1
    return min(known, key=lambda trial: (sign * (trial.value or 0.0), trial.number))


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Say in a sentence what is wrong with the file of a study."""
    from optuna.exceptions import OptunaError
    from sqlalchemy.exc import SQLAlchemyError

    try:
        yield
    except (SQLAlchemyError, OptunaError, RuntimeError) as error:
        reason = str(getattr(error, "orig", None) or error).splitlines()[0].rstrip(".")
        raise LookHopsError(
            f"{path}: cannot be used as a study ({reason}); begin again with --overwrite."
        ) from error
