"""``lookhops paper`` by running it."""

import json
import shutil
import subprocess
import sys

import pytest

from lookhops.runs.results import Results
from lookhops.sources.loading import load

NAMES = ["--figures", "none", "--datasets", "PROTEINS", "--quick", "--device", "cpu"]


@pytest.fixture(scope="module")
def packed(data_dir, tmp_path_factory):
    """A data folder with every eighth graph of one of the paper's sets, as a packed file only."""
    folder = tmp_path_factory.mktemp("packed")
    load("PROTEINS", data_dir=data_dir)[::8].save(folder / "PROTEINS.graphs")
    return folder


@pytest.mark.data
def test_quick_from_nothing_to_the_page(lookhops, packed, tmp_path):
    export = tmp_path / "results.json"
    some = ("--quick", "--datasets", "PROTEINS", "--data-dir", packed, "-o", tmp_path)
    code, out, err = lookhops("paper", *some, "--export", export)
    assert code == 0, err
    assert "54 of 54 runs" in err
    assert "quick version" in out
    page = (tmp_path / "paper.md").read_text()
    assert page.startswith("# The paper, reproduced (quick version)")
    for name in ("PROTEINS", "LookHops NF+pN+pE", "Edge dropping helps"):
        assert name in page
    results = Results.from_json(export)
    assert results.quick
    assert len(results.cells) == 27
    assert {len(cell.seeds) for cell in results.cells} == {2}
    # The same page from the exported file, with nothing trained; and from the store, likewise.
    again = tmp_path / "again"
    code, _, err = lookhops("paper", "--from", export, "-o", again)
    assert code == 0, err
    assert (again / "paper.md").read_text() == page
    code, out, err = lookhops("paper", *some, "--json")
    assert code == 0
    assert "54 runs were in the store already" in err
    assert json.loads(out)["quick"] is True


@pytest.mark.data
def test_one_cell_as_the_page_says(lookhops, data_dir, tmp_path):
    code, out, err = lookhops("paper", "--tables", "pool", "--rows", "topk", *NAMES, "-o", tmp_path)
    assert code == 0, err
    assert "2 of 2 runs" in err
    assert "TopKPool" in out
    code, _, err = lookhops(
        "paper", "--tables", "pool", *NAMES, "-o", tmp_path, "--time-limit", "0"
    )
    assert code == 0
    assert "18 of 20 runs are missing; without --time-limit it trains them" in " ".join(err.split())


@pytest.mark.data
def test_packed_sets_in_the_data_folder(packed, tmp_path):
    """As on a machine that has the packed files only, and neither RDKit nor Plotly nor Ray."""
    code = "import sys; sys.modules.update(dict.fromkeys(('rdkit', 'plotly', 'ray')));"
    code += "from lookhops.cli import main; main()"
    options = ["--tables", "data,conv", "--rows", "gcn", *NAMES]
    done = subprocess.run(
        [sys.executable, "-c", code, "paper", *options, "--data-dir", packed, "-o", tmp_path],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "2 of 2 runs" in done.stderr


@pytest.mark.data
def test_without_the_set_that_cannot_be_downloaded(lookhops, packed, tmp_path):
    for name in ("PROTEINS", "DD", "NCI1", "NCI109", "Mutagenicity"):
        shutil.copy(packed / "PROTEINS.graphs", tmp_path / f"{name}.graphs")
    nothing = ("--tables", "data", "--figures", "none", "--data-dir", tmp_path, "-o", tmp_path)
    code, out, err = lookhops("paper", *nothing)
    assert code == 0, err
    assert f"BURSI is not in {tmp_path}" in " ".join(err.split())
    assert "PROTEINS" in out
    assert "BURSI" not in out
    code, out, err = lookhops("paper", *nothing, "--datasets", "PROTEINS,BURSI")
    assert (code, out) == (2, "")
    assert "put BURSI.zip there" in " ".join(err.split())


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--tables", "convs"], "There is no table 'convs'"),
        (["--figures", "k"], "There is no figure 'k'"),
        (["--rows", "gnc"], "There is no row 'gnc'"),
        (["--datasets", "NOTHING"], "NOTHING"),
        (["--export", "results.xls"], "exported as"),
        (["--from", "none.json"], "--from shows what is exported"),
        (["--runner", "slurm"], "The runner is"),
        (["--rows", "gcn, topk", "--tables", "conv"], "'topk' belongs to 'pool'"),
        (["--tables", "none", "--figures", "none"], "nothing to make"),
    ],
)
def test_mistakes_are_one_line(lookhops, tmp_path, monkeypatch, options, words):
    monkeypatch.setenv("LOOKHOPS_DATA", str(tmp_path / "empty"))
    monkeypatch.chdir(tmp_path)
    base = ["--datasets", "hops-1", "--quick", "-o", tmp_path / "out"]
    code, out, err = lookhops("paper", *base, *options)
    assert (code, out) == (2, "")
    assert words in " ".join(err.split())
    assert len(err.strip().splitlines()) == 1


@pytest.mark.parametrize(
    ("text", "words"), [(None, "no such file"), ("{", "JSON"), ("[]", "not a JSON object")]
)
def test_files_that_are_no_results(lookhops, tmp_path, text, words):
    if text is not None:
        (tmp_path / "some.json").write_text(text)
    code, out, err = lookhops("paper", "--from", tmp_path / "some.json", "-o", tmp_path)
    assert (code, out) == (2, "")
    assert words in err
    assert len(err.strip().splitlines()) == 1


def test_a_foreign_store_is_one_line(lookhops, tmp_path):
    (tmp_path / "store.sqlite").write_text("no rows here " * 100)
    code, _, err = lookhops(
        "paper",
        "--quick",
        "--datasets",
        "hops-1",
        "--store",
        tmp_path / "store.sqlite",
        "-o",
        tmp_path / "out",
    )
    assert code == 2
    assert "not a database" in err
    assert len(err.strip().splitlines()) == 1
