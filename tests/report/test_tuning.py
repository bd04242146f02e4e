"""The section on tuning: the gain with its interval, what was tried, what mattered."""

from dataclasses import replace

import pytest

from lookhops.core.words import NONE
from lookhops.report.page import Chart, Folded, render
from lookhops.report.sections.training import best_table, tuning_section
from lookhops.runs.tune.tuning import SearchRecord, Tried, Tuning

FIRST = Tried("recommended", {"k": 2}, (0.7, 0.8), 0.75, 50, 2.0)
PRUNED = Tried("recommended/k=1", {"k": 1}, (0.6,), None, 20, 1.0)
DIVERGED = Tried("recommended/learning_rate=9", {"k": 1}, (), None, 1, 0.1)
BETTER = Tried("recommended/k=3/<b>", {"k": 3}, (0.8, 0.9), 0.85, 60, 3.0)


@pytest.fixture
def tuning():
    searches = tuple(
        SearchRecord(seed, (FIRST, PRUNED, DIVERGED, BETTER), 3) for seed in (11, 22, 33)
    )
    return Tuning(
        *("molecules", "classification", {"k": "1..3"}, 2, searches, {"k": 1.0}),
        *((0.85, 0.84, 0.86), (0.8, 0.8, 0.81), 0.125, "a CPU (2 cores)"),
    )


def charts(section):
    return [block for block in section.blocks if isinstance(block, Chart)]


def test_gain_history_and_importance(tuning):
    section = tuning_section(tuning)
    gain, history, importance = charts(section)
    assert section.lead.startswith("Tuning raised test accuracy by 4.7 points over 3 outer splits")
    assert "12 configurations tried in 18 s" in section.lead
    assert "6 of them ended early" in section.lead
    dots, mean = gain.figure["data"]
    assert dots["x"] == pytest.approx([5, 4, 5])
    assert mean["x"] == pytest.approx([4.6667], abs=1e-3)
    ends = mean["error_x"]
    assert mean["x"][0] - ends["arrayminus"][0] == pytest.approx(tuning.gain.low, abs=1e-3)
    tried, pruned, best = history.figure["data"][:3]
    assert (tried["x"], tried["y"]) == ([1, 4], [75.0, 85.0])
    assert (pruned["x"], pruned["y"]) == ([2], [60.0])  # the one that diverged has no score
    assert best["y"] == [75.0, 75.0, 75.0, 85.0]
    assert importance.figure["data"][0]["x"] == [100.0]
    assert importance.numbers.rows == [("k", "100.0%", "1..3")]


def test_what_is_listed_can_be_compared(tuning):
    rows = best_table(tuning).rows
    assert [row[-1] for row in rows] == ["recommended/k=3/<b>", "recommended"] * 3
    assert rows[0][1:3] == ("85.0 %", "80.0 to 90.0 %")


def test_the_tile(tuning):
    [tile] = tuning_section(tuning).tiles
    assert tile.value == "+4.7 points"
    assert tile.note.startswith("95% interval ")


def test_equal_gains_have_no_interval(tuning):
    same = replace(
        tuning, tuned=(0.85, 0.84), recommended=(0.8, 0.79), searches=tuning.searches[:2]
    )
    gain, *_ = charts(tuning_section(same))
    assert "error_x" not in gain.figure["data"][1]
    assert gain.numbers.rows[-1] == ("mean", f"+5.0 ({NONE})")
    assert tuning_section(same).tiles[0].note.startswith("the same on every split, p")


def test_numbers_and_a_single_split(tuning):
    one = replace(
        tuning,
        task="regression",
        searches=tuning.searches[:1],
        tuned=(0.512,),
        recommended=(0.534,),
        importance={},
    )
    section = tuning_section(one)
    assert len(charts(section)) == 1  # neither a gain with an interval nor an importance
    assert "one split says nothing about a gain" in section.lead
    assert section.tiles[0].value == "+0.022"
    errors = [Tried("recommended", {}, (value,), value, 1, 1.0) for value in (0.5, 0.6, 0.4)]
    search = SearchRecord(11, tuple(errors), 2)
    [history] = charts(tuning_section(replace(one, searches=(search,))))
    assert history.figure["data"][2]["y"] == [0.5, 0.5, 0.4]


def test_names_are_escaped(tuning):
    from lookhops.report.page import Report

    page = render(Report("t", "s", [], [tuning_section(tuning)]))
    assert "&lt;b&gt;" in page
    assert "k 3, <b>" not in page
    assert any(isinstance(block, Folded) for block in tuning_section(tuning).blocks)
