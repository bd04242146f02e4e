"""Conformal sets and intervals: their coverage, and that of their textbook forms."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookhops.tasks.conformal import (
    class_scores,
    class_sets,
    deviation_weight,
    number_intervals,
    number_scores,
)

SPLITS = 200


def drawn_classes(generator: np.random.Generator, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Classes of a made-up set, and the probabilities of a model that is too sure of itself."""
    p = generator.dirichlet((2, 1, 0.5), size=count)
    y = (p.cumsum(1) > generator.random((count, 1))).argmax(1)
    sharp = p**2 + 1e-12
    return sharp / sharp.sum(1, keepdims=True), y


def test_sets_cover_over_200_random_splits():
    generator = np.random.default_rng(0)
    p, y = drawn_classes(generator, 600)
    shares = []
    for _ in range(SPLITS):
        val, test = np.split(generator.permutation(600), 2)
        sets = class_sets(p[None, test], [class_scores(p[val], y[val])], 0.9)
        held = sets[np.arange(300), y[test]]
        shares.append([held.mean(), *(held[y[test] == c].mean() for c in range(3))])
    mean, error = np.mean(shares, 0), np.std(shares, 0) / SPLITS**0.5
    assert np.bincount(y)[2] < 0.2 * len(y)  # a rare class
    assert (np.abs(mean - 0.9) <= 0.03).all()
    assert (mean + 3 * error >= 0.9).all()


def test_scores_without_classes_hold_a_rare_class_too_seldom():
    generator = np.random.default_rng(0)
    p, y = drawn_classes(generator, 4000)
    known = class_scores(p[:2000], y[:2000])
    held = [
        class_sets(p[None, 2000:], [one], 0.9)[np.arange(2000), y[2000:]]
        for one in (known, known[:, 0])
    ]
    rare = y[2000:] == 2
    assert held[0][rare].mean() > 0.87
    assert held[1].mean() > 0.87
    assert held[1][rare].mean() < 0.8


def test_intervals_cover_over_200_random_splits():
    generator = np.random.default_rng(0)
    answers = generator.normal(size=600)
    y = answers + generator.standard_t(3, 600) + 0.3
    shares = []
    for _ in range(SPLITS):
        val, test = np.split(generator.permutation(600), 2)
        ends = number_intervals(answers[None, test], [number_scores(answers[val], y[val])], 0.9)
        shares.append(((ends[:, 0] <= y[test]) & (y[test] <= ends[:, 1])).mean())
    assert 0.87 <= np.mean(shares) <= 0.93


def heteroscedastic(count):
    """Answers, numbers whose errors grow, and how far a model expects to be off, up to a factor."""
    generator = np.random.default_rng(1)
    width = generator.lognormal(0, 0.8, count)
    answers = generator.normal(size=count)
    return answers, answers + width * generator.normal(size=count), 0.1 * width


def test_intervals_cover_in_each_third_by_width():
    answers, y, deviation = heteroscedastic(9000)
    val, test = slice(0, 3000), slice(3000, None)

    def held(known, expected):
        ends = number_intervals(answers[None, test], [known], 0.9, expected)
        third = np.argsort(np.argsort(deviation[test])) * 3 // 6000
        inside = (ends[:, 0] <= y[test]) & (y[test] <= ends[:, 1])
        return [inside[third == part].mean() for part in range(3)], ends

    known = number_scores(answers[val], y[val], deviation[val])
    shares, ends = held(known, deviation[None, test])
    assert np.allclose(shares, 0.9, atol=0.03)
    assert np.corrcoef(ends[:, 1] - ends[:, 0], deviation[test])[0, 1] > 0.99
    shares, _ = held(known[:, 0], None)
    assert shares[0] > 0.98
    assert shares[2] < 0.8


def test_an_interval_hangs_on_its_graph_alone():
    answers, y, deviation = heteroscedastic(400)
    known = [number_scores(answers[:200], y[:200], deviation[:200])]
    order = np.random.default_rng(0).permutation(200)
    new, expected = answers[None, 200:], deviation[None, 200:]
    ends = number_intervals(new, known, 0.9, expected)
    assert np.array_equal(
        ends[order], number_intervals(new[:, order], known, 0.9, expected[:, order])
    )
    one = number_intervals(new[:, :1], known, 0.9, expected[:, :1])
    assert np.array_equal(ends[:1], one)


def test_deviations_that_say_nothing_leave_one_width():
    generator = np.random.default_rng(0)
    residual = np.abs(generator.normal(size=500))
    assert deviation_weight(residual, generator.lognormal(0, 1, 500)) == 0
    for deviation in (np.zeros(500), np.full(500, np.nan)):
        assert deviation_weight(residual, deviation) == 0
    assert deviation_weight(residual[:20], residual[:20]) == 0  # too few to tell
    assert deviation_weight(np.zeros(500), residual) == 0


@given(st.integers(0, 1000), st.integers(1, 40), st.sampled_from([0.5, 0.8, 0.9, 0.95]))
def test_one_model_has_the_textbook_regions(seed, count, coverage):
    generator = np.random.default_rng(seed)
    p, y = drawn_classes(generator, count)
    new, _ = drawn_classes(generator, 7)
    scores = class_scores(p, y)

    def limit_of(known):
        rank = int(np.ceil(coverage * (len(known) + 1) - 1e-9))
        return np.sort(known)[rank - 1] if rank <= len(known) else np.inf

    likeliest = new == new.max(1, keepdims=True)
    alike = (1 - new <= limit_of(scores[:, 0])) | likeliest
    assert np.array_equal(class_sets(new[None], [scores[:, 0]], coverage), alike)
    for c in range(3):
        own = scores[scores[:, 1] == c, 0]
        held = 1 - new[:, c] <= limit_of(own)
        if np.isinf(limit_of(own)):  # too few: as far as the farthest, and as all together
            held = alike[:, c] | (1 - new[:, c] <= own.max(initial=-1))
        found = class_sets(new[None], [scores], coverage)[:, c]
        assert np.array_equal(found, held | likeliest[:, c])
    residuals = number_scores(p[:, 0], y.astype(float))
    limit = limit_of(residuals)
    ends = number_intervals(new[None, :, 0], [residuals], coverage)
    assert ends == pytest.approx(np.stack((new[:, 0] - limit, new[:, 0] + limit), 1))


@given(st.integers(0, 1000), st.integers(1, 4))
def test_several_models_answer_as_cross_conformal_prediction_says(seed, models):
    generator = np.random.default_rng(seed)
    p = generator.dirichlet((1, 1, 1), size=(models, 5))
    nonconformity = [generator.random(generator.integers(1, 30)) for _ in range(models)]
    count, found = sum(map(len, nonconformity)), class_sets(p, nonconformity, 0.8)
    for graph in range(5):
        for c in range(3):
            worse = sum((own >= 1 - p[k, graph, c]).sum() for k, own in enumerate(nonconformity))
            likeliest = p.mean(0)[graph].argmax() == c
            assert found[graph, c] == (likeliest or 1 + worse > 0.2 * (count + 1) + 1e-9)
    ends = number_intervals(p[:, :, 0], nonconformity, 0.8)
    for graph in range(5):
        low = np.sort(np.concatenate([p[k, graph, 0] - own for k, own in enumerate(nonconformity)]))
        high = np.sort(
            np.concatenate([p[k, graph, 0] + own for k, own in enumerate(nonconformity)])
        )
        place = int(np.floor(0.2 * (count + 1) + 1e-9))
        expected = (low[place - 1], high[count - place]) if place else (-np.inf, np.inf)
        assert tuple(ends[graph]) == pytest.approx(expected)


def test_too_few_graphs_exclude_nothing():
    for count in (0, 8, 9):
        nonconformity = np.linspace(0, 0.5, count)
        assert class_sets(np.array([[[0.99, 0.01]]]), [nonconformity]).all() == (count < 9)
        assert np.isinf(number_intervals(np.zeros((1, 1)), [nonconformity])).all() == (count < 9)


def test_rows_without_a_target_have_no_score():
    p = np.array([[0.75, 0.25], [0.5, 0.5]])
    assert class_scores(p, np.array([1, np.nan])).tolist() == [[0.75, 1]]
    assert number_scores(np.array([1.0, 2.0]), np.array([np.nan, 5.0])).tolist() == [3.0]
