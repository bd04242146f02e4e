"""Inner splits share nothing with the outer test part, and are drawn by the outer split's rule."""

from dataclasses import replace

import numpy as np
import pytest

from lookhops.core.options import Protocol
from lookhops.runs.tune.tuning import inner_splits
from lookhops.sources.loading import load
from lookhops.sources.splits import SplitPlan


@pytest.mark.parametrize("options", [{"split": "stratified"}, {"split": "random"}, {"folds": 4}])
def test_the_test_part_is_in_none(tasks, options):
    protocol = Protocol(seeds=(1, 2), **options)
    plan = SplitPlan.of(tasks, protocol)
    for seed, outer in plan.splits.items():
        found = inner_splits(tasks, plan, seed, 3)
        assert len(found) == 3
        assert found[seed] is outer
        known = set(outer.train.tolist()) | set(outer.val.tolist())
        for one in found.values():
            train, val = set(one.train.tolist()), set(one.val.tolist())
            assert train | val == known
            assert not train & val
        assert len({tuple(one.val.tolist()) for one in found.values()}) == 3


def test_groups_stay_together(tasks):
    site = np.arange(len(tasks)) // 8
    graphs = replace(tasks, columns={"site": site})
    plan = SplitPlan.of(graphs, Protocol(seeds=(5,), split="group:site"))
    for one in inner_splits(graphs, plan, 5, 4).values():
        parts = [set(site[part.numpy()]) for part in (one.train, one.val, plan.splits[5].test)]
        assert not parts[0] & parts[1]
        assert not (parts[0] | parts[1]) & parts[2]


def test_parts_that_were_given_are_the_only_ones(tasks):
    drawn = SplitPlan.of(tasks, Protocol(seeds=(11,)))
    plan = SplitPlan.given(Protocol(seeds=(11,)), [drawn.splits[11]])
    assert list(inner_splits(tasks, plan, 11, 3)) == [11]
    graphs = replace(tasks, columns={"year": np.arange(len(tasks))})
    in_time = SplitPlan.of(graphs, Protocol(seeds=(11,), split="time:year"))
    assert list(inner_splits(graphs, in_time, 11, 3)) == [11]


def test_duplicates_of_test_graphs_are_in_no_inner_part():
    graphs = load("solubility")
    plan = SplitPlan.of(graphs, Protocol(seeds=(3,), split="scaffold"))
    test = set(plan.splits[3].test.tolist())
    for one in inner_splits(graphs, plan, 3, 3).values():
        assert not test & (set(one.train.tolist()) | set(one.val.tolist()))
