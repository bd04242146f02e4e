"""Places of nodes: of every size, the same every time, near to the distances in the graph."""

import numpy as np
import pytest

from lookhops.explain.drawing.sketch import fit, layout


@pytest.mark.parametrize("n", [0, 1, 2, 5, 450])
def test_layouts_of_all_sizes(n):
    ring = (
        np.array([(i, (i + 1) % n) for i in range(n)] if n > 2 else []).reshape(-1, 2).astype(int)
    )
    place = layout(n, ring)
    assert place.shape == (n, 2)
    assert np.isfinite(place).all()
    assert np.array_equal(place, layout(n, ring))
    inside = fit(place, 320, 210)
    assert ((inside > 0) & (inside < (320, 210))).all()


def test_the_layout_keeps_distances():
    path = np.array([(i, i + 1) for i in range(9)])
    place = layout(10, path)
    apart = np.linalg.norm(place[:, None] - place[None], axis=-1)
    hops = np.abs(np.subtract.outer(np.arange(10), np.arange(10)))
    assert np.allclose(apart, hops, atol=0.2)
