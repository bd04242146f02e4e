"""Which k, from the evidence: the weight that a Gaussian process gives to each hop."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import one_hot

from lookhops.core.arrays import Array
from lookhops.core.errors import LookHopsError
from lookhops.core.words import compact_percent, counted
from lookhops.graphs import Graphs
from lookhops.learners.gp_solve import Weights, solve, weights_by_evidence
from lookhops.learners.kernels import tanimoto
from lookhops.neighbourhoods import unary_codes
from lookhops.neighbourhoods.labels import MAX_HOPS, HopScores, graphs_to_predict, seen_by_hop
from lookhops.neighbourhoods.similarity import Postings

#: Resamples of the graphs, and the most graphs in each.
DRAWS, GRAPHS = 8, 300
#: A resample has at most this share of the graphs.
SHARE = 0.8
#: A score that is lower by no more than this is as good.
TOLERANCE = 0.02


@dataclass(frozen=True, eq=False)
class HopWeights(HopScores):
    """The weight of each hop in a Gaussian process over hops, by the marginal likelihood.

    Scores are leave-one-out on each resample.
    """

    #: The share of the prior variance that each hop has in the process over hops 0 to h, shape
    #: (H + 1, H + 1, resamples): first how far the process looks, then the hop.
    shares: Array

    @property
    def enough(self) -> int | None:
        """The fewest hops that lose no more than 0.02, or the spread over resamples, to the best.

        None where the best is no better than the commonest class, or the mean, by the same rule.
        """
        best = self.scores[self.best]
        if _as_good(self.naive[None], best)[0]:
            return None
        return int(_as_good(self.scores, best).argmax())

    @property
    def weights(self) -> Array:
        """The share of each hop in the process that looks as far as is :attr:`enough`, mean."""
        return self._shares.mean(1)

    @property
    def spread(self) -> Array:
        """The standard deviation of the :attr:`weights` over resamples."""
        return self._shares.std(1)

    @property
    def _shares(self) -> Array:
        return self.shares[-1 if self.enough is None else self.enough]

    def sentence(self) -> str:
        """The answer in words."""
        h = self.enough
        if h is None:
            rival = "the mean" if self.number else "the commonest class"
            return (
                f"A Gaussian process over hops does no better than {rival}: its weights say "
                "nothing."
            )
        right = self.written(self.mean[h]) + ("" if self.number else " right")
        largest = int(self.weights.argmax())
        return (
            f"A Gaussian process over hops needs {counted(h, 'hop')} ({right}, leave-one-out); hop "
            f"{largest} has its largest weight ({compact_percent(self.weights[largest])})."
        )

    def to_dict(self) -> dict[str, Any]:
        """Everything a report needs, as plain numbers and text that JSON can hold."""
        return {
            "graphs": self.graphs,
            "resamples": self.scores.shape[1],
            "hops": list(range(len(self.scores))),
            "score": self.mean.tolist(),
            "weight": self.weights.tolist(),
            "weight_std": self.spread.tolist(),
            "enough": self.enough,
            "sentence": self.sentence(),
            **({"number": self.number} if self.number else {}),
        }


def _as_good(scores: Array, best: Array) -> Array:
    """Whether scores lose no more to the best than the tolerance or the spread over resamples."""
    lost = best - scores
    good: Array = lost.mean(1) <= np.maximum(lost.std(1), TOLERANCE)
    return good


def look_weights(
    graphs: Graphs,
    max_hops: int = MAX_HOPS,
    draws: int = DRAWS,
    seed: int = 0,
    progress: Callable[[str, float], None] | None = None,
) -> HopWeights:
    """Fit Gaussian processes over hops 0 to h, and see which hops get the weight.

    The kernel of hop h compares what :func:`~lookhops.look_labels` reads there: the exact
    neighbourhoods within h hops and the labels exactly h hops away. For each resample and each h
    the weights and the noise are those of the largest marginal likelihood.

    Args:
        graphs: The graphs, with one target; those where it is blank are left out.
        max_hops: The most hops to look at, H.
        draws: Resamples: 80% of the graphs each, at most 300.
        seed: Of the resamples.
        progress: Called with what is being done, and how much of it from 0 to 1.
    """
    if draws < 2:
        raise LookHopsError(f"draws is a whole number from 2, not {draws}.")
    graphs = graphs_to_predict(graphs, max_hops)
    report = progress or (lambda _what, _share: None)
    size = min(int(SHARE * len(graphs)), GRAPHS)
    generator = torch.Generator().manual_seed(seed)
    scores = np.empty((max_hops + 1, draws))
    naive = np.zeros(draws)
    shares = np.zeros((max_hops + 1, max_hops + 1, draws))
    for draw in range(draws):
        report("weighing hops", draw / draws)
        sample = graphs.select(torch.randperm(len(graphs), generator=generator)[:size])
        kernels, targets = _kernels(sample, max_hops), _targets(sample)
        if graphs.num_classes:
            naive[draw] = float((targets > 0).double().mean(0).max())
        for h in range(max_hops + 1):
            weights = weights_by_evidence(kernels[: h + 1], targets)
            scores[h, draw] = _score(kernels[: h + 1], weights, targets, graphs.num_classes)
            total = float(weights.kernels.sum()) + weights.noise
            shares[h, : h + 1, draw] = weights.kernels / total
    number = None if graphs.num_classes else graphs.targets[0].name
    return HopWeights(graphs.name, size, scores, naive, shares, number=number)


def _kernels(graphs: Graphs, max_hops: int) -> Tensor:
    """One kernel for each hop, the Tanimoto form of optimal assignment, shape (H + 1, g, g)."""
    found = []
    for seen in seen_by_hop(graphs, max_hops):
        codes, ptr = unary_codes(graphs, seen).flatten(), graphs.node_ptr.long() * seen.shape[1]
        sizes = ptr.diff().double()
        shared = Postings.of(codes, ptr).all_shared(codes, ptr).double()
        found.append(tanimoto(shared, sizes[:, None] + sizes))
    return torch.stack(found)


def _targets(graphs: Graphs) -> Tensor:
    """Standardised numbers, or indicators of classes, float64, shape (g, c)."""
    assert graphs.y is not None
    y = graphs.y.long() if graphs.num_classes else graphs.y
    values = one_hot(y, graphs.num_classes).double() if graphs.num_classes else y.double()[:, None]
    apart = values - values.mean(0)
    return (apart / apart.square().mean().sqrt().clamp(min=1e-12)).contiguous()


def _score(kernels: Tensor, weights: Weights, targets: Tensor, classes: int) -> float:
    """The leave-one-out accuracy, or R²."""
    covariance = torch.tensordot(weights.kernels, kernels, 1)
    covariance.diagonal().add_(weights.noise)
    left_out = solve(covariance.contiguous(), targets).left_out
    if classes:
        return float((left_out.argmax(1) == targets.argmax(1)).double().mean())
    return 1 - float((left_out - targets).square().sum() / targets.square().sum())
