"""Compositions counted with a dictionary, and by the counter."""

from collections import Counter

import numpy as np
import pytest

from lookhops.neighbourhoods.compositions import CompositionCounter, two_valued_entropy


@pytest.mark.parametrize("units", [1, 5])
@pytest.mark.parametrize("largest", [6, 10**8])  # the second needs 64-bit keys
def test_column_sums_and_rows(units: int, largest: int):
    rng = np.random.default_rng(0)
    most = np.array([3, 1, 4])
    unit = np.append(np.arange(units), rng.integers(0, units, 300))
    n = unit.size
    size = rng.choice([5, 6, largest], (2, n))
    channel = np.stack([rng.permutation(3)[:2] for _ in range(n)])
    ones = rng.integers(0, most[channel] + 1, (2, n, 2))
    counter = CompositionCounter(most, units, max_k=2)
    for part in (slice(0, 100), slice(100, n)):
        counter.add(unit[part], size[:, part], channel[part], ones[:, part])
    ratios = np.array([0.5, 2.0, 3.0])
    for c, hops in enumerate(counter.entropies(ratios)):
        for k, entropies in enumerate(hops):
            ratio = ratios[c]
            held = np.where(channel == c, ones[k], 0).sum(axis=1)
            expected = Counter(zip(unit.tolist(), size[k].tolist(), held.tolist(), strict=True))
            entries = (entropies.unit, entropies.values, entropies.counts)
            rows = sorted(zip(*entries, strict=True))
            naive = [
                (u, two_valued_entropy(np.array(s), np.array(m), ratio), times)
                for (u, s, m), times in expected.items()
            ]
            np.testing.assert_allclose(rows, sorted(naive), rtol=1e-12)
            assert entropies.sample.total == n
            assert entropies.sample.counts.min() > 0
