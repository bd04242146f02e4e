"""The store: nothing lost, nothing twice, whatever is killed."""

import json
import os
import sqlite3
import subprocess
import sys
import time
import zlib
from collections import Counter
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from lookhops.core.errors import LookHopsError
from lookhops.learners import parse_model
from lookhops.nn import Architecture
from lookhops.runs import store as store_module
from lookhops.runs.plan import RunKey
from lookhops.runs.store import Store, retry_locked
from lookhops.training import Protocol

KEY = RunKey("print", Architecture(), Protocol())
SCRIPT = Path(__file__).parent / "killed.py"
needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs a system with fork")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "runs.sqlite"


def test_a_run_is_kept_once(path, make_record):
    with Store(path) as store:
        assert store.add("NCI1", "a", KEY, [make_record(1), make_record(2)]) == 2
        assert store.add("NCI1", "a", KEY, [make_record(2, accuracy=0.9), make_record(3)]) == 1
    with Store(path) as store:
        assert store.finished(KEY) == {1, 2, 3}
        [cell] = store.cells()
        records = cell.runs
        assert [record.seed for record in records] == [1, 2, 3]
        assert [record.metrics["accuracy"] for record in records] == [0.5, 0.5, 0.5]
        assert records[0].machine.device == "cpu"
        assert [*records[1].history] == [
            {"epoch": 1, "val_loss": 0.7},
            {"epoch": 2, "val_loss": 0.6},
        ]
        assert store.db.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_the_file_alone_has_every_finished_run(path, tmp_path, make_record):
    with Store(path) as store:
        store.claim(KEY, [1])
        store.add("NCI1", "a", KEY, [make_record(1)])
        copy = tmp_path / "copy.sqlite"
        copy.write_bytes(path.read_bytes())  # as after a power cut that took the journal
    with Store(copy) as store:
        assert store.finished(KEY) == {1}


def test_rows_of_a_transaction_are_all_there_or_none(path, make_record):
    with Store(path) as store:
        bad = make_record(2, strange=object())  # cannot be written
        with pytest.raises(TypeError):
            store.add("NCI1", "a", KEY, [make_record(1), bad])
        assert store.finished(KEY) == set()
        assert store.add("NCI1", "a", KEY, [make_record(1)]) == 1


def test_claims_divide_the_work(path, make_record):
    with Store(path) as one, Store(path) as two:
        assert one.claim(KEY, [1, 2, 3], most=2) == [1, 2]
        assert two.claim(KEY, [1, 2, 3]) == [3]
        assert one.claim(KEY, [1, 2, 3]) == []
        one.release(KEY, [2])
        assert two.claim(KEY, [1, 2, 3]) == [2]
        one.add("NCI1", "a", KEY, [make_record(1)])
        assert two.claim(KEY, [1]) == []
        other = replace(KEY, fingerprint="other")
        assert two.claim(other, [1]) == [1]
    with Store(path) as three:  # closing gave the claims back
        assert three.claim(KEY, [1, 2, 3]) == [2, 3]


def test_the_claim_of_a_dead_process_lapses(path, monkeypatch):
    with Store(path) as store:
        node = store.owner.rsplit(":", 2)[0]
        done = subprocess.run(
            [sys.executable, "-c", "import os; print(os.getpid())"],
            capture_output=True,
            text=True,
            check=True,
        )
        store.owner = f"{node}:{done.stdout.strip()}:gone"
        assert store.claim(KEY, [1]) == [1]
        store.owner = f"elsewhere:{os.getpid()}:far"
        assert store.claim(KEY, [2]) == [2]
        with Store(path) as other:
            assert other.claim(KEY, [1, 2]) == [1]  # of another machine's process we cannot know
            monkeypatch.setattr(store_module, "EXPIRY", -1.0)
            assert other.claim(KEY, [2]) == [2]


@pytest.mark.parametrize(
    "owner", ["", "x", ":::", "a:b:c", b"\0\xff", 5, f"{'9' * 30}:1:1", "n:²:u"]
)
def test_a_claim_of_nobody_lapses_with_time(path, monkeypatch, owner):
    with Store(path) as store:
        store.claim(KEY, [1])
        store.db.execute("UPDATE claims SET owner = ?", (owner,))
        store.claim(KEY, [1])  # whether it is alive cannot be known, or it is not
        monkeypatch.setattr(store_module, "EXPIRY", -1.0)
        store.db.execute("UPDATE claims SET owner = ?", (owner,))
        assert store.claim(KEY, [1]) == [1]


def test_signs_of_life_keep_a_claim(path, monkeypatch):
    monkeypatch.setattr(store_module, "RENEWAL", 0.01)
    with Store(path) as store:
        store.claim(KEY, [1])
        store.db.execute("UPDATE claims SET beat = 0")
        query = "SELECT beat FROM claims"
        with store.renewing():
            end = time.monotonic() + 600
            while time.monotonic() < end and store.db.execute(query).fetchone() == (0,):
                time.sleep(0.01)
        assert store.db.execute(query).fetchone() > (0,)


def test_a_file_that_stays_locked_is_named(path):
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("CREATE TABLE t (a)")
    holder.execute("BEGIN EXCLUSIVE")
    other = sqlite3.connect(path, timeout=0, isolation_level=None)
    with pytest.raises(LookHopsError, match=r"0\.2 s") as caught:
        retry_locked(lambda: other.execute("PRAGMA journal_mode = WAL"), path, seconds=0.2)
    assert str(caught.value).startswith(f"{path}: ")
    holder.rollback()
    retry_locked(lambda: other.execute("PRAGMA journal_mode = WAL"), path, seconds=0.2)
    assert other.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    with pytest.raises(sqlite3.OperationalError, match="missing"):
        retry_locked(lambda: other.execute("SELECT * FROM missing"), path)
    holder.close()
    other.close()


def test_notes_are_made_once(path):
    with Store(path) as store:
        assert store.note("NCI1", "print", "size", lambda: {"graphs": 3}) == {"graphs": 3}
        assert store.note("NCI1", "print", "size", lambda: 1 / 0) == {"graphs": 3}


def test_rows_of_other_options_are_other_runs(path, make_record):
    key = replace(KEY, architecture=parse_model("gcn"))
    values = asdict(key.architecture)
    values.pop("activation")
    with Store(path) as store:
        store.add("NCI1", "a", key, [make_record(1), make_record(2)])
        for seed, text in ((1, json.dumps(values)), (2, json.dumps({**values, "later": 1}))):
            store.db.execute("UPDATE runs SET architecture = ? WHERE seed = ?", (text, seed))
        assert store.finished(key) == set()
    with Store(path) as store:
        assert store.finished(key) == set()
        assert [cell.seeds for cell in store.cells()] == [(1,)]  # unknown options are left out
        assert store.db.execute("SELECT count(*) FROM runs").fetchone() == (2,)


def test_splits_from_elsewhere_stay_apart(path, make_record):
    keys = [replace(KEY, splits=splits) for splits in (None, "a1", "b2")]
    with Store(path) as store:
        for seed, key in enumerate(keys):
            store.add("NCI1", "mine", key, [make_record(seed)])
    with Store(path) as store:
        assert [store.finished(key) for key in keys] == [{0}, {1}, {2}]
        assert [cell.key for cell in store.cells()] == keys


def test_layers_of_ones_own_stay_apart(path, make_record):
    keys = [replace(KEY, layers=layers) for layers in ("a1", "b2")]
    with Store(path) as store:
        for seed, key in enumerate(keys):
            store.add("NCI1", "mine", key, [make_record(seed)])
    with Store(path) as store:
        assert [store.finished(key) for key in (*keys, KEY)] == [{0}, {1}, set()]


@pytest.mark.parametrize(
    ("column", "value", "problem"),
    [
        ("metrics", "{bad", "metrics is not JSON"),
        ("metrics", "{}", "accuracy is missing"),
        ("metrics", "5", "metrics is 5, not an object"),
        ("architecture", "nonsense", "architecture is not JSON"),
        ("architecture", '{"conv":5}', "architecture.conv is 5, not text"),
        ("protocol", '{"fractions":[1]}', "protocol.fractions is [1], not a list of 3"),
        ("machine", "{}", "machine.system is missing"),
        ("seed", "abc", 'seed is "abc", not a whole number'),
    ],
)
def test_a_damaged_row_is_one_sentence(path, make_record, column, value, problem):
    with Store(path) as store:
        store.add("NCI1", "a", KEY, [make_record(1), make_record(2)])
        store.db.execute(f"UPDATE runs SET {column} = ? WHERE id = 2", (value,))
    with pytest.raises(LookHopsError, match="a on NCI1, seed") as caught:
        Store(path)
    text = str(caught.value)
    assert text.startswith(f"{path}: ")
    assert problem in text
    assert "DELETE FROM runs WHERE id = 2" in text
    assert "\n" not in text
    with sqlite3.connect(path) as db:
        db.execute("DELETE FROM runs WHERE id = 2")
    with Store(path) as store:
        assert store.finished(KEY) == {1}


@pytest.mark.parametrize("value", [b"xx", "text", zlib.compress(b"[1, 2]"), zlib.compress(b"[]")])
def test_a_damaged_history_or_fact_is_one_sentence(path, make_record, value):
    with Store(path) as store:
        store.add("NCI1", "a", KEY, [make_record(1)])
        store.db.execute("UPDATE runs SET history = ?", (value,))
        with pytest.raises(LookHopsError, match=r"a on NCI1, seed 1: .*history.*id = 1"):
            list(store.cells()[0].runs[0].history)
        store.note("NCI1", "print", "data", lambda: {})
        with pytest.raises(LookHopsError, match=r"NCI1.*rowid = 1"):
            store.note("NCI1", "print", "data", lambda: {})


def test_files_that_are_no_store(tmp_path):
    text = tmp_path / "text.sqlite"
    text.write_text("These are not the rows that you look for. " * 50)
    foreign = tmp_path / "foreign.sqlite"
    with sqlite3.connect(foreign) as db:
        db.execute("CREATE TABLE recipes (name)")
    later = tmp_path / "later.sqlite"
    Store(later).close()
    with sqlite3.connect(later) as db:
        db.execute("PRAGMA user_version = 99")
    blocked = tmp_path / "file"
    blocked.write_text("")
    for path, words in (
        (text, "text.sqlite"),
        (foreign, "foreign.sqlite"),
        (later, "version 99"),
        (tmp_path, tmp_path.name),
        (blocked / "runs.sqlite", "runs.sqlite"),
    ):
        with pytest.raises(LookHopsError, match=words) as caught:
            Store(path)
        assert "\n" not in str(caught.value)
    with sqlite3.connect(foreign) as db:  # and it was left alone
        assert db.execute("SELECT name FROM sqlite_master").fetchall() == [("recipes",)]


def test_a_damaged_store_is_one_sentence(path, make_record):
    with Store(path) as store:
        for i in range(30):
            store.add("NCI1", "a", replace(KEY, fingerprint=str(i)), [make_record(1)])
    content = bytearray(path.read_bytes())
    content[4096 : len(content) - 100] = b"\xff" * (len(content) - 4196)
    path.write_bytes(content)
    with pytest.raises(LookHopsError, match=path.name):
        Store(path).cells()


def test_a_flipped_byte_in_a_row_is_named(path, make_record):
    """Any byte of what a run gave: the row is refused, or the file is, never read as it is."""
    with Store(path) as store:
        store.add("NCI1", "a", KEY, [make_record(1)])
        good = store.cells()[0].runs[0].to_dict()
        text = store.db.execute("SELECT metrics FROM runs").fetchone()[0]
    content = path.read_bytes()
    start = content.index(text.encode())
    for place in range(start, start + len(text), 7):
        changed = bytearray(content)
        changed[place] ^= 1
        path.write_bytes(changed)
        with pytest.raises(LookHopsError, match=path.name):
            Store(path).cells()
    path.write_bytes(content)
    with Store(path) as store:
        assert store.cells()[0].runs[0].to_dict() == good


def run_script(how, path, log, count, runs):
    done = subprocess.run(
        [sys.executable, SCRIPT, how, path, log, str(count)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    lines = [line.split() for line in log.read_text().splitlines()]
    with Store(path) as store:
        cells = store.cells()
        claims = store.db.execute("SELECT count(*) FROM claims").fetchone()[0]
    assert claims == 0
    stored = Counter((cell.model, str(run.seed)) for cell in cells for run in cell.runs)
    assert set(stored.values()) == {1}  # nothing is double
    assert len(stored) == runs  # nothing is missing
    return lines


@needs_fork
def test_killed_at_30_random_moments(path, tmp_path):
    lines = run_script("kill", path, tmp_path / "log", 30, runs=180)
    kept = set()
    for word, _, model, seed in lines:
        if word == "stored":
            kept.add((model, seed))
        elif word == "begin":
            assert (model, seed) not in kept  # a finished run is never begun again
    assert sum(word == "killed" and hit == "True" for word, _, hit, _ in lines) >= 25
    workers = {pid for word, pid, _, _ in lines if word == "stored"}
    assert len(workers) > 5  # the killed ones did work


@needs_fork
def test_two_processes_share_the_work(path, tmp_path):
    lines = run_script("share", path, tmp_path / "log", 2, runs=45)
    begun = Counter((model, seed) for word, _, model, seed in lines if word == "begin")
    assert set(begun.values()) == {1}
    assert len({pid for word, pid, _, _ in lines if word == "stored"}) == 2
