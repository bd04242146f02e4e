"""Files change in one step, and what dead processes left is taken away."""

import os
import subprocess
import sys

import pytest

from lookhops.core import files
from lookhops.core.errors import LookHopsError
from lookhops.core.files import changing, current, finish_change, read_bytes, replacing, write_text


def test_several_files_appear_at_once(tmp_path):
    for name in ("a", "b", "gone", "other"):
        write_text(tmp_path / name, "old")
    with changing(tmp_path, without=["gone", "never"]) as new:
        write_text(new / "a", "new")
        write_text(new / "inner" / "c", "new")
        assert (tmp_path / "a").read_text() == "old"
    found = {
        str(p.relative_to(tmp_path)): p.read_text() for p in tmp_path.rglob("*") if p.is_file()
    }
    assert found == {"a": "new", "b": "old", "other": "old", "inner/c": "new"}
    assert not (tmp_path / files.PENDING).exists()


def test_a_failing_change_changes_nothing(tmp_path):
    write_text(tmp_path / "a", "old")
    with pytest.raises(AttributeError), changing(tmp_path, without=["a"]) as new:
        write_text(new / "b", 5)
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_a_decided_change_counts_before_it_is_finished(tmp_path):
    for name in ("a", "b"):
        write_text(tmp_path / name, "old")
    (tmp_path / files.PENDING / "b").mkdir(parents=True)  # goes
    (tmp_path / files.PENDING / "a").write_text("new")
    assert read_bytes(tmp_path / "a") == b"new"
    assert not current(tmp_path / "b").is_file()
    finish_change(tmp_path)
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("a", "new")]
    finish_change(tmp_path)


def test_what_dead_processes_left_is_taken_away(tmp_path):
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    own = files._beside(tmp_path / "x").name
    left = own.replace(f"-{os.getpid()}-", f"-{dead.pid}-")
    elsewhere = own.replace(files.MACHINE, "00000000")
    for name in (own, left, elsewhere, ".mine.part"):
        (tmp_path / name).touch()
    (tmp_path / left.replace(".x.", ".y.")).mkdir()
    write_text(tmp_path / "z", "")
    assert {path.name for path in tmp_path.iterdir()} == {own, elsewhere, ".mine.part", "z"}
    os.utime(tmp_path / elsewhere, (0, 0))
    write_text(tmp_path / "z", "")
    assert {path.name for path in tmp_path.iterdir()} == {own, ".mine.part", "z"}


def test_what_stands_in_the_way_is_named(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    with pytest.raises(LookHopsError, match="nowhere"):
        write_text(tmp_path / "link" / "a", "")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(LookHopsError, match="pipe"):
        read_bytes(tmp_path / "pipe")
    with pytest.raises(LookHopsError, match=str(tmp_path)):
        read_bytes(tmp_path)
    with pytest.raises(LookHopsError, match=str(tmp_path)), replacing(tmp_path) as part:
        part.touch()
