"""The model folder: whole or refused, and nothing in it is ever unpickled."""

import csv
import errno
import json
import pickle
import shutil
from dataclasses import asdict

import numpy as np
import pytest
import safetensors.torch
import torch

from lookhops.core import files
from lookhops.core.errors import LookHopsError
from lookhops.core.files import pack_tensors
from lookhops.models.config import FORMAT, run_records
from lookhops.models.predictor import Predictor
from lookhops.models.training import train_into
from lookhops.nn import Architecture
from lookhops.runs.record import RunRecord
from lookhops.sources.loading import load
from lookhops.training import Protocol, train

SMALL = Architecture(pool="lookhops", hidden=8, layers=3, ratio=0.7)


@pytest.fixture
def folder(model_folder, tmp_path):
    return shutil.copytree(model_folder, tmp_path / "model")


def edit(folder, **changes):
    """Other entries in a config without its checksum, as earlier folders have it."""
    config = json.loads((folder / "config.json").read_text()) | changes
    config.pop("config_sha256", None)
    (folder / "config.json").write_text(json.dumps(config))


def test_what_is_in_the_folder(model_folder, tasks):
    assert sorted(file.name for file in model_folder.iterdir()) == [
        "MODEL.md",
        "config.json",
        "history.csv",
        "model.safetensors",
        "predictions.csv",
        "reference.safetensors",
    ]
    config = json.loads((model_folder / "config.json").read_text())
    assert config["data"]["fingerprint"] == tasks.fingerprint
    assert config["data"]["class_names"] == ["different", "same"]
    assert set(config["metrics"]["seeds"]) == {"11", "22"}
    summary = config["metrics"]["summary"]["accuracy"]
    assert summary["mean"] == pytest.approx(sum(summary["values"]) / 2)
    assert sum(map(sum, config["metrics"]["confusion"])) == 2 * 8
    assert sum(config["metrics"]["in_sets"]) <= 2 * 8
    with (model_folder / "history.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [(row["seed"], row["epoch"]) for row in rows] == [
        (seed, str(epoch)) for seed in ("11", "22") for epoch in range(1, 5)
    ]


def test_weights_come_back_as_they_were(tmp_path, tasks):
    protocol = Protocol(seeds=(11,), max_epochs=2, batch_size=16)
    [run] = train(tasks, SMALL, protocol, device="cpu")
    train_into(tmp_path / "m", tasks, SMALL, protocol, device="cpu")
    loaded = Predictor(tmp_path / "m", "cpu")
    assert loaded.architecture == SMALL
    model = loaded.networks[11][0].network
    weights = model.state_dict()
    assert all(torch.equal(weights[key], run.weights[key]) for key in run.weights)
    with torch.no_grad():
        assert torch.equal(model(tasks[run.split.test]), run.predictions["test"])


def check_comes_back(folder, graphs, **network):
    """A network that trains is loaded again, and answers as it did."""
    architecture = Architecture(hidden=24, **network)
    protocol = Protocol(seeds=(11,), max_epochs=1, batch_size=32)
    [run] = train(graphs, architecture, protocol, device="cpu")
    train_into(folder, graphs, architecture, protocol, device="cpu")
    with torch.no_grad():
        torch.testing.assert_close(
            Predictor(folder, "cpu").networks[11][0].network(graphs[run.split.test]),
            run.predictions["test"],
        )
    assert len(Predictor(folder, device="cpu").predict(graphs).ids) == len(graphs)


@pytest.mark.parametrize(
    ("conv", "pool", "edges"),
    [
        ("pyg:GCNConv", "none", "ignore"),
        ("pyg:ChebConv/K=3", "pyg:SAGPooling", "ignore"),
        ("pyg:GATv2Conv/heads=4", "none", "ignore"),
        ("pyg:GATv2Conv", "none", "use"),
        ("pyg:GENConv", "pyg:ASAPooling", "ignore"),  # counts batches: a whole number
    ],
)
def test_layers_of_pyg_come_back(tmp_path, conv, pool, edges):
    graphs = load("solubility")[:24]
    check_comes_back(tmp_path / "m", graphs, conv=conv, pool=pool, layers=2, edges=edges)


def test_a_layer_of_pyg_that_is_too_large_for_memory_is_not_tried(tmp_path, tasks):
    architecture = Architecture(conv="pyg:GCNConv", pool="none", hidden=8, layers=2)
    protocol = Protocol(seeds=(11,), max_epochs=1, batch_size=32)
    train_into(tmp_path / "m", tasks[:24], architecture, protocol, device="cpu")
    edit(tmp_path / "m", learner=network({**asdict(architecture), "hidden": 65536}))
    with pytest.raises(LookHopsError, match=r"config\.json"):
        Predictor(tmp_path / "m", "cpu")


def test_a_planted_pickle_is_refused_and_not_run(folder, tmp_path):
    marker = tmp_path / "it ran"

    class Malice:
        def __reduce__(self):
            return (open, (str(marker), "w"))

    for content in (pickle.dumps(Malice()), pickle.dumps(Malice(), protocol=0)):
        (folder / "model.safetensors").write_bytes(content)
        with pytest.raises(LookHopsError, match=r"model\.safetensors"):
            Predictor(folder, "cpu")
    torch.save({"weights": Malice()}, folder / "model.safetensors")
    with pytest.raises(LookHopsError, match=r"model\.safetensors"):
        Predictor(folder, "cpu")
    assert not marker.exists()


@pytest.mark.parametrize("name", ["model.safetensors", "config.json"])
def test_a_missing_file_is_named(folder, name):
    (folder / name).unlink()
    with pytest.raises(LookHopsError, match=name):
        Predictor(folder, "cpu")


def test_no_folder(tmp_path):
    with pytest.raises(LookHopsError, match="nothing"):
        Predictor(tmp_path / "nothing", "cpu")


@pytest.mark.parametrize("cut", [0, 5, 200, -1])
def test_a_cut_file_is_refused(folder, cut):
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(LookHopsError, match="safetensors"):
        Predictor(folder, "cpu")


def test_foreign_weights_are_told_apart(folder):
    path = folder / "model.safetensors"
    tensors = safetensors.torch.load(path.read_bytes())
    name = next(iter(tensors))
    own = name.partition(".")[2]
    for changed, what in (
        ({k: v for k, v in tensors.items() if k != name}, repr(own)),
        ({**tensors, "11.extra": torch.ones(1)}, "'extra'"),
        ({**tensors, name: torch.ones(3, 3, 3)}, r"\(3, 3, 3\)"),
        ({**tensors, name: tensors[name] + 1}, r"weights .*config\.json"),
    ):
        path.write_bytes(pack_tensors(changed, {}))
        with pytest.raises(LookHopsError, match=what):
            Predictor(folder, "cpu")


def test_another_version_is_refused(folder):
    edit(folder, format="lookhops-model-99")
    with pytest.raises(LookHopsError, match="'lookhops-model-99'"):
        Predictor(folder, "cpu")


def network(options):
    return {"name": "network", "options": options}


def test_a_damaged_config_is_refused(folder):
    config = json.loads((folder / "config.json").read_text())
    options, data = config["learner"]["options"], config["data"]
    metrics, seed = config["metrics"], config["metrics"]["seeds"]["11"]

    def with_entry(name, value):
        seeds = {**metrics["seeds"], "11": {**seed, name: value}}
        return {"metrics": {**metrics, "seeds": seeds}}

    for changes, what in (
        ({"learner": network({**options, "conv": "lichep"})}, "'lichep'"),
        ({"learner": network({**options, "surprise": 1})}, r"options\.surprise"),
        ({"learner": {"name": "wl-ao", "options": {}}}, "wl-oa"),
        ({"data": {}}, r"config\.json: .*data\.name .*\.$"),
        ({"data": {**data, "featuriser": 3}}, r"data\.featuriser is 3"),
        ({"metrics": {"seeds": 5}}, r"metrics\.seeds is 5"),
        ({"metrics": {**metrics, "in_sets": [1]}}, r"in_sets"),
        (with_entry("temperature", 0), r"seeds\.11\.temperature is 0"),
        (with_entry("conformal_quantile of same", "x"), r"conformal_quantile of same is"),
        (with_entry("logS: deviation_weight", -1), r"deviation_weight is -1"),
        ({"machine": None}, r"machine is null"),
    ):
        backup = (folder / "config.json").read_text()
        edit(folder, **changes)
        with pytest.raises(LookHopsError, match=what):
            Predictor(folder, "cpu")
        (folder / "config.json").write_text(backup)
    for text in ("", "{", "[1]", f'{{"format": "{FORMAT}"}}'):
        (folder / "config.json").write_text(text)
        with pytest.raises(LookHopsError, match=r"config\.json"):
            Predictor(folder, "cpu")


# -------------------------------------------------------------------- disks that fail


def failing(monkeypatch, name):
    """Make every write to a file called ``name`` run out of space."""
    real = files._sync

    def sync(path):
        if path.name == name or path.name.startswith(f".{name}."):
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(path)

    monkeypatch.setattr(files, "_sync", sync)


PROTOCOL = Protocol(seeds=(11,), max_epochs=3, batch_size=16)


@pytest.mark.parametrize(
    "name", ["model.safetensors", "history.csv", "predictions.csv", "config.json"]
)
def test_a_full_disk_at_the_end_loses_nothing(tmp_path, tasks, monkeypatch, name):
    folder = tmp_path / "m"
    with monkeypatch.context() as patch:
        failing(patch, name)
        with pytest.raises(LookHopsError, match=r"m: .*No space left"):
            train_into(folder, tasks, SMALL, PROTOCOL, device="cpu")
    assert not (folder / "config.json").exists()
    assert not list(folder.rglob("*.part"))
    epochs = []
    train_into(folder, tasks, SMALL, PROTOCOL, device="cpu", resume=True, on_epoch=epochs.append)
    assert not epochs  # the training itself was not done twice
    assert Predictor(folder, "cpu").seeds == (11,)


def test_a_full_disk_in_between_keeps_the_state_before(tmp_path, tasks, monkeypatch):
    folder = tmp_path / "m"
    count = []

    def fill(progress):
        count.append(1)
        if len(count) == 2:
            failing(monkeypatch, "11.safetensors")

    with pytest.raises(LookHopsError, match="No space left"):
        train_into(folder, tasks, SMALL, PROTOCOL, device="cpu", save_every=0, on_epoch=fill)
    monkeypatch.undo()
    epochs = []
    train_into(folder, tasks, SMALL, PROTOCOL, device="cpu", resume=True, on_epoch=epochs.append)
    assert len(epochs) == 2  # epoch 1 was kept


def test_a_folder_that_is_a_file(tmp_path, tasks):
    (tmp_path / "m").write_text("a file")
    for options in ({}, {"overwrite": True}, {"resume": True}):
        with pytest.raises(LookHopsError, match="m"):
            train_into(tmp_path / "m", tasks, SMALL, PROTOCOL, device="cpu", **options)
    assert (tmp_path / "m").read_text() == "a file"


def test_overwriting_keeps_the_old_model_until_the_new_is_complete(folder, tasks):
    before = Predictor(folder, "cpu")
    other = Architecture(hidden=4, layers=2)

    class Halt(Exception):
        pass

    def halt(progress):
        raise Halt

    with pytest.raises(LookHopsError, match="--overwrite"):
        train_into(folder, tasks, other, PROTOCOL, device="cpu")
    with pytest.raises(Halt):
        train_into(folder, tasks, other, PROTOCOL, device="cpu", overwrite=True, on_epoch=halt)
    assert Predictor(folder, "cpu").config == before.config
    with pytest.raises(LookHopsError, match="--resume"):
        train_into(folder, tasks, other, PROTOCOL, device="cpu")
    train_into(folder, tasks, other, PROTOCOL, device="cpu", resume=True)
    assert Predictor(folder, "cpu").architecture == other
    assert not (folder / "resume").exists()


def test_foreign_files_in_the_folder_stay(tmp_path, tasks):
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "notes.txt").write_text("mine")
    with pytest.raises(LookHopsError, match="--overwrite"):
        train_into(tmp_path / "m", tasks, SMALL, PROTOCOL, device="cpu")
    train_into(tmp_path / "m", tasks, SMALL, PROTOCOL, device="cpu", overwrite=True)
    assert (tmp_path / "m" / "notes.txt").read_text() == "mine"


def test_the_format_names_this_version():
    assert FORMAT == "lookhops-model-2"


def test_what_the_records_say_stands_in_one_place(folder):
    stored = json.loads((folder / "config.json").read_text())
    assert not {"epochs", "best_epoch", "parameters", "seconds_per_epoch"} & stored.keys()
    config = Predictor(folder, "cpu").config
    assert config["epochs"] == {"11": 4, "22": 4}
    each = stored["metrics"]["seeds"]
    assert config["best_epoch"] == {seed: own["best_epoch"] for seed, own in each.items()}
    weights = Predictor(folder, "cpu").networks[11][0].network.state_dict()
    assert config["parameters"] == sum(value.numel() for value in weights.values())
    per_epoch = [own["seconds_per_epoch"] for own in each.values()]
    assert config["seconds_per_epoch"] == pytest.approx(np.mean(per_epoch))


def test_the_records_in_the_folder_are_whole(model_folder):
    config = json.loads((model_folder / "config.json").read_text())
    for record in run_records(config):
        again = RunRecord.from_dict(record.to_dict())
        assert again == record
        assert again.metrics["val_graphs"] == 8
