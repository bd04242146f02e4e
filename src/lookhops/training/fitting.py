"""The training of one stack, epoch by epoch, by the paper's protocol."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from math import isfinite

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from lookhops.core.options import Protocol
from lookhops.tasks import Task
from lookhops.training.engine import Engine
from lookhops.training.randomness import FINAL
from lookhops.training.runs import Epoch, NotFinite, OnEpoch, Resume, Run


def train_stack(
    engine: Engine,
    task: Task,
    runs: list[Run],
    protocol: Protocol,
    resume: Resume | None,
    on_epoch: OnEpoch,
    skip_failed: bool = False,
) -> list[Run]:
    """Train the runs of an engine and answer the parts that they have with the kept weights.

    Only what is tested is calibrated: for these, answers to validation graphs are kept too, that
    had no say in which epoch is kept (:class:`Unseen`).
    """
    unseen = None
    if len(runs[0].split.test):
        target = engine.target.cpu()
        targets = [target[split.val] for split in engine.splits]
        unseen = Unseen(task, targets, engine.fitted_each)
    earlier = resume(runs) if resume else None
    if earlier is not None:
        runs, state = earlier
        engine.restore(state)
        if unseen is not None:
            unseen.restore(state)
    fit(engine, task, runs, protocol, on_epoch, unseen=unseen, skip_failed=skip_failed)
    _take_weights(engine, runs)
    parts = [part for part in ("val", "test") if len(getattr(runs[0].split, part))]
    found = {part: engine.predict(part) for part in parts}
    if unseen is not None:
        found["unseen"] = unseen.each() or found["val"]
    for part, outputs in found.items():
        for run, output in zip(runs, outputs, strict=True):
            run.predictions[part] = task.in_units(output, run.fitted)
    for run in runs:
        run.together = len(runs)
    return runs


def fit(
    engine: Engine,
    task: Task,
    runs: list[Run],
    protocol: Protocol,
    on_epoch: OnEpoch,
    *,
    unseen: Unseen | None = None,
    skip_failed: bool = False,
) -> None:
    """Epoch after epoch until every run of the stack has stopped.

    Networks that are trained on all graphs have nothing to stop by: their last weights are kept.

    Args:
        engine, task, runs, protocol, on_epoch: As for :func:`train`.
        unseen: Takes note of what validation graphs are answered in each epoch.
        skip_failed: Whether the others go on where the loss of a run is not a number: it has
            failed. Else that is an error.
    """
    final = runs[0].seed == FINAL

    def state() -> dict[str, Tensor]:
        return engine.state() if unseen is None else {**engine.state(), **unseen.state()}

    while not all(run.done(protocol) for run in runs):
        start = time.perf_counter()
        epoch = max(len(run.history) for run in runs) + 1
        train_loss = engine.epoch(epoch).tolist()
        validated = None if final else engine.validate()
        seconds = time.perf_counter() - start
        going = [i for i, run in enumerate(runs) if not run.done(protocol)]
        rows = [{"epoch": epoch, "train_loss": loss} for loss in train_loss]
        if validated is not None:
            for row, loss, score in zip(rows, *(v.tolist() for v in validated), strict=True):
                row |= {"val_loss": loss, f"val_{task.watched.name}": score}
        watched = [row.get("val_loss", -epoch) for row in rows]  # without one, later is better
        for i in going:
            if not isfinite(train_loss[i]) or not isfinite(watched[i]):
                if not skip_failed:
                    raise _not_finite(engine, runs, runs[i], epoch)
                runs[i].failed = True
        going = [i for i in going if not runs[i].failed]
        better = [i in going and watched[i] < run.best_loss for i, run in enumerate(runs)]
        engine.remember(torch.tensor(better))
        if unseen is not None:
            unseen.see(engine.validated(), torch.tensor([i in going for i in range(len(runs))]))
        for i in going:
            runs[i].history.append({**rows[i], "seconds": seconds / len(going)})
            if better[i]:
                runs[i].best_epoch, runs[i].best_loss = epoch, watched[i]
        engine.retire(torch.tensor([run.done(protocol) for run in runs]))
        on_epoch(Epoch(runs, protocol, state))


def _not_finite(engine: Engine, runs: list[Run], failed: Run, epoch: int) -> NotFinite:
    """The end of a training whose loss stopped being a number; every run gets what was kept."""
    _take_weights(engine, runs)
    kept = f"; the weights of epoch {failed.best_epoch} are kept" if failed.best_epoch else ""
    of = "the training on all graphs" if failed.seed == FINAL else f"seed {failed.seed}"
    which = f"{of}, member {failed.member}," if failed.member else of
    return NotFinite(
        f"The loss of {which} was not a finite number in epoch {epoch}{kept}. "
        "A lower learning rate may help.",
        runs,
    )


def _take_weights(engine: Engine, runs: list[Run]) -> None:
    """Give every run what was kept of its network."""
    for i, (run, weights) in enumerate(zip(runs, engine.weights(), strict=True)):
        fitted = engine.fitted_each[i]
        run.weights, run.preprocessing = weights, engine.preprocessing[i]
        run.fitted = None if fitted is None else fitted.cpu()


#: Of a validation part; each is answered at the epoch that the others choose.
FOLDS = 5
BEST, OUTPUTS = "unseen.best", "unseen.outputs"


class Unseen:
    r"""Outputs for the validation graphs, each at the epoch that would be kept without it.

    The epoch of the lowest validation loss suits the validation graphs a little better than new
    ones; conformal regions fitted on them would be a little too small. So the part is cut into
    folds :math:`F_1, \ldots, F_5`, and fold :math:`f` is answered by the network of epoch

    .. math:: e_f = \arg\min_e \mathcal{L}_e(V \setminus F_f),

    cross-fitting in the spirit of conformalised early stopping (Liang, Zhou and Sesia, 2023). One
    training gives them all: only the best so far is kept of each fold.

    Args:
        task: What is asked.
        targets: Of each member's validation part, shapes (n, ...).
        fitted: What the task took from each member's training part.
    """

    def __init__(
        self, task: Task, targets: Sequence[Tensor], fitted: Sequence[Tensor | None]
    ) -> None:
        self.task, self.sizes = task, [len(target) for target in targets]
        self.target = pad_sequence([target.cpu() for target in targets], batch_first=True)
        known = [one.cpu() for one in fitted if one is not None]
        self.fitted = torch.stack(known).expand(FOLDS, -1, -1) if known else None
        place = torch.arange(self.target.shape[1])
        self.fold = place % FOLDS
        real = place < torch.tensor(self.sizes)[:, None]
        self.others = real & (self.fold != torch.arange(FOLDS)[:, None, None])
        self.best = torch.full((FOLDS, len(targets)), torch.inf, dtype=torch.float64)
        self.outputs = self.best.new_zeros(*real.shape, task.out_channels)

    def see(self, outputs: Tensor, going: Tensor) -> None:
        """Take note of an epoch.

        Args:
            outputs: Of each member for its validation part, shape (members, n, channels).
            going: Which members have not stopped, shape (members).
        """
        outputs = outputs.double()
        target = self.target.expand(FOLDS, *self.target.shape)
        each = outputs.expand(FOLDS, *outputs.shape)
        loss = self.task.losses(each, target, self.fitted, self.others)[0]
        better = (loss < self.best) & going
        self.best = torch.where(better, loss, self.best)
        chosen = better[self.fold].transpose(0, 1)[..., None]
        self.outputs = torch.where(chosen, outputs, self.outputs)

    def each(self) -> list[Tensor] | None:
        """Each member's outputs, shapes (n, channels); none where no epoch was seen."""
        if not bool(self.best.isfinite().all()):
            return None
        return [own[:size] for own, size in zip(self.outputs, self.sizes, strict=True)]

    def state(self) -> dict[str, Tensor]:
        """What a later one needs to go on from here."""
        return {BEST: self.best.clone(), OUTPUTS: self.outputs.clone()}

    def restore(self, state: Mapping[str, Tensor]) -> None:
        """Go on from what :meth:`state` gave."""
        if state[BEST].shape == self.best.shape:
            self.best, self.outputs = state[BEST], state[OUTPUTS]
