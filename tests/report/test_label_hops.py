"""The chart of what hops tell about the classes."""

import json
import re

import plotly.graph_objects as go
import pytest

from lookhops import LookHopsError, look_weights
from lookhops.neighbourhoods import look, look_labels
from lookhops.neighbourhoods.charts import hop_weights, label_accuracy
from lookhops.report.build import look_report
from lookhops.report.sections.data import check_information


def test_the_chart_and_the_sentence_stand_beside_the_gains(tasks):
    told = look_labels(tasks, 2, 3).to_dict()
    chart = label_accuracy(told)
    go.Figure(json.loads(re.sub(r'"var\(--[a-z]+\)"', '"#123456"', json.dumps(chart.figure))))
    percents = [100 * share for share in told["accuracy"]]
    assert chart.figure["data"][0]["y"] == pytest.approx(percents, rel=1e-4)
    assert chart.figure["data"][0]["marker"]["color"].index("var(--green)") == told["enough"] == 1
    assert [row[0] for row in chart.numbers.rows] == ["0", "1", "2"]
    information = look(tasks, max_k=3, bootstrap=0).to_dict()
    [section] = look_report({**information, "labels": told}, None).sections
    assert chart in section.blocks
    assert told["sentence"][1:] in section.lead
    [without] = look_report({**information, "labels": None}, None).sections
    assert len(without.blocks) == len(section.blocks) - 1


def test_the_weights_of_hops_stand_beside_them(tasks):
    found = look_weights(tasks, 2, draws=2).to_dict()
    chart = hop_weights(found)
    assert chart.figure["data"][0]["y"] == pytest.approx(found["weight"], rel=1e-4)
    information = look(tasks, max_k=3, bootstrap=0).to_dict()
    [section] = look_report({**information, "hop_weights": found}, None).sections
    assert chart in section.blocks
    assert found["sentence"] in section.lead
    with pytest.raises(LookHopsError, match="hop_weights"):
        check_information({**information, "hop_weights": {**found, "weight": [1.0]}})
