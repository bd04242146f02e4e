"""Exported results that were damaged: one sentence, for a page as for a report."""

import json
from pathlib import Path

import pytest

from lookhops.errors import LookHopsError
from lookhops.experiments.results import Results
from lookhops.report.build import report_on

EXPORT = Path(__file__).parents[2] / "results" / "paper.json"
FIRST = r"LookHops recommended on PROTEINS \(cell 1\)"

DAMAGES = {
    "accuracy has not one value": lambda c, f: c["metrics"]["accuracy"].pop(),
    "loss has not one value": lambda c, f: c["metrics"].update(loss=3),
    "seeds are not": lambda c, f: c.update(seeds=[]),
    "seeds are not whole": lambda c, f: c["seeds"].__setitem__(1, 11),
    "metrics has no accuracy": lambda c, f: c["metrics"].pop("accuracy"),
    "seed 22: accuracy of metrics is null": lambda c, f: c["metrics"]["accuracy"].__setitem__(
        1, None
    ),
    "environment has no versions": lambda c, f: f.update(environments=[{}]),
    "no number 7 among its environments": lambda c, f: c["environments"].__setitem__(0, 7),
    "conv of architecture is 5, not text": lambda c, f: c["architecture"].update(conv=5),
    "option 'later' of Architecture": lambda c, f: c["architecture"].update(later=5),
    "batch_size of protocol is null": lambda c, f: f["protocols"][0].update(batch_size=None),
    "no number 7 among its protocols": lambda c, f: c.update(protocol=7),
}
ELSEWHERE = {
    "the facts of NCI1: data has no graphs": lambda f: f["facts"]["NCI1"].update(data={}),
    "the facts of NCI1: gain has no gain": lambda f: f["facts"]["NCI1"].update(gain={"k": [1]}),
    "the facts of NCI1: facts is 5": lambda f: f["facts"].update(NCI1=5),
    "cells of the file is 5, not a list": lambda f: f.update(cells=5),
    "cell 2: cell is 5, not an object": lambda f: f["cells"].__setitem__(1, 5),
    "the file has no quick": lambda f: f.pop("quick"),
}


def check(content, path, sentence):
    path.write_text(json.dumps(content))
    for read in (Results.from_json, report_on):
        with pytest.raises(LookHopsError, match=sentence) as caught:
            read(path)
        text = str(caught.value)
        assert text.startswith(f"{path}: damaged, ")
        assert text.endswith("; export it again.")
        assert "Error(" not in text
        assert "\n" not in text


@pytest.mark.parametrize("sentence", DAMAGES)
def test_a_damaged_cell_is_named(sentence, tmp_path):
    content = json.loads(EXPORT.read_text())
    DAMAGES[sentence](content["cells"][0], content)
    check(content, tmp_path / "runs.json", f"{FIRST}: .*{sentence}")


@pytest.mark.parametrize("sentence", ELSEWHERE)
def test_what_else_is_damaged_is_named(sentence, tmp_path):
    content = json.loads(EXPORT.read_text())
    ELSEWHERE[sentence](content)
    check(content, tmp_path / "runs.json", sentence)


def test_what_is_whole_is_read_as_it_was():
    content = json.loads(EXPORT.read_text())
    assert json.loads(json.dumps(Results.from_json(EXPORT).to_json())) == content
