"""Answers to validation graphs that had no say in which epoch is kept, for calibration."""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from lookhops.tasks import Task

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
        each = [one.cpu() for one in fitted if one is not None]
        self.fitted = torch.stack(each).expand(FOLDS, -1, -1) if each else None
        number = torch.arange(self.target.shape[1])
        self.fold = number % FOLDS
        real = number < torch.tensor(self.sizes)[:, None]
        self.others = real & (self.fold != torch.arange(FOLDS)[:, None, None])
        self.best = torch.full((FOLDS, len(targets)), torch.inf, dtype=torch.float64)
        self.outputs = self.best.new_zeros(*real.shape, task.out_channels)

    def see(self, outputs: Tensor, going: Tensor) -> None:
        """Take note of an epoch: outputs (members, n, channels), and who has not stopped."""
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
        return [outputs[:n] for outputs, n in zip(self.outputs, self.sizes, strict=True)]

    def state(self) -> dict[str, Tensor]:
        return {BEST: self.best.clone(), OUTPUTS: self.outputs.clone()}

    def restore(self, state: Mapping[str, Tensor]) -> None:
        if state[BEST].shape == self.best.shape:
            self.best, self.outputs = state[BEST], state[OUTPUTS]
