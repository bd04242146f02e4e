"""The recommended model: one rule, by the kind and the number of the graphs.

docs/model.md has the measurements that it follows from.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from lookhops.core.options import RECOMMENDED
from lookhops.graphs import Graphs
from lookhops.learners.blend import Blend
from lookhops.learners.gp import GaussianProcess
from lookhops.learners.learner import Learner
from lookhops.learners.network import Network
from lookhops.sources.rdkit.descriptors import is_descriptor
from lookhops.tasks import Task

#: Up to so many training molecules the process alone is recommended.
MOST_ALONE = 3_000
#: How many hops apart the atoms of a pair are at most that the process compares in molecules.
PAIRS = 20
#: The best partner of the process for numbers of molecules: the paper's layers, plain and wide.
PLAIN = replace(RECOMMENDED, pool="none", normalize=False, hidden=256, fingerprint=None)


@dataclass(frozen=True)
class Recommendation:
    """A learner and the reason for it.

    Args:
        learner: What to train.
        why: A sentence without its full stop.
    """

    learner: Learner
    why: str

    @property
    def said(self) -> str:
        """Both in a line."""
        name = self.learner.name if self.learner.has_epochs else self.learner.spelled
        return f"{name} ({self.learner.title}): {self.why}"


def recommend(graphs: Graphs, task: Task, training_graphs: int) -> Recommendation:
    """The model that is recommended for a set.

    Args:
        graphs: The graphs.
        task: What is asked of them.
        training_graphs: How many of them it is fitted on.
    """
    whole = graphs.whole
    described = any(map(is_descriptor, whole.number_names))
    more = bool(whole.label_names) or not all(map(is_descriptor, whole.number_names))
    process = GaussianProcess(pairs=PAIRS if described else 0)
    numbers = not any(head.task.class_names for head in task.heads)
    network = PLAIN if described and numbers else RECOMMENDED
    few = f"{training_graphs:,} training graphs"
    if training_graphs > process.exact_graphs:
        return Recommendation(
            Network(network), f"{few} are too many to solve a Gaussian process exactly"
        )
    if described and not more and training_graphs <= MOST_ALONE:
        return Recommendation(
            process, f"on {few}, molecules with descriptors, a network beside it adds little"
        )
    why = f"on {few} of this kind both together are better than each"
    if described and more:
        why = "the effect of a column can depend on the structure, which a network can learn"
        why = f"on {few} with columns, {why}"
    return Recommendation(Blend(network, process), why)
