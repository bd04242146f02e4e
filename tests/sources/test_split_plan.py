"""Plans of splits: what stays together, what is in proportion, folds, columns, a test set."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lookhops import Graphs, LookHopsError
from lookhops.core.options import Protocol
from lookhops.graphs.columns import SAME
from lookhops.graphs.targets import Target, pack_targets
from lookhops.sources.loading import load
from lookhops.sources.molecules import from_smiles
from lookhops.sources.splits import SplitPlan, split
from lookhops.sources.splits.given import with_test_set
from lookhops.sources.splits.split import PARTS, folds_of_groups, joined_groups, scaffolds


def nodes_alone(y, class_names=None, **columns) -> Graphs:
    """One node a graph."""
    none, sizes = torch.zeros(0, dtype=torch.long), torch.ones(len(y), dtype=torch.long)
    arrays = {name: np.array(values, dtype=object) for name, values in columns.items()}
    y = torch.tensor(y)
    rest = {"y": y, "class_names": class_names, "columns": arrays, "name": "made"}
    return Graphs.from_edges(none, none, sizes, **rest)


def plan(graphs, **options) -> SplitPlan:
    return SplitPlan.of(graphs, Protocol(**{"seeds": (11, 22), **options}))


def sets(part) -> list[set[int]]:
    return [set(getattr(part, name).tolist()) for name in PARTS]


def assert_whole(found: SplitPlan, count: int) -> None:
    """Each graph stands in one part of each split."""
    for part in found.splits.values():
        train, val, test = sets(part)
        assert train
        assert val
        assert test
        assert len(train) + len(val) + len(test) == count
        assert train | val | test == set(range(count))


def assert_together(found: SplitPlan, groups) -> None:
    groups = np.asarray(groups)
    for part in found.splits.values():
        where = [set(groups[list(numbers)]) for numbers in sets(part)]
        assert not where[0] & where[1]
        assert not where[0] & where[2]
        assert not where[1] & where[2]


GROUPS = st.lists(st.integers(0, 30), min_size=40, max_size=120).filter(lambda g: len(set(g)) > 5)


@given(GROUPS, st.integers(0, 99), st.booleans())
def test_groups_stay_whole_and_parts_have_about_their_sizes(groups, seed, stratify):
    graphs = nodes_alone([g % 2 for g in range(len(groups))])
    part = split(graphs, seed, stratify=stratify, groups=torch.tensor(groups))
    found = SplitPlan(Protocol(), {seed: part})
    assert_whole(found, len(groups))
    assert_together(found, groups)
    largest = max(groups.count(g) for g in set(groups))
    assert abs(len(part.train) - 0.8 * len(groups)) <= 2 * largest + 1


@given(st.integers(12, 200), st.integers(0, 99), st.booleans())
def test_groups_of_one_change_nothing(count, seed, stratify):
    graphs = nodes_alone([i % 3 for i in range(count)])
    own = split(graphs, seed, stratify=stratify)
    grouped = split(graphs, seed, stratify=stratify, groups=torch.randperm(count))
    assert all(torch.equal(getattr(own, name), getattr(grouped, name)) for name in PARTS)


def test_random_is_the_papers_and_auto_is_stratified_for_classes():
    graphs = nodes_alone([0, 1] * 30)
    assert torch.equal(plan(graphs).splits[22].train, split(graphs, 22).train)
    found = plan(graphs, split="auto")
    assert found.protocol.split == "stratified"
    assert torch.equal(found.splits[11].val, split(graphs, 11, stratify=True).val)
    numbers = nodes_alone([float(c) for c in graphs.y])
    assert plan(numbers, split="auto").protocol.split == "random"
    with pytest.raises(LookHopsError):
        plan(numbers, split="stratified")


@given(st.integers(2, 6), st.integers(30, 90), st.sampled_from(["random", "stratified", "group:g"]))
def test_each_graph_is_tested_once_in_the_folds_of_a_repetition(folds, count, kind):
    groups = [str(i // 2) for i in range(count)]
    graphs = nodes_alone([i % 2 for i in range(count)], g=groups)
    found = plan(graphs, split=kind, folds=folds, seeds=tuple(range(2 * folds)))
    assert_whole(found, count)
    tests = [found.splits[seed].test for seed in range(2 * folds)]
    for repetition in (tests[:folds], tests[folds:]):
        assert sorted(torch.cat(repetition).tolist()) == list(range(count))
    assert not torch.equal(tests[0], tests[folds])
    if kind == "group:g":
        assert_together(found, groups)
    if kind == "stratified":
        ones = [int(graphs.y[test].sum()) for test in tests[:folds]]
        assert max(ones) - min(ones) <= 1
    alone = plan(graphs, split=kind, folds=folds, seeds=(folds + 1,))
    assert torch.equal(alone.splits[folds + 1].val, found.splits[folds + 1].val)


@given(GROUPS, st.integers(2, 4), st.integers(0, 9))
def test_folds_of_groups_differ_by_less_than_the_largest_group(groups, folds, seed):
    place = folds_of_groups(np.array(groups), folds, seed)
    sizes = np.bincount(place, minlength=folds)
    largest = max(groups.count(g) for g in set(groups))
    assert sizes.max() - sizes.min() <= largest
    assert all(len(set(place[np.array(groups) == g])) == 1 for g in set(groups))


def test_the_same_molecule_never_stands_in_two_parts():
    same = [i // 3 for i in range(60)]
    graphs = nodes_alone([i % 2 for i in range(60)], **{SAME: same})
    for options in ({}, {"split": "stratified"}, {"folds": 4, "seeds": (0, 1, 2, 3)}):
        found = plan(graphs, **options)
        assert_together(found, same)
        assert_whole(found, 60)
        assert found.source is not None
    assert plan(nodes_alone([0, 1] * 30, **{SAME: range(60)})).source is None


def test_groups_join_where_either_keeps_together():
    first, second = torch.tensor([0, 0, 1, 1, 2]), torch.tensor([0, 1, 1, 2, 3])
    found = joined_groups(first, second).tolist()
    assert found[0] == found[1] == found[2] == found[3] != found[4]
    assert joined_groups(None, second) is second


def test_scaffolds_are_rings_and_what_joins_them():
    smiles = ["c1ccccc1C", "c1ccccc1O", "C1CCCCC1", "CCO", "OCC", "CCCC"]
    codes = scaffolds(nodes_alone([0] * 6, smiles=smiles)).tolist()
    assert codes[0] == codes[1]
    assert codes[3] == codes[4]
    assert len(set(codes)) == 4


def test_what_is_called_smiles_may_be_none():
    """Of tables of edges with such a column nobody has parsed it."""
    with pytest.raises(LookHopsError, match="'C1'"):
        scaffolds(nodes_alone([0, 1], smiles=["CC", "C1"]))


def test_scaffold_splits_of_molecules():
    graphs = load("solubility")[:300]
    found = plan(graphs, split="scaffold", folds=3, seeds=(0, 1, 2))
    assert_whole(found, 300)
    assert_together(found, scaffolds(graphs))
    assert_together(plan(graphs, split="scaffold"), scaffolds(graphs))


def test_a_column_names_the_parts():
    words = ["train"] * 20 + ["Valid"] * 5 + ["test"] * 5
    [part, same] = plan(nodes_alone([0, 1] * 15, where=words), split="column:where").splits.values()
    assert sets(part) == sets(same) == [set(range(20)), set(range(20, 25)), set(range(25, 30))]
    drawn = plan(
        nodes_alone([0, 1] * 15, where=["train"] * 25 + ["test"] * 5), split="column:where"
    )
    first, second = drawn.splits.values()
    assert set(first.test.tolist()) == set(second.test.tolist()) == set(range(25, 30))
    assert len(first.val) == len(second.val) == 3
    assert set(first.val.tolist()) != set(second.val.tolist())


@given(st.lists(st.integers(1990, 2020), min_size=30, max_size=90).filter(lambda y: len({*y}) > 4))
def test_a_split_by_time_trains_on_the_past(years):
    count = len(years)
    graphs = nodes_alone([i % 2 for i in range(count)], year=[f"{year}" for year in years])
    found = plan(graphs, split="time:year")
    assert_whole(found, count)
    first, second = found.splits.values()
    assert sets(first) == sets(second)
    train, val, test = ([years[i] for i in part] for part in sets(first))
    assert max(train) < min(val) <= max(val) < min(test)
    largest = max(years.count(year) for year in years)
    assert abs(len(train) - 0.8 * count) <= 2 * largest + 1


def test_times_are_numbers_or_iso_dates():
    dates = [f"2021-{m:02}-{d:02}" for m in range(1, 13) for d in (7, 21)]
    zones = [f"{date}T12:00:00{'+02:00' if i % 2 else 'Z'}" for i, date in enumerate(dates)]
    months = [f"{2000 + i}-0{1 + i % 9}" for i in range(24)]
    for times in (dates, zones, months, range(24), [i / 3 - 4 for i in range(24)]):
        mixed = [*times][::-1]
        graphs = nodes_alone([0, 1] * 12, when=mixed)
        part = plan(graphs, split="time:when").splits[11]
        assert sets(part) == [set(range(5, 24)), {3, 4}, {0, 1, 2}]
    blank = nodes_alone([*[0, 1] * 12, -1], ("a", "b"), when=[*range(24), ""])
    assert plan(blank, split="time:when").splits[11].test.tolist() == [21, 22, 23]


@pytest.mark.parametrize(
    ("when", "named"),
    [
        ([*range(29), ""], "made.*'when'.*m29"),
        ([*range(29), "soon"], "m29.*'soon'"),
        ([*range(29), "inf"], "m29.*'inf'"),
        (["2021-01-31"] * 29 + ["31.1.2021"], "'31.1.2021'.* ISO"),
        ([1] * 15 + [2] * 15, "2 groups.*train"),
    ],
)
def test_times_that_cannot_be_read(when, named):
    graphs = nodes_alone([0, 1] * 15, when=when, id=[f"m{i}" for i in range(30)])
    with pytest.raises(LookHopsError, match=named):
        plan(graphs, split="time:when")


def test_columns_of_splits_match_in_any_case():
    graphs = nodes_alone([0, 1] * 15, when=range(30))
    named, other = (plan(graphs, split=f"time:{name}") for name in ("when", "WHEN"))
    assert torch.equal(named.splits[11].test, other.splits[11].test)


def test_a_split_by_time_has_one_test_part():
    graphs = nodes_alone([0, 1] * 15, when=range(30))
    with pytest.raises(LookHopsError, match="time:when"):
        SplitPlan.of(graphs, Protocol(seeds=(11,), split="time:when"), torch.tensor([3]))
    with pytest.raises(LookHopsError, match="--folds"):
        plan(graphs, split="time:when", folds=3, seeds=(0,))


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"split": "alphabetical"}, "'alphabetical'.*random.*column:COLUMN, auto"),
        ({"split": "group"}, "'group'"),
        ({"split": "group:site"}, "'site'.*where, few, year"),
        ({"split": "scaffold"}, "SMILES"),
        ({"split": "column:few"}, "'0'.*'few'"),
        ({"split": "column:year"}, "'2022'.*'year'"),
        ({"split": "group:few"}, "2 groups.*train"),
        ({"folds": 31, "seeds": (0,)}, "31 folds"),
        ({"split": "group:few", "folds": 3}, "2 groups.*3 folds"),
        ({"folds": 1}, "folds.*2"),
    ],
)
def test_what_cannot_be_split_so(options, named):
    few = [str(i % 2) for i in range(30)]
    graphs = nodes_alone([0, 1] * 15, where=["x"] * 30, few=few, year=[2022] * 30)
    with pytest.raises(LookHopsError, match=named):
        plan(graphs, **options)


def test_a_test_set_that_came_apart():
    graphs = nodes_alone([0, 1] * 20, id=[f"a{i}" for i in range(40)], more=range(40))
    test = nodes_alone([0, 0, 1], ("1", "0"), id=["x", "y", "z"])  # the other way round
    both, numbers = with_test_set(graphs, test)
    assert both.y[numbers].tolist() == [1, 1, 0]
    assert both.columns["id"][-3:].tolist() == ["x", "y", "z"]
    found = SplitPlan.of(both, Protocol(seeds=(11, 22), split="stratified"), numbers)
    assert_whole(found, 43)
    assert {tuple(part.test.tolist()) for part in found.splits.values()} == {(40, 41, 42)}
    assert len({tuple(part.val.tolist()) for part in found.splits.values()}) == 2
    assert all(len(part.val) == 5 for part in found.splits.values())
    other = replace(test, targets=(Target("CLASS", ("1", "0")),))
    assert with_test_set(graphs, other)[0].y[numbers].tolist() == [1, 1, 0]
    with pytest.raises(LookHopsError, match="'2' of 'class'"):
        with_test_set(graphs, nodes_alone([0, 0, 1], ("1", "2")))
    with pytest.raises(LookHopsError, match="made"):
        with_test_set(graphs, replace(test, y=None))
    with pytest.raises(LookHopsError, match="--folds"):
        SplitPlan.of(both, Protocol(seeds=(0,), folds=3), numbers)


def test_molecules_of_a_test_set_are_not_trained_on():
    graphs = from_smiles([f"{'C' * n}O" for n in range(1, 41)], [0, 1] * 20)
    test = from_smiles(["OCC", "NCC", "OCC"], [0, 1, 0])  # the first is CCO, the second is new
    both, numbers = with_test_set(graphs, test)
    found = SplitPlan.of(both, Protocol(seeds=(11, 22), split="stratified"), numbers)
    for part in found.splits.values():
        drawn = torch.cat((part.train, part.val)).tolist()
        assert sorted(drawn) == [n for n in range(40) if n != 1]
        assert part.test.tolist() == [40, 41, 42]
    assert "1 graph is left out of training: the test set has the same" in found.remarks(both)


def test_graphs_without_a_target_are_in_no_part():
    graphs = nodes_alone([0, 1, -1] * 20, ("a", "b"))
    for options in ({}, {"split": "auto"}, {"folds": 4, "seeds": (0, 1)}):
        for part in plan(graphs, **options).splits.values():
            numbers = torch.cat([getattr(part, name) for name in PARTS])
            assert len(numbers) == 40
            assert (graphs.y[numbers] >= 0).all()


def test_what_decides_splits_is_known_by_its_content():
    one, other = (nodes_alone([0, 1] * 15, g=[str(i // n) for i in range(30)]) for n in (2, 3))
    assert one.fingerprint == other.fingerprint
    first, second = (plan(graphs, split="group:g").source for graphs in (one, other))
    assert first != second
    assert first == plan(one, split="group:g", seeds=(5,)).source
    assert plan(one).source is None


def test_given_parts_that_share_graphs_are_remarked():
    same = [*range(20), 0, 1, 2, 23, 24, 0, 0, *range(27, 30)]
    words = ["train"] * 20 + ["val"] * 5 + ["test"] * 5
    graphs = nodes_alone([float(i) for i in range(30)], where=words, **{SAME: same})
    found = plan(graphs, split="column:where", seeds=(11,))
    said = "2 of 5 test graphs and 3 of 5 validation graphs are in the training part too: "
    assert found.remarks(graphs) == [said + "on those a model looks too good"]
    drawn = plan(graphs).splits[11]
    given = SplitPlan.given(Protocol(seeds=(11, 22)), [found.splits[11], drawn])
    assert "too, the most of all splits: " in given.remarks(graphs)[0]
    blank = replace(graphs, y=torch.cat((graphs.y[:26], torch.full((4,), torch.nan))))
    assert plan(blank, split="column:where").remarks(blank)[0].startswith("1 of 1 test graph and 3")
    assert plan(graphs).remarks(graphs) == []  # what is drawn shares none


def test_rare_classes_are_remarked():
    graphs = nodes_alone([0] * 97 + [1] * 3)
    [said] = plan(graphs, split="stratified").remarks(graphs)
    assert said.startswith("fewer than five graphs of a class in a part, the least of all splits: ")
    assert said.endswith(": '1' (training 2, validation 1, test 0)")
    common = nodes_alone([0, 1] * 60)
    assert plan(common, split="stratified").remarks(common) == []
    numbers = nodes_alone([float(c) for c in graphs.y])
    assert plan(numbers).remarks(numbers) == []


def test_rare_classes_of_several_targets_are_remarked():
    rare, number = np.repeat([0.0, 1.0, np.nan], (90, 4, 6)), np.arange(100.0)
    columns = [(Target("rare", ("no", "yes")), rare), (Target("number"), number)]
    graphs = replace(nodes_alone([0] * 100), **pack_targets(columns))
    [said] = plan(graphs, seeds=(1,)).remarks(graphs)
    assert "rare 'yes' (training" in said
    assert "number" not in said
    assert "'no'" not in said
