"""MPS is started for several processes on a GPU, and ended after them."""

import pytest

from lookhops.runs.processes import CONTROL, shared_gpu


@pytest.fixture
def control(tmp_path, monkeypatch):
    """A program in the place of NVIDIA's that notes what it is told."""

    def make(code: int = 0):
        log = tmp_path / "log"
        program = tmp_path / CONTROL
        started = f'echo "start $CUDA_MPS_PIPE_DIRECTORY" >> {log}; exit {code}'
        program.write_text(f'#!/bin/sh\nif [ "$1" = -d ]; then {started}; fi\ncat >> {log}\n')
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
        return log

    monkeypatch.delenv("CUDA_MPS_PIPE_DIRECTORY", raising=False)
    return make


def test_it_is_started_for_the_block_and_told_to_quit(control):
    log = control()
    with shared_gpu() as environment:
        pipe = environment["CUDA_MPS_PIPE_DIRECTORY"]
        assert log.read_text() == f"start {pipe}\n"
    assert log.read_text().splitlines()[1].startswith("quit")


def test_where_it_does_not_start_processes_take_turns(control):
    log = control(code=1)
    with shared_gpu() as environment:
        assert environment == {}
    assert "quit" not in log.read_text()


def test_what_somebody_else_started_is_left_alone(control, monkeypatch):
    log = control()
    monkeypatch.setenv("CUDA_MPS_PIPE_DIRECTORY", "/elsewhere")
    with shared_gpu() as environment:
        assert environment == {}
    with shared_gpu(wanted=False) as environment:
        assert environment == {}
    assert not log.exists()
