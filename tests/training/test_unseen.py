"""Validation graphs answered at an epoch that they did not choose: against a few plain lines."""

from dataclasses import replace

import pytest
import torch

from lookhops.core.options import Architecture, Protocol
from lookhops.graphs.targets import pack_targets, read_target
from lookhops.tasks import task_of
from lookhops.training.trainer import train
from lookhops.training.unseen import FOLDS, Unseen

SMALL = Architecture(hidden=4, layers=1)


def asked(graphs, kind):
    """The graphs with classes, a number, or both with blanks, to be learnt."""
    sizes = [float(n) for n in graphs.nodes_per_graph]
    classes = [("few", "many")[int(y)] for y in graphs.y]
    blanks = [None if i % 4 == 0 else value for i, value in enumerate(sizes)]
    columns = {"size": sizes} if kind == "number" else {"size": blanks, "class": classes}
    if kind == "classes":
        return graphs
    return replace(graphs, **pack_targets([read_target(n, own) for n, own in columns.items()]))


@pytest.mark.parametrize("stacked", [False, True])
@pytest.mark.parametrize("kind", ["classes", "number", "both"])
def test_each_fold_is_answered_at_the_epoch_that_the_others_choose(
    tasks, monkeypatch, kind, stacked
):
    graphs = asked(tasks, kind)
    protocol = Protocol((3, 4, 5), max_epochs=12, patience=3, batch_size=16, learning_rate=0.03)
    seen: list[torch.Tensor] = []
    see = Unseen.see
    monkeypatch.setattr(Unseen, "see", lambda own, *told: seen.append(told[0]) or see(own, *told))
    task = task_of(graphs, class_weights=kind == "classes")
    runs = train(graphs, SMALL, protocol, task=task, stacked=stacked)
    differ = 0
    for member, run in enumerate(runs):
        epochs = [one[member] for one in seen] if stacked else [seen.pop(0)[0] for _ in run.history]
        target = task.targets(graphs)[run.split.val]
        outputs = torch.stack(epochs)[: len(run.history), : len(target)].double()
        found = run.predictions["unseen"]
        for fold in range(FOLDS):
            own = torch.arange(len(target)) % FOLDS == fold
            losses = [task.losses(one[~own], target[~own], run.fitted)[0] for one in outputs]
            best = int(torch.stack(losses).argmin())
            torch.testing.assert_close(found[own], task.in_units(outputs[best][own], run.fitted))
            differ += best != run.best_epoch - 1
    assert stacked or differ > 0
