"""``lookhops train`` by running it."""

import errno
import json
import os
import re
import signal
import subprocess
import sys
import time
from contextlib import nullcontext
from dataclasses import asdict, fields
from pathlib import Path
from types import SimpleNamespace

import pytest

from lookhops import LookHopsClassifier, LookHopsError, models
from lookhops.cli import train
from lookhops.core import files
from lookhops.core.words import NONE
from lookhops.models.config import with_totals
from lookhops.nn import RECOMMENDED
from lookhops.runs.processes import ProcessLost
from lookhops.training.engine import EagerEngine

SMALL = ["hops-1", "--task-size", "80", "--hidden", "8", "--layers", "3", "--epochs", "3"]
SMALL += ["--batch-size", "16", "--device", "cpu"]


def test_the_usual_network(lookhops, tmp_path):
    options = ["--task-size", "80", "--epochs", "1", "--device", "cpu"]
    code, _, err = lookhops("train", "hops-1", *options, "-o", tmp_path / "m")
    assert code == 0, err
    config = json.loads((tmp_path / "m" / "config.json").read_text())
    assert config["learner"]["options"] == asdict(RECOMMENDED)
    defaults = LookHopsClassifier().get_params()
    network = {own.name: getattr(RECOMMENDED, own.name) for own in fields(RECOMMENDED)}
    assert {name: defaults[name] for name in network} == network


def test_an_interval_without_width_is_a_dash(lookhops, tmp_path):
    # One test graph of each class: AUROC is the same in every redrawn set that has one.
    options = ["--task-size", "20", "--epochs", "1", "-o", tmp_path / "m"]
    code, out, err = lookhops("train", *SMALL, *options)
    assert code == 0, err
    assert re.search(rf"AUROC +[\d.]+ % +{NONE} ", out)
    metrics = json.loads((tmp_path / "m" / "config.json").read_text())["metrics"]
    assert metrics["summary"]["auroc"]["interval"] is None
    assert metrics["seeds"]["11"]["auroc_interval"] is None


def test_the_table_says_it_all(lookhops, tmp_path):
    options = ["--seeds", "3", "--task-size", "200"]
    code, out, err = lookhops("train", *SMALL, *options, "-o", tmp_path / "m")
    assert code == 0, err
    shown = [line for line in out.splitlines() if str(tmp_path) not in line]
    assert len(shown) > 15
    assert max(map(len, shown)) <= 80
    config = json.loads((tmp_path / "m" / "config.json").read_text())
    for word in ("accuracy", "balanced accuracy", "macro-F1", "AUROC", "95% interval"):
        assert word in out
    for name in ("calibration error", "with temperature", "recall", "time per epoch"):
        assert name in out
    assert f"{config['metrics']['seeds']['11']['parameters']:,}" in out
    mean = config["metrics"]["summary"]["accuracy"]
    assert re.search(rf"accuracy +{100 * mean['mean']:.1f} ± +{100 * mean['std']:.1f} %", out)
    [[a, b], [c, d]] = config["metrics"]["confusion"]
    assert re.search(rf"different +{a} +{b} +{a + b} ", out)
    assert re.search(rf"same +{c} +{d} +{c + d} ", out)
    # On a slow machine another process trains some of them, and they end in another order.
    ended = re.findall(r"^seed (\d+) \((\d) of 3\): 3 epochs", err, flags=re.MULTILINE)
    assert sorted(seed for seed, _ in ended) == ["11", "22", "33"]
    assert [number for _, number in ended] == ["1", "2", "3"]


def test_the_help_speaks_of_every_option(lookhops):
    code, out, _ = lookhops("train", "--help")
    assert code == 0
    for option in ("--conv", "--pool", "--k ", "--splits", "--device", "--precision", "--resume"):
        assert option in out


def test_json_and_nothing_else(lookhops, tmp_path):
    code, out, _ = lookhops("train", *SMALL, "--json", "-o", tmp_path / "m")
    assert code == 0
    printed = json.loads(out)
    assert printed == with_totals(json.loads((tmp_path / "m" / "config.json").read_text()))
    assert printed["epochs"] == {"11": 3}
    assert printed["protocol"]["seeds"] == [11]
    assert printed["learner"]["options"]["pool"] == "lookhops"


def test_options_reach_the_training(lookhops, tmp_path):
    options = ["--conv", "gcn", "--pool", "none", "--k", "1", "--seeds", "5,7", "--lr", "0.02"]
    options += ["--weight-decay", "0.1", "--split", "random", "--class-weights", "--patience", "2"]
    options += ["--precision", "float64", "--ratio", "0.5", "--activation", "relu"]
    code, out, err = lookhops("train", *SMALL, *options, "--json", "-o", tmp_path / "m")
    assert code == 0, err
    config = json.loads(out)
    protocol = {key: config["protocol"][key] for key in ("seeds", "learning_rate", "weight_decay")}
    assert protocol == {"seeds": [5, 7], "learning_rate": 0.02, "weight_decay": 0.1}
    assert config["protocol"]["split"] == "random"
    assert config["protocol"]["class_weights"]
    assert config["protocol"]["precision"] == "float64"
    options = config["learner"]["options"]
    assert (options["conv"], options["k"]) == ("gcn", 1)


def test_one_split_for_all_seeds(lookhops, tmp_path):
    numbers = list(range(80))
    part = {"train": numbers[:50], "val": numbers[50:60], "test": numbers[60:]}
    (tmp_path / "splits.json").write_text(json.dumps([part]))
    arguments = ["--splits", tmp_path / "splits.json", "--seeds", "2", "--json"]
    code, out, err = lookhops("train", *SMALL, *arguments, "-o", tmp_path / "m")
    assert code == 0, err
    seeds = json.loads(out)["metrics"]["seeds"]
    assert [seeds[seed]["test_graphs"] for seed in ("11", "22")] == [20, 20]
    (tmp_path / "splits.json").write_text(json.dumps([part, part, part]))
    code, _, err = lookhops("train", *SMALL, *arguments, "-o", tmp_path / "n")
    assert code == 2
    assert "3 splits for 2 seeds" in err


@pytest.mark.parametrize(
    ("suggested", "k", "said"),
    [
        (3, 3, "k = 3, which the hop information suggests"),
        (12, 9, "k = 9, the most that was measured; suggested was k = 12"),
        (None, 2, "does not die away"),
    ],
)
def test_k_from_the_hop_information(lookhops, tmp_path, monkeypatch, suggested, k, said):
    found = SimpleNamespace(suggested_k=suggested, max_k=9, to_dict=dict)
    monkeypatch.setattr("lookhops.neighbourhoods.look", lambda graphs, **options: found)
    options = ["--k", "auto", "--epochs", "1", "--json"]
    code, out, err = lookhops("train", *SMALL, *options, "-o", tmp_path / "m")
    assert code == 0, err
    assert json.loads(out)["learner"]["options"]["k"] == k
    assert said in err


def test_k_where_there_is_no_hop_information(lookhops, tmp_path):
    chains = "".join(f"{'C#C' * (n + 1)},{'ab'[n % 2]}\n" for n in range(40))
    (tmp_path / "carbon.csv").write_text("smiles,class\n" + chains)
    options = ["--k", "auto", "--epochs", "1", "--hidden", "8", "--device", "cpu", "--json"]
    code, out, err = lookhops("train", tmp_path / "carbon.csv", *options, "-o", tmp_path / "m")
    assert code == 0, err
    assert "learner" in json.loads(out)
    elements = re.findall("[A-Z][a-z]?", "HeNeArCNOSPFClBrIBSiNaKLiMgCaFeCuZnAg")
    alone = "".join(f"[{atom}],{'ab'[n % 2]}\n" for n, atom in enumerate(elements))
    (tmp_path / "atoms.csv").write_text("smiles,class\n" + alone)  # there is nothing to look at
    code, out, err = lookhops("train", tmp_path / "atoms.csv", *options, "-o", tmp_path / "n")
    assert code == 0, err
    assert json.loads(out)["learner"]["options"]["k"] == 2
    assert "the hop information cannot be had" in err


def test_the_state_of_a_finished_run_is_shown_again(lookhops, tmp_path):
    first = lookhops("train", *SMALL, "-o", tmp_path / "m")
    again = lookhops("train", *SMALL, "-o", tmp_path / "m", "--resume")
    assert first[:2] == again[:2]


@pytest.mark.parametrize(
    ("options", "what"),
    [
        (["--conv", "lichep"], "Did you mean 'licheb'?"),
        (["--pool", "nothing"], "no pooling 'nothing'"),
        (["--k", "many"], "--k is a number of hops"),
        (["--k", "²"], "--k is a number of hops"),
        (["--layers", "1000000"], "layers"),
        (["--seeds", "a"], "Seeds are a count or numbers"),
        (["--ratio", "1.5"], "the fraction that is kept"),
        (["--lr", "0"], "learning rate must be above 0"),
        (["--precision", "int8"], "precision"),
        (["--device", "abacus"], "no device 'abacus'"),
        (["--task-size", "5"], "too few"),
        (["--splits", "nowhere.json"], "nowhere.json: no such file"),
        (["--resume", "--overwrite"], "choose"),
    ],
)
def test_sentences_and_exit_code_2(lookhops, tmp_path, options, what):
    code, out, err = lookhops("train", *SMALL, *options, "-o", tmp_path / "m")
    assert code == 2
    assert what in err
    assert out == ""
    assert len(err.strip().splitlines()) == 1
    assert not (tmp_path / "m" / "config.json").exists()


def test_a_folder_with_something_in_it(lookhops, tmp_path):
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "thesis.tex").write_text("years of work")
    code, _, err = lookhops("train", *SMALL, "-o", tmp_path / "m")
    assert code == 2
    assert "--resume" in err
    assert "--overwrite" in err
    assert lookhops("train", *SMALL, "-o", tmp_path / "m", "--overwrite")[0] == 0
    assert (tmp_path / "m" / "thesis.tex").read_text() == "years of work"


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may write anywhere")
def test_an_unwritable_folder(lookhops, tmp_path):
    (tmp_path / "closed").mkdir(mode=0o500)
    code, _, err = lookhops("train", *SMALL, "-o", tmp_path / "closed" / "m")
    assert code == 2
    assert "cannot be written (Permission denied)" in err


def test_a_place_where_no_folder_can_be(lookhops, tmp_path):
    (tmp_path / "file").write_text("")
    code, _, err = lookhops("train", *SMALL, "-o", tmp_path / "file" / "m")
    assert code == 2
    assert "cannot be written" in err


def test_a_link_that_leads_nowhere(lookhops, tmp_path):
    (tmp_path / "m").symlink_to(tmp_path / "nowhere")
    code, _, err = lookhops("train", *SMALL, "-o", tmp_path / "m")
    assert code == 2
    assert f"{tmp_path / 'm'}: a link to {tmp_path / 'nowhere'}, which is not there" in err


@pytest.mark.parametrize("finished", [True, False])
def test_going_on_in_a_folder_that_can_only_be_read(lookhops, tmp_path, monkeypatch, finished):
    """A finished training is shown again, an unfinished one is refused with a sentence."""

    def stopped(progress):
        raise LookHopsError("stop here")

    with monkeypatch.context() as patch:
        if not finished:
            patch.setattr(train, "_tensorboard", lambda given: nullcontext(stopped))
        lookhops("train", *SMALL, "--save-every", "0", "-o", tmp_path / "m")
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}

    def denied(*given, **options):
        raise PermissionError(errno.EACCES, "Permission denied")

    with monkeypatch.context() as patch:
        for name in ("touch", "mkdir", "rename", "replace", "unlink", "write_bytes"):
            patch.setattr(Path, name, denied)
        code, _, err = lookhops(
            "train", *SMALL, "--save-every", "0", "-o", tmp_path / "m", "--resume"
        )
    assert code == (0 if finished else 2), err
    assert finished or "cannot be written (Permission denied)" in err
    assert before == {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}


def test_a_full_disk(lookhops, tmp_path, monkeypatch):
    def full(number):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(files.os, "fsync", full)
        code, _, err = lookhops("train", *SMALL, "-o", tmp_path / "m")
    assert code == 2
    assert "No space left on device" in err
    assert lookhops("train", *SMALL, "-o", tmp_path / "m", "--resume")[0] == 0


def test_not_a_number(lookhops, tmp_path, monkeypatch):
    real = EagerEngine.epoch
    monkeypatch.setattr(
        EagerEngine, "epoch", lambda self, n: real(self, n) * (float("nan") if n == 3 else 1)
    )
    code, _, err = lookhops("train", *SMALL, "-o", tmp_path / "m")
    assert code == 2
    assert "was not a finite number in epoch 3; the weights of epoch" in err
    assert err.strip().splitlines()[-1].startswith("lookhops: The loss of seed 11")
    monkeypatch.undo()
    answers = lookhops("predict", tmp_path / "m", "hops-1", "--task-size", "3")
    assert answers[0] == 0
    assert "not a finite number in epoch 3" in answers[2]


def test_tensorboard_is_asked_for_when_missing(lookhops, tmp_path, monkeypatch):
    monkeypatch.delitem(sys.modules, "torch.utils.tensorboard", raising=False)
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    code, _, err = lookhops("train", *SMALL, "--tensorboard", tmp_path / "t", "-o", tmp_path / "m")
    assert code == 2
    assert 'pip install "tensorboard"' in err


def test_tensorboard_logs(lookhops, tmp_path, monkeypatch):
    written = []

    class Writer:
        def __init__(self, folder):
            self.folder = folder

        def add_scalar(self, name, value, step):
            written.append((self.folder, name, step))

        def close(self):
            written.append("closed")

    monkeypatch.setitem(
        sys.modules, "torch.utils.tensorboard", SimpleNamespace(SummaryWriter=Writer)
    )
    code, _, err = lookhops("train", *SMALL, "--tensorboard", tmp_path / "t", "-o", tmp_path / "m")
    assert code == 0, err
    folder = str(tmp_path / "t" / "seed-11")
    assert [(folder, "val_loss", step) in written for step in (1, 2, 3)] == [True] * 3
    assert written[-1] == "closed"


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_polite_stop_says_how_to_go_on(lookhops, tmp_path, monkeypatch, number, code):
    folder, before = tmp_path / "m", signal.getsignal(signal.SIGTERM)
    real = EagerEngine.epoch

    def epoch(engine, epoch_number):
        if epoch_number == 2:
            os.kill(os.getpid(), number)
        return real(engine, epoch_number)

    monkeypatch.setattr(EagerEngine, "epoch", epoch)
    arguments = ["train", *SMALL, "--overwrite", "-o", folder]
    stopped, out, err = lookhops(*arguments)
    assert (stopped, out) == (code, "")
    assert "stopping after this epoch" in err
    [last] = [line for line in err.splitlines() if line.startswith("lookhops: ")]
    prefix, _, command = last.partition("go on with: lookhops ")
    assert prefix == "lookhops: interrupted; "
    assert command.split() == [*map(str, arguments[:-3]), "-o", str(folder), "--resume"]
    monkeypatch.undo()
    monkeypatch.setenv("COLUMNS", "80")
    assert lookhops(*command.split())[0] == 0
    history = (folder / "history.csv").read_text().splitlines()
    assert len(history) == 1 + 3  # epoch 2 was finished before it stopped
    assert signal.getsignal(signal.SIGTERM) == before


def test_ctrl_c_in_a_real_process(tmp_path):
    folder = tmp_path / "m"
    command = [sys.executable, "-m", "lookhops", "train", *SMALL, "--epochs", "100000"]
    command += ["--patience", "100000", "-o", str(folder)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    while process.poll() is None and not (folder / "resume" / "11.safetensors").exists():
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=600)
    assert (process.returncode, out) == (130, "")
    assert "Traceback" not in err
    assert err.strip().endswith("--resume")


def test_a_network_that_cannot_be_leaves_the_folder_alone(lookhops, tmp_path):
    for option in (("--readout", "sum"), ("--dropout", "2"), ("--ratio", "0"), ("--conv", "foo")):
        code, _, err = lookhops("train", *SMALL, *option, "-o", tmp_path / "m")
        assert (code, err.count("\n")) == (2, 1), err
        assert not (tmp_path / "m").exists()


def test_a_fixed_test_set_and_folds(lookhops, tmp_path):
    rows = [f"{'C' * (i // 2 + 1)}{'ON'[i % 2]},{'ab'[i % 2]}" for i in range(60)]
    (tmp_path / "m.csv").write_text("smiles,class\n" + "\n".join(rows))
    (tmp_path / "t.csv").write_text("smiles,class\nCCO,a\nCCN,b\nCCCO,a\n")
    options = ["--epochs", "1", "--hidden", "8", "--layers", "1", "--device", "cpu", "--json"]
    given = ["--test", tmp_path / "t.csv", "--seeds", "2", "-o", tmp_path / "m"]
    code, out, err = lookhops("train", tmp_path / "m.csv", *options, *given)
    assert code == 0, err
    seeds = json.loads(out)["metrics"]["seeds"]
    assert [(one["train_graphs"], one["test_graphs"]) for one in seeds.values()] == [(50, 3)] * 2
    assert "3 graphs are left out of training: the test set has the same" in err
    assert "fewer than five graphs of a class in a part, the least of all splits: 'a' (" in err
    code, out, err = lookhops(
        "train", tmp_path / "m.csv", *options, "--folds", "3", "-o", tmp_path / "f"
    )
    assert code == 0, err
    config = json.loads(out)
    assert list(config["metrics"]["seeds"]) == ["0", "1", "2"]
    assert sum(one["test_graphs"] for one in config["metrics"]["seeds"].values()) == 60
    both = ["--folds", "3", "--test", tmp_path / "t.csv", "-o", tmp_path / "b"]
    code, _, err = lookhops("train", tmp_path / "m.csv", *options, *both)
    assert (code, "leave out --folds" in err) == (2, True)


@pytest.mark.parametrize("count", ["0", "-1"])
def test_processes_are_counted_from_one(lookhops, tmp_path, count):
    given = ("train", "solubility", "--processes", count, "-o", tmp_path / "m")
    code, _, err = lookhops(*given)
    assert code == 2
    assert f"Invalid value for '--processes': {count} is below 1." in err
    assert not (tmp_path / "m").exists()


def test_a_lost_process_says_how_to_go_on(lookhops, tmp_path, monkeypatch):
    def lost(*given, **options):
        raise ProcessLost("The process that trained it ended.")

    monkeypatch.setattr(models, "train_into", lost)
    code, _, err = lookhops("train", "solubility", "-o", tmp_path / "m")
    assert code == 2
    assert "ended. What was trained is kept: --resume goes on." in err
