"""What a chart has is drawn in a file too: bars, points, errors, rules, ticks, the legend."""

import pytest

from lookhops.core.charts import PAGE, axis, figure, interval, named_axis, series
from lookhops.core.pictures import picture, save_both


def test_bars_points_and_rules(tmp_path):
    rule = {"y0": 2, "line": {"color": "var(--green)", "dash": "dot"}}
    points = series(
        "lines+markers",
        [1, 2, 3],
        [3.0, 2.0, 1.0],
        name="a &amp; b<br>c",
        line={"color": "var(--blue)", "dash": "dash"},
        marker={"symbol": "diamond-open"},
        error_y=interval([2.5, 1, 0], [3, 2, 1], [4, 3, 2]),
    )
    bars = series("bar", [5, 7], [0, 1], orientation="h", marker={"color": "var(--orange)"})
    first = figure([points], axis("hops", dtick=1), axis("gain", type="log"), showlegend=True)
    second = figure([bars], axis("graphs"), named_axis("", ["x$y", "\x01"]), shapes=[rule])
    made = picture({"one": first, "two": second}, "head", "note")
    one, two = made.axes
    assert one.get_yscale() == "log"
    assert one.get_legend().get_texts()[0].get_text() == "a & b\nc"
    assert one.lines[0].get_color() == PAGE["blue"][0]
    assert one.lines[0].get_markerfacecolor() == "none"
    low, high = one.collections[0].get_segments()[0][:, 1]
    assert (low, high) == pytest.approx((2.5, 4))
    assert [bar.get_width() for bar in two.patches] == [5, 7]
    assert [tick.get_text() for tick in two.get_yticklabels()] == [r"x\$y", r"\x01"]
    assert two.lines[0].get_ydata() == [2, 2]
    assert made.get_suptitle() == "head"
    assert all(path.stat().st_size for path in save_both(made, tmp_path, "both"))
