"""Candidates of one shape, trained together and judged by validation: nothing is tested."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import torch

from lookhops.core.options import Architecture, Protocol
from lookhops.encoding import Encoding
from lookhops.graphs import Graphs
from lookhops.sources.splits import Split
from lookhops.tasks import Task
from lookhops.training.batches import number_of_batches
from lookhops.training.device import in_halves
from lookhops.training.eager import EagerEngine
from lookhops.training.fitting import fit
from lookhops.training.randomness import seeded_model
from lookhops.training.rates import Rates
from lookhops.training.runs import Progress, Run
from lookhops.training.stacked import StackedEngine, stackable


@dataclass(frozen=True)
class Judged:
    """What validation says of a candidate on a split.

    Args:
        score: The task's main metric of the validation part; none where the loss stopped being a
            number, or the metric is not defined there.
        loss: The lowest validation loss.
        epochs: That it was trained for.
        seconds: Its share of the time, by its epochs.
        pruned: Whether its training was ended early; the score is the best until then.
    """

    score: float | None
    loss: float
    epochs: int
    seconds: float
    pruned: bool = False


#: A network to train: its rates, and the seed of its split and of all that is random in it.
Wanted = tuple[Rates, int]
#: Asked after each epoch which of the candidates of a stack, known by their rates, are not worth
#: going on with.
Prune = Callable[[Sequence[tuple[Rates, Run]]], Sequence[bool]]


@dataclass(frozen=True, eq=False)
class CandidateTrainer:
    """Trains candidates, those of one shape in one stack. Each is the same network as alone.

    Args:
        graphs: Graphs with targets.
        task: What is asked.
        protocol: How to train; neither its rates nor its seeds and splits are read.
        device: Where.
        stacked: Whether candidates are trained together, where their layers allow it.
        on_epoch: Called after each epoch.
    """

    graphs: Graphs
    task: Task
    protocol: Protocol
    device: torch.device
    stacked: bool = True
    on_epoch: Callable[[Progress], None] = lambda progress: None

    def judge(
        self,
        architecture: Architecture,
        rates: Sequence[Rates],
        splits: Mapping[int, Split],
        prune: Prune = lambda going: [False] * len(going),
    ) -> list[list[Judged]]:
        """Train a network for each of the rates on each split.

        Args:
            architecture: The shape that they share; its dropout is not read.
            rates: What they differ in.
            splits: By their seeds; the test parts are not read.
            prune: Asked after each epoch which networks of a stack are to end.

        Returns:
            For each of the rates, what validation says on each split.
        """
        wanted = dict.fromkeys((own, seed) for own in rates for seed in splits)
        together = self.stacked and self._stackable(architecture)
        stacks: dict[int, list[Wanted]] = {}
        nodes = self.graphs.nodes_per_graph.cpu()
        for i, one in enumerate(wanted):  # networks of a stack take equally many steps
            steps = number_of_batches(splits[one[1]].train, nodes, self.protocol)
            stacks.setdefault(steps if together else i, []).append(one)
        work = partial(self._train, architecture, splits, together, prune)
        found: dict[Wanted, Judged] = {}
        for stack in stacks.values():
            for judged in in_halves(work, stack):
                found |= judged
        return [[found[own, seed] for seed in splits] for own in rates]

    def _stackable(self, architecture: Architecture) -> bool:
        told = Encoding.fit(self.graphs, architecture.reads_edges)
        outputs = self.task.out_channels
        return stackable(seeded_model(0, told.width, outputs, architecture, **told.sizes))

    def _train(
        self,
        architecture: Architecture,
        splits: Mapping[int, Split],
        together: bool,
        prune: Prune,
        wanted: Sequence[Wanted],
    ) -> dict[Wanted, Judged]:
        """Train one stack."""
        start = time.perf_counter()
        nothing, task = torch.zeros(0, dtype=torch.long), self.task
        rates, seeds = zip(*wanted, strict=True)
        own = {seed: Split(splits[seed].train, splits[seed].val, nothing) for seed in seeds}
        make = StackedEngine if together else EagerEngine
        rest = [own[seed] for seed in seeds], seeds, architecture, self.protocol, self.device, rates
        engine = make(self.graphs, task, *rest)
        runs = [Run(seed, own[seed]) for seed in seeds]

        def after_epoch(progress: Progress) -> None:
            self.on_epoch(progress)
            going = [
                (one, run)
                for one, run in zip(rates, runs, strict=True)
                if not run.done(self.protocol)
            ]
            for (_, run), ends in zip(going, prune(going), strict=True):
                run.pruned = ends

        fit(engine, task, runs, self.protocol, after_epoch, go_on=True)
        target, outputs = task.targets(self.graphs).cpu(), engine.predict("val")
        seconds = (time.perf_counter() - start) / max(sum(len(run.history) for run in runs), 1)
        found = {}
        for one, run, output, fitted in zip(wanted, runs, outputs, engine.fitted_each, strict=True):
            answers = task.in_units(output, None if fitted is None else fitted.cpu())
            score = task.evaluate(answers, target[run.split.val])[task.main.name]
            score, epochs = None if run.failed else score, len(run.history)
            found[one] = Judged(score, run.best_loss, epochs, seconds * epochs, run.pruned)
        return found
