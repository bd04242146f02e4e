"""A training that was killed, and killed again, ends as one that was left alone."""

import multiprocessing
import os
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from lookhops.core.errors import LookHopsError
from lookhops.graphs import Graphs
from lookhops.graphs.targets import pack_targets, read_target
from lookhops.models import training
from lookhops.models.predictor import Predictor
from lookhops.models.training import train_into
from lookhops.nn import Architecture, load_plugin
from lookhops.nn.registry import CONVOLUTIONS, LOADED
from lookhops.runs import side_by_side
from lookhops.sources.loading import load
from lookhops.sources.splits import Split
from lookhops.tasks import task_of
from lookhops.training import Protocol
from lookhops.training.device import limited_threads, threads_of
from lookhops.training.engine import EagerEngine
from lookhops.training.runs import FINAL, member_seed
from lookhops.training.trainer import train_on_all

SMALL = Architecture(pool="lookhops", hidden=8, layers=3)
PROTOCOL = Protocol(seeds=(11, 22), max_epochs=5, batch_size=16, learning_rate=0.01)


class Halt(Exception):
    pass


def same(first: Path, second: Path, graphs) -> None:
    """What models are, and their predictions, bit for bit."""
    same_models(first, second)
    answers = [Predictor(folder, "cpu").predict(graphs).probabilities for folder in (first, second)]
    assert (answers[0] == answers[1]).all()


def same_models(first: Path, second: Path) -> None:
    """Weights, history (without the seconds), metrics and nonconformity, bit for bit."""
    one, two = Predictor(first, "cpu"), Predictor(second, "cpu")
    assert one.seeds == two.seeds
    for seed in one.seeds:
        for mine, other in zip(one.fitted[seed], two.fitted[seed], strict=True):
            mine, other = mine.tensors(), other.tensors()
            assert all(torch.equal(mine[k], other[k]) for k in mine | other)
    timeless = [
        [line.rsplit(",", 1)[0] for line in (folder / "history.csv").read_text().splitlines()]
        for folder in (first, second)
    ]
    assert timeless[0] == timeless[1]
    for seed in one.seeds:
        for metrics in (c.config["metrics"]["seeds"][str(seed)] for c in (one, two)):
            del metrics["seconds"], metrics["seconds_per_epoch"]
    assert one.config["metrics"] == two.config["metrics"]
    mine, other = (load_file(folder / "reference.safetensors") for folder in (first, second))
    assert all(mine[k].numpy().tobytes() == other[k].numpy().tobytes() for k in mine | other)


@pytest.fixture(scope="module")
def whole(tasks, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("whole")
    train_into(folder, tasks, SMALL, PROTOCOL, device="cpu")
    return folder


@pytest.fixture
def helped(monkeypatch):
    """Other processes train whatever waits, from the first epoch on."""
    monkeypatch.setattr(side_by_side, "WORTH", 0.0)


def test_other_processes_train_the_same(helped, tasks, tmp_path):
    protocol = replace(PROTOCOL, members=2, max_epochs=3)
    train_into(tmp_path / "alone", tasks, SMALL, protocol, device="cpu", final=True)
    ids, seen = set(), []

    def note(progress):
        ids.add(threading.get_ident())
        seen.append(progress.runs[0].key)

    options = {"processes": 3, "on_epoch": note, "save_every": 0.0, "final": True}
    train_into(tmp_path / "helped", tasks, SMALL, protocol, device="cpu", **options)
    assert len(ids) > 1
    assert sorted(seen) == sorted(3 * ["11", "11-1", "22", "22-1"] + seen[12:])
    assert {key.partition("-")[0] for key in seen[12:]} == {"final"}
    same_models(tmp_path / "alone", tmp_path / "helped")


#: A layer whose output is no number from the third epoch on, in every second network.
POISONED = """
from torch_geometric.nn import GraphConv

from lookhops.nn import register_convolution


class Poisoned(GraphConv):
    def forward(self, x, edge_index):
        if not hasattr(self, "epochs"):
            self.fails, self.epochs, self.trained = bool(self.lin_rel.bias[0] > 0), 0, False
        self.epochs += self.training and not self.trained
        self.trained = self.training
        factor = float("nan") if self.fails and self.epochs > 2 else 1.0
        return factor * super().forward(x, edge_index)


register_convolution("poisoned", lambda channels, hidden, k: Poisoned(channels, hidden))
"""


@pytest.mark.parametrize("members", [1, 2])
def test_a_loss_that_is_no_number_ends_it_as_alone(helped, tasks, tmp_path, members):
    (tmp_path / "layers.py").write_text(POISONED)
    tables = [(table, dict(table)) for table in (CONVOLUTIONS, LOADED)]
    load_plugin(tmp_path / "layers.py")
    network = Architecture(conv="poisoned", hidden=8, layers=1, edges="ignore")
    protocol = replace(PROTOCOL, seeds=(11, 22, 33, 44), members=members)
    said = []
    for name, processes in (("alone", 1), ("helped", 2)):
        options = {"device": "cpu", "processes": processes}
        with pytest.raises(LookHopsError, match="epoch 3") as found:
            train_into(tmp_path / name, tasks, network, protocol, **options)
        said.append(str(found.value))
    first, second = (Predictor(tmp_path / name, "cpu").fitted for name in ("alone", "helped"))
    assert list(first) == list(second)
    for seed, networks in first.items():
        for one, other in zip(networks, second[seed], strict=True):
            one, other = one.tensors(), other.tensors()
            assert all(torch.equal(one[key], other[key]) for key in one)
    assert said[0] == said[1]
    for table, before in tables:
        table.clear()
        table.update(before)


def test_a_script_that_is_run_again_by_its_own_process_touches_nothing(whole, tasks, monkeypatch):
    before = {path: path.read_bytes() for path in whole.iterdir() if path.is_file()}
    monkeypatch.setattr(multiprocessing.current_process(), "_inheriting", True, raising=False)
    with pytest.raises(LookHopsError, match="__main__"):
        train_into(whole, tasks, SMALL, PROTOCOL, device="cpu", overwrite=True, processes=2)
    assert {path: path.read_bytes() for path in whole.iterdir() if path.is_file()} == before


def test_large_sets_are_not_sent(helped, tasks, tmp_path, monkeypatch):
    monkeypatch.setattr(training, "MOST_SENT", 100)
    ids = set()
    options = {"processes": 2, "on_epoch": lambda progress: ids.add(threading.get_ident())}
    train_into(tmp_path, tasks, SMALL, replace(PROTOCOL, max_epochs=2), device="cpu", **options)
    assert len(ids) == 1


@pytest.mark.parametrize("stop", [KeyboardInterrupt, Halt])
def test_stopped_beside_other_processes_it_goes_on(helped, tasks, tmp_path, stop):
    protocol = replace(PROTOCOL, seeds=(11, 22, 33))
    train_into(tmp_path / "alone", tasks, SMALL, protocol, device="cpu")
    seen = []

    def halt(progress):
        seen.append(progress.runs[0].key)
        if len(seen) >= 5 and len(set(seen)) > 1:
            raise stop

    options = {"device": "cpu", "processes": 2, "save_every": 0.0}
    with pytest.raises(stop):
        train_into(tmp_path / "left", tasks, SMALL, protocol, on_epoch=halt, **options)
    kept = {path.stem for path in (tmp_path / "left" / "resume").glob("*.safetensors")}
    assert kept == set(seen)
    train_into(tmp_path / "left", tasks, SMALL, protocol, resume=True, **options)
    same(tmp_path / "alone", tmp_path / "left", tasks)


def test_members_are_kept_averaged_and_resumed(tasks, whole, tmp_path):
    protocol = replace(PROTOCOL, members=2, max_epochs=3)
    train_into(tmp_path / "left", tasks, SMALL, protocol, device="cpu")
    seen = []

    def stop(progress):
        seen.append(progress)
        if len(seen) == 8:  # two members of the first seed, and the first of the second
            raise Halt

    with pytest.raises(Halt):
        train_into(tmp_path / "m", tasks, SMALL, protocol, device="cpu", on_epoch=stop)
    again = []
    options = {"device": "cpu", "resume": True, "on_epoch": again.append}
    config = train_into(tmp_path / "m", tasks, SMALL, protocol, **options)
    assert len(again) == 4 * 3 - 8
    same(tmp_path / "m", tmp_path / "left", tasks)
    predictor = Predictor(tmp_path / "m", "cpu")
    with torch.inference_mode():
        each = [one.outputs(tasks).double().softmax(1) for one in predictor.fitted[22]]
        outputs = predictor.outputs_of(predictor.prepare(tasks), [22])[22]
        average = predictor.task.average(outputs).double().softmax(1)
    assert not torch.equal(each[0], each[1])
    torch.testing.assert_close(average, torch.stack(each).mean(0), rtol=0, atol=1e-6)
    part = config["metrics"]["seeds"]["22"]
    assert len(part["members"]) == 2
    assert part["parameters"] == 2 * config["parameters"]
    lines = (tmp_path / "m" / "history.csv").read_text().splitlines()
    assert lines[0].startswith("seed,member,epoch,")
    assert len(lines) == 1 + 4 * 3


def test_a_final_model_of_all_graphs_answers(tasks, tmp_path):
    protocol = replace(PROTOCOL, members=2, max_epochs=3)
    options = {"device": "cpu", "final": True}
    config = train_into(tmp_path / "left", tasks, SMALL, protocol, **options)
    members = [one for run in config["metrics"]["seeds"].values() for one in run["members"]]
    epochs = round(np.median([one["best_epoch"] for one in members]))
    assert config["final_model"] == {"epochs": epochs, "graphs": len(tasks), "members": 2}
    seen = []

    def stop(progress):
        seen.append(progress)
        if len(seen) == 4 * 3 + 1:  # in the first epoch of the last training
            raise Halt

    with pytest.raises(Halt):
        train_into(tmp_path / "m", tasks, SMALL, protocol, on_epoch=stop, **options)
    train_into(tmp_path / "m", tasks, SMALL, protocol, resume=True, **options)
    same(tmp_path / "m", tmp_path / "left", tasks)
    predictor = Predictor(tmp_path / "m", "cpu")
    assert predictor.seeds == (11, 22)
    with torch.inference_mode():
        found = predictor.answers(predictor.prepare(tasks), FINAL).numpy()
        each = [one.outputs(tasks).double().softmax(1) for one in predictor.fitted[FINAL]]
    assert (predictor.predict(tasks).probabilities == found).all()
    temperatures = [run["temperature"] for run in config["metrics"]["seeds"].values()]
    sharpened = torch.stack(each).mean(0) ** (1 / np.median(temperatures))
    expected = sharpened / sharpened.sum(1, keepdim=True)
    np.testing.assert_allclose(found, expected.numpy(), atol=1e-6)
    assert (predictor.reference.part_of(tasks) == "train").all()
    with pytest.raises(LookHopsError, match=r"final True.*False"):
        train_into(tmp_path / "m", tasks, SMALL, protocol, resume=True, device="cpu")


def test_a_final_training_is_the_plain_one_on_all_graphs(tasks):
    """Its weights are those after the last epoch, whichever engine runs it."""
    protocol = replace(PROTOCOL, seeds=(member_seed(FINAL, 0),))
    task, everything = task_of(tasks), torch.arange(len(tasks))
    run = train_on_all(tasks, SMALL, protocol, 3, task=task, device="cpu")
    assert [list(row) for row in run.history] == [["epoch", "train_loss", "seconds"]] * 3
    split = Split(everything, everything[:5], everything[:5])
    fixed = replace(protocol, max_epochs=3)
    engine = EagerEngine(tasks, task, [split], protocol.seeds, SMALL, fixed, torch.device("cpu"))
    with limited_threads(threads_of(tasks, SMALL, fixed)):
        losses = [float(engine.epoch(number)) for number in (1, 2, 3)]
    assert [row["train_loss"] for row in run.history] == pytest.approx(losses, rel=1e-6)
    engine.remember(torch.tensor([True]))
    assert all(torch.equal(value, run.weights[key]) for key, value in engine.weights()[0].items())


@pytest.mark.parametrize("stop_at", [1, 3, 5, 6, 10])
def test_stopped_between_epochs(tasks, whole, tmp_path, stop_at):
    """An exception after the epoch, as Ctrl-C makes one: that epoch is not lost."""
    seen = []

    def stop(progress):
        seen.append(1)
        if len(seen) == stop_at:
            raise Halt

    folder = tmp_path / "m"
    with pytest.raises(Halt):
        train_into(folder, tasks, SMALL, PROTOCOL, device="cpu", on_epoch=stop)
    again = []
    train_into(folder, tasks, SMALL, PROTOCOL, device="cpu", resume=True, on_epoch=again.append)
    assert len(seen) + len(again) == 10
    same(folder, whole, tasks)


def test_stopped_within_an_epoch_after_every_one(tasks, whole, tmp_path, monkeypatch):
    """Interrupted in the midst of each epoch: only what was written counts."""
    from lookhops.training.engine import EagerEngine

    real = EagerEngine.validate
    folder = tmp_path / "m"
    calls = []

    def validate(engine):
        calls.append(1)
        if len(calls) % 2 == 0:
            raise Halt
        return real(engine)

    monkeypatch.setattr(EagerEngine, "validate", validate)
    for _ in range(40):
        try:
            options = {"device": "cpu", "save_every": 0}
            train_into(folder, tasks, SMALL, PROTOCOL, resume=True, **options)
            break
        except Halt:
            pass
    monkeypatch.undo()
    assert len(calls) > 10
    same(folder, whole, tasks)


OPTIONS = ["hops-1", "--task-size", "60", "--hidden", "8", "--layers", "2", "--seeds", "2"]
OPTIONS += ["--epochs", "40", "--patience", "40", "--batch-size", "16", "--save-every", "0"]
OPTIONS += ["--device", "cpu", "--resume"]

# One process trains alone, so that everything is imported, and its children do the same. The system
# ends a child within two epochs of its first state, wherever it is. These are counted in time on
# the processor: on a busy machine it is as much work.
KILLER = """
import os, random, signal, statistics, sys, time

from lookhops.cli import main
from lookhops.models.training import ResumeState

folder, alone, kills, *options = sys.argv[1:]
save, moments, generator = ResumeState.save, [], random.Random(0)

def train(folder, on_save):
    def save_and_tell(state, progress, now=True):
        save(state, progress, now)
        on_save()

    ResumeState.save = save_and_tell
    sys.argv[1:] = ["train", *options, "-o", folder]
    try:
        main()
    except SystemExit as stop:
        return stop.code or 0
    return 0

def child(seconds):
    armed = []

    def arm():
        if not armed:
            armed.append(signal.setitimer(signal.ITIMER_PROF, seconds))

    if (pid := os.fork()) == 0:
        sys.stdout = sys.stderr = open(os.devnull, "w")
        os._exit(train(folder, arm))
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

assert train(alone, lambda: moments.append(time.process_time())) == 0
epoch = statistics.median(b - a for a, b in zip(moments, moments[1:]))
for _ in range(int(kills)):
    assert child(generator.uniform(0.01, 2) * epoch) == -signal.SIGPROF
assert train(folder, lambda: None) == 0
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs a system that can fork")
def test_killed_at_random_moments(tmp_path):
    """Real processes, ended by the system wherever they happen to be, and resumed."""
    folder, alone = tmp_path / "killed", tmp_path / "alone"
    command = [sys.executable, "-c", KILLER, folder, alone, "6", *OPTIONS]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert not (folder / "resume").exists()
    same(folder, alone, load("hops-1", size=60))


def asked(graphs: Graphs, *columns: str) -> Graphs:
    """The graphs with a number, or a number with blanks and a class, to be learnt."""
    sizes = [float(n) for n in graphs.nodes_per_graph]
    blanks = [None if i % 4 == 0 else size for i, size in enumerate(sizes)]
    values = {"size": sizes, "some": blanks, "kind": [f"kind {y}" for y in graphs.y.tolist()]}
    return replace(graphs, **pack_targets([read_target(name, values[name]) for name in columns]))


@pytest.mark.parametrize("columns", [("size",), ("some", "kind")])
def test_numbers_and_several_targets_are_resumed(tasks, tmp_path, columns):
    graphs, seen = asked(tasks, *columns), []

    def stop(progress):
        seen.append(1)
        if len(seen) in (2, 7):
            raise Halt

    train_into(tmp_path / "alone", graphs, SMALL, PROTOCOL, device="cpu")
    for _ in range(2):
        with pytest.raises(Halt):
            train_into(
                tmp_path / "m", graphs, SMALL, PROTOCOL, device="cpu", resume=True, on_epoch=stop
            )
    train_into(tmp_path / "m", graphs, SMALL, PROTOCOL, device="cpu", resume=True)
    same_models(tmp_path / "m", tmp_path / "alone")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs a system that can fork")
def test_killed_while_several_targets_are_learnt(tmp_path):
    asked(load("hops-1", size=60), "some", "kind").save(tmp_path / "mixed.graphs")
    folder, alone = tmp_path / "killed", tmp_path / "alone"
    options = [tmp_path / "mixed.graphs", *OPTIONS[3:], "--epochs", "6", "--seeds", "1"]
    command = [sys.executable, "-c", KILLER, folder, alone, "1", *options]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    same_models(folder, alone)


def test_other_settings_are_not_resumed(tasks, tmp_path):
    def stop(progress):
        raise Halt

    folder = tmp_path / "m"
    with pytest.raises(Halt):
        train_into(folder, tasks, SMALL, PROTOCOL, device="cpu", on_epoch=stop)
    for changes, what in (
        ({"protocol": replace(PROTOCOL, learning_rate=0.1)}, "learning_rate 0.01 .* 0.1 "),
        ({"model": replace(SMALL, k=3)}, "k 2 .* 3 "),
        ({"graphs": tasks[:70]}, "fingerprint"),
    ):
        options = {"graphs": tasks, "model": SMALL, "protocol": PROTOCOL, **changes}
        with pytest.raises(LookHopsError, match=what):
            train_into(folder, device="cpu", resume=True, **options)


def test_resuming_what_is_complete_trains_nothing(tasks, whole):
    epochs = []
    config = train_into(
        whole, tasks, SMALL, PROTOCOL, device="cpu", resume=True, on_epoch=epochs.append
    )
    assert not epochs
    assert config == Predictor(whole, "cpu").config
    with pytest.raises(LookHopsError, match=r"k 2 .* 1 "):
        train_into(whole, tasks, replace(SMALL, k=1), PROTOCOL, device="cpu", resume=True)


def test_a_damaged_state_is_a_sentence(tasks, tmp_path):
    def stop(progress):
        raise Halt

    folder = tmp_path / "m"
    with pytest.raises(Halt):
        train_into(folder, tasks, SMALL, PROTOCOL, device="cpu", on_epoch=stop)
    state = folder / "resume" / "11.safetensors"
    state.write_bytes(state.read_bytes()[:100])
    with pytest.raises(LookHopsError, match=r"11\.safetensors"):
        train_into(folder, tasks, SMALL, PROTOCOL, device="cpu", resume=True)
