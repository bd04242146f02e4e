"""`lookhops look`: whole commands."""

import dataclasses
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

import lookhops as package
from lookhops import Graphs
from lookhops.graphs.features import Features
from lookhops.sources.bundled import write_transfers

Run = Callable[..., tuple[int, str, str]]
TASK = ("hops-2", "--task-size", 80, "--bootstrap", 40)


def test_the_answer(lookhops: Run):
    code, out, err = lookhops("look", "hops-2", "--task-size", 300, "--bootstrap", 40)
    assert (code, err) == (0, "")
    assert max(map(len, out.splitlines())) <= 80
    graphs = package.load("hops-2", size=300)
    found = package.look(graphs, bootstrap=40)
    assert out.splitlines()[0] == f"hops-2: 300 graphs, {found.nodes:,} nodes, 4 features"

    def rows_below(head: str) -> dict[str, list[str]]:
        """The rows of the table whose columns begin with this, by their first word."""
        _, _, below = out.partition(f"\n{head}")
        lines = below.partition("\n\n")[0].replace(" <-", "").splitlines()[1:]
        return {line.split()[0]: line.split()[1:] for line in lines}

    gains, lost = rows_below("hops k    gain"), rows_below("hops k   lost")
    assert list(gains) == [str(k) for k in range(2, 10)]
    for k, gain, (low, high) in zip(found.k, found.gain, found.gain_interval, strict=True):
        assert gains[str(k)][:4] == [f"{gain:.4f}", f"{low:.4f}", "to", f"{high:.4f}"]
    assert lost["1"][0] == f"{100 * found.lost(1):.1f}%"
    labels, weights = package.look_labels(graphs), package.look_weights(graphs)
    right, shares = rows_below("hops h"), rows_below("hop h")
    assert list(right) == [str(h) for h in range(7)]
    assert [row[0] for row in right.values()] == [f"{100 * mean:.1f}" for mean in labels.mean]
    assert [float(row[0]) for row in shares.values()] == weights.weights.round(2).tolist()
    text = " ".join(out.split())
    for sentence in (found.sentence(), labels.sentence()[1:], weights.sentence()):
        assert sentence in text
    assert f"R² = {found.decay.r2:.4f}" in text
    assert "from the graphs and not their classes" in text


def test_as_json(lookhops: Run):
    options = ("--max-k", 5, "--seed", 3, "--max-hops", 2, "--seeds", "1,2,3", "--json")
    code, out, err = lookhops("look", *TASK, *options)
    assert (code, err) == (0, "")
    told = json.loads(out)
    graphs = package.load("hops-2", size=80)
    assert told.pop("labels") == package.look_labels(graphs, 2, [1, 2, 3]).to_dict()
    assert told.pop("hop_weights") == package.look_weights(graphs, 2).to_dict()
    found = package.look(graphs, 5, bootstrap=40, seed=3)
    assert told == json.loads(json.dumps(found.to_dict()))


def test_without_labels(lookhops: Run, tmp_path: Path):
    code, out, _ = lookhops("look", *TASK, "--no-labels")
    assert code == 0
    assert "% right" not in out
    _, out, _ = lookhops("look", *TASK, "--no-labels", "--json")
    assert json.loads(out)["labels"] is None
    few = package.load("hops-2", size=80).select(range(30))
    bare = dataclasses.replace(few, y=None, targets=())
    for graphs, said in ((few, "30 graphs are too few"), (bare, "the graphs have no classes")):
        graphs.save(tmp_path / "set.graphs")
        code, out, err = lookhops("look", tmp_path / "set.graphs")
        assert (code, err) == (0, "")
        assert said in " ".join(out.split())


def test_options_arrive(lookhops: Run):
    code, out, _ = lookhops(
        *(
            "look",
            *TASK[:3],
            "--neighbourhood",
            "ball",
            "--epsilon",
            0.2,
            "--bootstrap",
            0,
            "--json",
        )
    )
    told = json.loads(out)
    assert code == 0
    assert (told["neighbourhood"], told["epsilon"], told["resamples"]) == ("ball", 0.2, 0)
    assert told["gain_interval"] is told["suggested_k_interval"] is None


def test_classes_side_by_side(lookhops: Run):
    code, out, err = lookhops("look", *TASK, "--per-class", "--max-k", 4)
    assert (code, err) == (0, "")
    assert max(map(len, out.splitlines())) <= 80
    assert "40 different, 40 same" in out
    assert "classes' intervals overlap at every k" in " ".join(out.split())


def test_many_classes_below_one_another(lookhops: Run, tmp_path: Path):
    rng = np.random.default_rng(0)
    source, target = 10 * rng.integers(0, 30, 900) + rng.integers(0, 10, (2, 900))
    graphs = Graphs.from_edges(
        torch.from_numpy(np.append(source, target)),
        torch.from_numpy(np.append(target, source)),
        torch.full((30,), 10),
        nodes=Features(labels=torch.from_numpy(rng.integers(0, 3, (300, 1)))),
        y=torch.arange(30) % 3,
        class_names=["[red]", "green", "blue"],
    )
    graphs.save(tmp_path / "many.graphs")
    code, out, err = lookhops("look", tmp_path / "many.graphs", "--per-class", "--max-k", 3)
    assert (code, err) == (0, "")
    rows = [line.split() for line in out.splitlines()]
    for name in ("[red]", "green", "blue"):
        assert [row[1] for row in rows if row[:1] == [name]] == ["2", "3"]


def test_without_a_bootstrap(lookhops: Run):
    code, out, _ = lookhops("look", *TASK[:3], "--bootstrap", 0, "--per-class")
    assert code == 0
    assert "resamples" not in out.partition("hops k   lost")[0]


@pytest.mark.parametrize("suffix", ["png", "svg", "pdf", "html", "PNG"])
def test_pictures(lookhops: Run, tmp_path: Path, suffix: str):
    path = tmp_path / "new" / f"gains.{suffix}"
    code, out, err = lookhops("look", *TASK, "--max-k", 4, "--json", "--plot", path)
    assert code == 0
    assert json.loads(out)["name"] == "hops-2"
    assert err == f"drawn to {path}\n"
    starts = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF", "html": b"<"}
    assert path.read_bytes().startswith(starts[suffix.lower()])
    assert [file.name for file in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("hops-2", "--max-k", "2"), "max_k must be 3 or more"),
        (("hops-2", "--epsilon", "1.5"), "between 0 and 1"),
        (("hops-2", "--neighbourhood", "cube"), "walk or ball"),
        (("hops-2", "--bootstrap", "5"), "20 resamples or more"),
        (("hops-2", "--plot", "gains.bmp"), "a picture ends in .png, .svg, .pdf, .html"),
        (("hops-2", "--max-hops", "-1"), "max_hops is a whole number from 0"),
        (("hops-2", "--seeds", "1"), "at least 2 seeds"),
        (("hops-9",), "hops-1 to hops-6"),
    ],
)
def test_errors_are_one_line(lookhops: Run, arguments: tuple[str, ...], message: str):
    code, out, err = lookhops("look", *arguments)
    assert (code, out) == (2, "")
    assert err.startswith("lookhops: ")
    assert message in err
    assert err.count("\n") == 1


def test_options_that_do_not_parse(lookhops: Run):
    code, out, err = lookhops("look", "hops-2", "--max-k", "two")
    assert (code, out) == (2, "")
    assert "--max-k" in err
    assert "integer" in err


def test_graphs_without_features(lookhops: Run, tmp_path: Path):
    bare = Graphs.from_edges(
        torch.tensor([0, 1]), torch.tensor([1, 0]), torch.tensor([2]), name="bare"
    )
    bare.save(tmp_path / "bare.graphs")
    code, out, err = lookhops("look", tmp_path / "bare.graphs")
    assert (code, out) == (2, "")
    assert "the nodes have no features" in err


def test_tables(lookhops: Run, tmp_path: Path):
    """An edge list has no features of nodes: degrees are looked at; the classes stand beside it."""
    write_transfers(tmp_path, cases=120)
    options = ("--bootstrap", "0", "--max-k", "4", "--seeds", "2", "--max-hops", "1", "--json")
    code, out, err = lookhops("look", tmp_path / "edges.csv", *options)
    assert code == 0
    assert "edges: the nodes have no features, so their degrees are looked at" in err
    assert json.loads(out)["labels"] is None
    code, out, err = lookhops("look", tmp_path, *options)
    assert code == 0
    assert "degrees" not in err
    assert len(json.loads(out)["labels"]["accuracy"]) == 2


def test_as_a_process():
    command = [sys.executable, "-m", "lookhops", "look", *map(str, TASK), "--max-k", "4"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert "of the information; each further hop adds" in " ".join(done.stdout.split())
    assert done.stderr == ""


@pytest.mark.data
def test_nci1(lookhops: Run, data_dir: Path):
    code, out, err = lookhops("look", "NCI1", "--data-dir", data_dir)
    assert (code, err) == (0, "")
    text = " ".join(out.split())
    assert "k = 2 keeps 97.9% of the information" in text
    assert "your classes are decided within 3 hops: 85." in text
