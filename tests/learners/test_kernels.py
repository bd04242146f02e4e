"""Kernels of graphs against their definitions."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings

from lookhops.learners import kernels as module
from lookhops.learners.kernels import CUT, GraphRows, Group, Kernels
from lookhops.neighbourhoods import gram_by_hop
from lookhops.sources.loading import load
from strategies import graph_sets


def alike(gram: np.ndarray) -> np.ndarray:
    """Tanimoto's form, pair by pair."""
    found = np.ones_like(gram, dtype=float)
    for a in range(len(gram)):
        for b in range(len(gram)):
            either = gram[a, a] + gram[b, b] - gram[a, b]
            found[a, b] = gram[a, b] / either if either else 1.0
    return found


@settings(max_examples=40, deadline=None)
@given(graph_sets(min_graphs=1))
def test_kernels_of_hops_are_those_of_the_optimal_assignment(graphs):
    rows = GraphRows.of(graphs, 4, {})
    kernels = Kernels(rows, {})
    grams = gram_by_hop(graphs, 4).astype(float)
    expected = [*map(alike, grams), alike(grams[:4].sum(0))]
    assert kernels.names == [*(f"hop {hop}" for hop in range(5)), "hops 0 to 3"]
    np.testing.assert_allclose(kernels.full(rows).numpy(), np.stack(expected), atol=1e-12)
    np.testing.assert_allclose(kernels.diagonal(rows).numpy(), 1)


def test_kernels_of_columns_by_their_formulas_and_nothing_that_does_not_vary():
    generator = torch.Generator().manual_seed(0)
    values = torch.randn(12, 4, generator=generator, dtype=torch.float64) * 3 + 5
    values[:, 2], values[3, 0], values[5, 1] = 7.0, torch.nan, 1e30
    group = Group.fit(values, torch.arange(12))
    z, median = group(values), float(group.median)
    assert z.shape == (12, 3)
    assert z[3, 0] == 0
    assert z[5, 1] <= CUT
    known = values[:, 3]
    torch.testing.assert_close(z[:, 2].double(), (known - known.mean()) / known.std(correction=0))
    graphs = load("solubility")[:12]
    rows = GraphRows.of(graphs, 0, {"totals": z})
    kernels = Kernels(rows, {"totals": median})
    near, wide, linear = kernels.full(rows)[-3:]
    apart = torch.cdist(z.double(), z.double()).square()
    assert median == pytest.approx(float(apart.median()))
    torch.testing.assert_close(near, (-apart / median).exp(), atol=1e-9, rtol=0)
    torch.testing.assert_close(wide, (-apart / (4 * median)).exp(), atol=1e-9, rtol=0)
    torch.testing.assert_close(linear, z.double() @ z.double().T / 3)
    torch.testing.assert_close(
        kernels.diagonal(rows)[-3:], torch.stack((near, wide, linear)).diagonal(dim1=1, dim2=2)
    )


def test_blocks_of_any_size_give_the_same(monkeypatch):
    graphs = load("solubility")[:40]
    z = {"totals": torch.randn(40, 5, generator=torch.Generator().manual_seed(1))}
    rows = GraphRows.of(graphs, 3, z)
    references = rows.select(torch.arange(25))
    whole = Kernels(references, {"totals": 4.0}).full(rows)
    weights = torch.arange(1.0, len(whole) + 1, dtype=torch.float64)
    for size in (1, 60, 333):
        monkeypatch.setattr(module, "BLOCK", size)
        kernels = Kernels(references, {"totals": 4.0})
        torch.testing.assert_close(kernels.full(rows), whole, atol=1e-12, rtol=0)
        total = torch.cat([block for _, block in kernels.weighted(rows, weights)])
        torch.testing.assert_close(total, torch.tensordot(weights, whole, 1))
