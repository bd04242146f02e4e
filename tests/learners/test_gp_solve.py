"""The arithmetic of a Gaussian process against scikit-learn's, and against refits."""

import numpy as np
import pytest
import torch
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import Kernel

from lookhops.core.errors import LookHopsError
from lookhops.learners.gp_solve import (
    evidence,
    fit_link,
    solve,
    solve_inducing,
    weights_by_evidence,
)


class Precomputed(Kernel):
    """A kernel that was computed before; X holds numbers of graphs."""

    def __init__(self, gram):
        self.gram = gram

    def __call__(self, X, Y=None, eval_gradient=False):
        other = X if Y is None else Y
        return self.gram[np.ix_(X[:, 0].astype(int), other[:, 0].astype(int))]

    def diag(self, X):
        return self.gram.diagonal()[X[:, 0].astype(int)]

    def is_stationary(self):
        return False


@pytest.fixture
def kernels() -> torch.Tensor:
    """Three kernels of 60 points."""
    x = torch.randn(60, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    apart = torch.cdist(x, x).square()
    return torch.stack(((-apart).exp(), (-apart / 10).exp(), x @ x.T))


@pytest.fixture
def targets() -> torch.Tensor:
    y = torch.randn(60, 2, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    return y - y.mean(0)


def test_answers_and_variances_are_those_of_scikit_learn(kernels, targets):
    gram, noise = kernels.sum(0), 0.3
    numbers = np.arange(60.0)[:, None]
    reference = GaussianProcessRegressor(Precomputed(gram.numpy()), alpha=noise, optimizer=None)
    reference.fit(numbers[:40], targets[:40].numpy())
    mean, spread = reference.predict(numbers[40:], return_std=True)
    covariance = (gram[:40, :40] + noise * torch.eye(40)).contiguous()
    factor = torch.linalg.cholesky(covariance)
    found = solve(covariance, targets[:40])
    np.testing.assert_allclose((gram[40:, :40] @ found.coefficients).numpy(), mean, atol=1e-6)
    seen = torch.linalg.solve_triangular(factor, gram[:40, 40:], upper=False).square().sum(0)
    variance = gram.diagonal()[40:] - seen
    np.testing.assert_allclose(variance.sqrt().numpy(), spread[:, 0], atol=1e-6)
    value = reference.log_marginal_likelihood_value_
    small = gram[None, :40, :40]
    log_weights = torch.tensor([0.0, noise - 1e-4], dtype=torch.float64)
    log_weights[1] = log_weights[1].log()
    ours, _ = evidence(small, targets[:40], log_weights)
    pull = 1e-3 * float(log_weights.square().mean())
    constant = 0.5 * np.log(2 * np.pi)
    assert (pull - ours - constant) * 80 == pytest.approx(value, abs=1e-6)


def test_the_gradient_of_the_evidence_is_that_of_differences(kernels, targets):
    point = torch.tensor([-1.0, 0.5, -2.0, -1.5], dtype=torch.float64)
    _, gradient = evidence(kernels, targets, point)
    for j in range(4):
        step = torch.zeros(4, dtype=torch.float64)
        step[j] = 1e-5
        up, down = (evidence(kernels, targets, point + sign * step)[0] for sign in (1, -1))
        assert (up - down) / 2e-5 == pytest.approx(float(gradient[j]), abs=1e-8)


def test_the_weight_of_the_kernel_that_made_the_targets_is_the_largest(kernels):
    factor = torch.linalg.cholesky(kernels[1] + 1e-6 * torch.eye(60))
    draws = torch.randn(60, 20, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    weights = weights_by_evidence(kernels, factor @ draws + 0.1 * draws.flip(0))
    assert weights.kernels.argmax() == 1
    assert weights.kernels[1] == pytest.approx(1, abs=0.5)
    assert weights.noise == pytest.approx(0.01, abs=0.01)


def refits(gram: torch.Tensor, targets: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Each point's answer, and its variance, without it."""
    answers, variances = [], []
    for i in range(len(targets)):
        kept = torch.arange(len(targets)) != i
        inverse = torch.linalg.inv(gram[kept][:, kept])
        answers.append(gram[i, kept] @ inverse @ targets[kept])
        variances.append(gram[i, i] - gram[i, kept] @ inverse @ gram[kept, i])
    return torch.stack(answers), torch.stack(variances)


def test_leaving_one_out_is_refitting_without_it(kernels, targets):
    covariance = kernels.sum(0) + 0.2 * torch.eye(60)
    answers, variances = refits(covariance, targets)
    found = solve(covariance.clone(), targets)
    torch.testing.assert_close(found.left_out, answers, atol=1e-8, rtol=0)
    torch.testing.assert_close(found.left_out_variance, variances, atol=1e-8, rtol=0)


def test_a_covariance_that_is_not_one_is_refused(targets):
    with pytest.raises(LookHopsError):
        solve(-torch.eye(60, dtype=torch.float64), targets)


@pytest.mark.parametrize("count", [60, 20])
def test_inducing_points_by_the_definition(kernels, targets, count):
    gram = kernels[:2].sum(0)
    across = gram[:, :count]

    def blocks():
        return [(slice(0, 25), across[:25]), (slice(25, 60), across[25:])]

    found = solve_inducing(gram[:count, :count], blocks, targets, 0.2)
    approximate = across @ torch.linalg.solve(gram[:count, :count], across.T)
    covariance = approximate + 0.2 * torch.eye(60)
    answers = approximate @ torch.linalg.solve(covariance, targets)
    torch.testing.assert_close(across @ found.coefficients, answers, atol=1e-4, rtol=0)
    left_out, variance = refits(covariance, targets)
    torch.testing.assert_close(found.left_out, left_out, atol=1e-4, rtol=0)
    torch.testing.assert_close(found.left_out_variance, variance, atol=1e-4, rtol=0)


def test_probabilities_are_calibrated_and_weigh_rare_classes_when_they_should():
    generator = torch.Generator().manual_seed(0)
    truth = torch.randn(4000, generator=generator, dtype=torch.float64)
    p = (3 * truth - 2).sigmoid()
    classes = (torch.rand(4000, generator=generator) < p).long()
    answers = torch.stack((1 - truth, truth), 1)

    def probabilities(answers, balanced=False, asked=None):
        slope, offsets = fit_link(answers, classes, balanced)
        return (slope * (answers if asked is None else asked) + offsets).softmax(1)

    found = probabilities(answers)
    assert float((found[:, 1] - p).abs().mean()) < 0.02
    assert torch.allclose(found.sum(1), torch.ones(4000, dtype=torch.float64))
    balanced = probabilities(answers, balanced=True)
    weights = torch.where(classes == 1, 0.5 / classes.sum(), 0.5 / (1 - classes).sum())
    assert float((balanced[:, 1] * weights).sum()) == pytest.approx(0.5, abs=0.02)
    missing = torch.cat((answers, torch.zeros(4000, 1)), 1)
    assert probabilities(missing, asked=torch.zeros(1, 3))[0, 2] < 0.01
