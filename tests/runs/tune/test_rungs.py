"""Rungs: about half of what comes to each go on, never fewer than the best."""

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookhops.runs.tune.search import END, FEW_TRIALS, Rungs
from lookhops.tasks import Classification, Regression

SCORES = st.lists(st.sampled_from([0.1, 0.2, 0.5, 0.7, 0.9]), max_size=9)


@dataclass(eq=False)
class Told:
    """Stands for a trial of Optuna's."""

    number: int
    intermediate_values: dict = field(default_factory=dict)

    def report(self, value, step):
        self.intermediate_values[step] = value


@pytest.mark.parametrize("task", [Classification, Regression])
@given(earlier=SCORES, stack=SCORES)
def test_what_is_worse_than_the_median_is_behind(task, earlier, stack):
    before = [Told(i + 1, {20: score, END: 0.3}) for i, score in enumerate(earlier)]
    asked = {Told(50 + i): score for i, score in enumerate(stack)}
    behind = Rungs(before, task.main).behind(20, asked)
    sign = 1 if task.main.higher_is_better else -1
    known = sorted(sign * score for score in (*earlier, *stack))
    if len(known) < FEW_TRIALS:
        assert not behind
        return
    half = len(known) // 2
    middle = known[half] if len(known) % 2 else (known[half - 1] + known[half]) / 2
    assert behind == {trial for trial, score in asked.items() if sign * score < middle}
    assert all(trial.intermediate_values == {20: score} for trial, score in asked.items())


def test_the_first_trial_is_never_behind():
    asked = {Told(i): float(i) for i in range(6)}
    behind = Rungs([], Classification.main).behind(END, asked)
    assert {trial.number for trial in behind} == {1, 2}
