"""What a score costs: Pareto fronts against all pairs, and peaks of memory."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from lookhops.runs.statistics import pareto_front
from lookhops.training import device
from lookhops.training.device import peak_memory

POINTS = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=12)


@given(POINTS, st.booleans())
def test_the_front_is_what_no_other_beats(points, higher):
    costs, scores = ([point[i] for point in points] for i in (0, 1))
    sign = 1 if higher else -1

    def beaten(i: int) -> bool:
        return any(
            costs[j] <= costs[i]
            and sign * scores[j] >= sign * scores[i]
            and (costs[j], scores[j]) != (costs[i], scores[i])
            for j in range(len(points))
        )

    front = pareto_front(costs, scores, higher)
    assert sorted(front) == [i for i in range(len(points)) if not beaten(i)]
    assert [costs[i] for i in front] == sorted(costs[i] for i in front)


def test_the_peak_of_a_block_is_measured_anew():
    with peak_memory(torch.device("cpu")) as small:
        pass
    with peak_memory(torch.device("cpu")) as large:
        held = torch.ones(50_000_000)  # 200 MB
        del held
    with peak_memory(torch.device("cpu")) as again:
        pass
    assert large.size - small.size > 100e6
    if device.RESET.exists():
        assert again.size < large.size


def test_where_the_system_does_not_say(monkeypatch, tmp_path):
    monkeypatch.setattr(device, "STATUS", tmp_path / "none")
    monkeypatch.setattr(device, "RESET", tmp_path / "none" / "there")
    with peak_memory(torch.device("cpu")) as peak:
        pass
    assert peak.size is None or peak.size > 1e6
