"""Names of learners: from names of models to learners, and from what was saved."""

from __future__ import annotations

from typing import Any

from lookhops.core.schema import AtLeast, located, read
from lookhops.learners.learner import Learner
from lookhops.learners.network import Network
from lookhops.nn.registry import find

#: Every learner by its name. A new one is a file of this package and a line here.
LEARNERS: dict[str, type[Learner]] = {kind.name: kind for kind in (Network,)}
#: What ``Learner.to_dict`` gives.
SAVED = AtLeast({"name": str, "options": Any})


def learner_from_dict(values: Any, path: str = "learner") -> Learner:
    """The learner that :meth:`~lookhops.learners.Learner.to_dict` wrote, checked."""
    saved: Any = read(SAVED, values, path)
    with located(path):
        return find("learner", LEARNERS, saved["name"]).from_options(saved["options"])
