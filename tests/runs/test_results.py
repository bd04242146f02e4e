"""Results as JSON: what is whole comes back, what is damaged is one sentence."""

import json
from pathlib import Path

import pytest

from lookhops.core.errors import LookHopsError
from lookhops.report.build import report_on
from lookhops.runs.paper import data_note
from lookhops.runs.results import Results, export

EXPORT = Path(__file__).parents[2] / "results" / "paper.json"
FIRST = r"cells\[0\]"

DAMAGES = {
    "accuracy": lambda c, f: c["metrics"]["accuracy"].pop(),
    r"metrics\.loss": lambda c, f: c["metrics"].update(loss=3),
    "seeds": lambda c, f: c.update(seeds=[]),
    r"seeds\b": lambda c, f: c["seeds"].__setitem__(1, 11),
    r"seed 11: metrics\.accuracy": lambda c, f: c["metrics"].pop("accuracy"),
    r"seed 22: metrics\.accuracy": lambda c, f: c["metrics"]["accuracy"].__setitem__(1, None),
    r"environments\[7\]": lambda c, f: c["environments"].__setitem__(0, 7),
    r"architecture\.conv": lambda c, f: c["architecture"].update(conv=5),
    r"architecture\.later": lambda c, f: c["architecture"].update(later=5),
    r"protocols\[7\]": lambda c, f: c.update(protocol=7),
}
ELSEWHERE = {
    r"facts\.NCI1: data\.graphs": lambda f: f["facts"]["NCI1"].update(data={}),
    r"facts\.NCI1: gain\.gain": lambda f: f["facts"]["NCI1"].update(gain={"k": [1]}),
    r"facts\.NCI1": lambda f: f["facts"].update(NCI1=5),
    "cells": lambda f: f.update(cells=5),
    r"cells\[1\]": lambda f: f["cells"].__setitem__(1, 5),
    "quick": lambda f: f.pop("quick"),
    r"environments\[0\]\.versions": lambda f: f.update(environments=[{}]),
    r"protocols\[0\]\.batch_size": lambda f: f["protocols"][0].update(batch_size=None),
    r"protocols\[0\]: batch_size": lambda f: f["protocols"][0].update(batch_size=0),
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
    check(content, tmp_path / "runs.json", f"{FIRST}.*{sentence}")


@pytest.mark.parametrize("sentence", ELSEWHERE)
def test_what_else_is_damaged_is_named(sentence, tmp_path):
    content = json.loads(EXPORT.read_text())
    ELSEWHERE[sentence](content)
    check(content, tmp_path / "runs.json", sentence)


def test_what_is_whole_is_read_as_it_was():
    content = json.loads(EXPORT.read_text())
    again = json.loads(json.dumps(Results.from_json(EXPORT).to_json()))
    for then, now in zip(content["protocols"], again["protocols"], strict=True):
        shared = then.keys() & now.keys()  # options have come and gone since
        assert all(then[name] == now[name] for name in shared)
    for then, now in zip(content["cells"], again["cells"], strict=True):
        options, known = then.pop("architecture"), now.pop("architecture")
        assert all(known[name] == value for name, value in options.items())
    assert again | {"protocols": None} == content | {"protocols": None}


def test_results_survive_json(run, cells, graphs, tmp_path):
    _, _, found = run(cells)
    results = Results(found, {"hops-1": {"data": data_note(graphs)}}, quick=True)
    path = tmp_path / "results.json"
    export(results, path)
    back = Results.from_json(path)
    assert back.to_json() == results.to_json()
    assert back.quick
    assert back.cells[0].architecture == cells[0].architecture
    assert back.cells[0].scores() == pytest.approx(found[0].scores(), rel=1e-5)
    for suffix in ("csv", "md", "tex"):
        export(results, tmp_path / f"results.{suffix}")
        assert "quick" in (tmp_path / f"results.{suffix}").read_text()
    lines = (tmp_path / "results.csv").read_text().splitlines()
    assert len(lines) == 1 + 6
    with pytest.raises(LookHopsError, match="xlsx"):
        export(results, tmp_path / "results.xlsx")


@pytest.mark.parametrize(
    "text",
    ["{", '{"format": "other"}', "[]"],
)
def test_files_that_are_no_results(tmp_path, text):
    path = tmp_path / "results.json"
    path.write_text(text)
    with pytest.raises(LookHopsError, match=path.name):
        Results.from_json(path)
    with pytest.raises(LookHopsError, match="none"):
        Results.from_json(tmp_path / "none.json")
