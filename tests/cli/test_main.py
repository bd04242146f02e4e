"""The command's own last words."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

import lookhops.cli
from lookhops.cli import SUMMARIES, load


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        torch.OutOfMemoryError("CUDA out of memory."),
        RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 1 bytes"),
    ],
)
def test_out_of_memory_is_a_sentence(monkeypatch, capsys, error):
    def app(standalone_mode):
        raise error

    monkeypatch.setattr(lookhops.cli, "app", app)
    with pytest.raises(SystemExit) as stop:
        lookhops.cli.main()
    assert stop.value.code == 2
    assert capsys.readouterr().err == (
        "lookhops: out of memory; fewer seeds at a time, a smaller --batch-size or network need "
        "less.\n"
    )


@pytest.mark.parametrize("bug", [RuntimeError("a bug"), FileNotFoundError(2, "a bug")])
def test_a_bug_is_not_hidden(monkeypatch, bug):
    def app(standalone_mode):
        raise bug

    monkeypatch.setattr(lookhops.cli, "app", app)
    with pytest.raises(type(bug), match="a bug"):
        lookhops.cli.main()


def test_an_interrupt_is_a_sentence(monkeypatch, capsys):
    def app(standalone_mode):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(10)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    monkeypatch.setattr(lookhops.cli, "app", app)
    try:
        with pytest.raises(SystemExit) as stop:
            lookhops.cli.main()
    finally:
        signal.signal(signal.SIGINT, before)
    assert stop.value.code == 130
    assert capsys.readouterr().err == "lookhops: interrupted.\n"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_output_that_cannot_be_written_is_a_sentence():
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "lookhops", "data", "list", "--json"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
        )
    assert done.returncode == 2
    assert done.stderr == "lookhops: the output cannot be written (No space left on device).\n"


def test_a_bare_command_shows_its_help():
    done = subprocess.run([sys.executable, "-m", "lookhops"], capture_output=True, text=True)
    assert done.returncode == 2
    assert "Usage" in done.stdout + done.stderr


def test_the_help_of_all_commands_says_what_their_own_does():
    for name, summary in SUMMARIES.items():
        assert load(name).help.partition("\n\n")[0].replace("\n", " ") == summary


def test_the_help_of_all_commands_loads_none_of_them():
    code = "import sys; from lookhops.cli import main; sys.argv[1:] = ['--help']\n"
    code += "try: main()\nfinally: print([n for n in sys.modules if 'lookhops.cli.shared' in n])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert all(name in done.stdout for name in SUMMARIES)
    assert done.stdout.endswith("[]\n")


@pytest.mark.parametrize(("words", "code"), [("models --json", 0), ("predict nowhere x.smi", 2)])
def test_the_end_is_quick_and_loses_nothing(words, code):
    run = "import atexit, sys, lookhops.cli, lookhops.__main__ as own\n"
    run += "sys.argv[1:], command = sys.argv[1].split(), lookhops.cli.main\n"
    run += "def late(): atexit.register(sys.stdout.write, 'said'), command()\n"
    run += "lookhops.cli.main = late\n"
    run += "atexit.register(print, 'never said')\n"  # as what Python takes down after it
    run += "own.main()"
    done = subprocess.run([sys.executable, "-c", run, words], capture_output=True, text=True)
    assert done.returncode == code, done.stderr
    assert done.stdout.endswith("said")
    assert "never said" not in done.stdout


def test_help_does_not_wait_for_pytorch():
    code = "import sys; from lookhops.cli import main; sys.argv[1:] = ['train', '--help']\n"
    code += "try: main()\nfinally: assert 'torch' not in sys.modules, 'torch was imported'"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "--conv" in done.stdout


def test_a_prediction_waits_only_for_what_it_uses():
    code = "import sys; import lookhops.models.predictor, lookhops.sources\n"
    code += (
        "late = {'pandas', 'scipy.stats', 'sklearn', 'torch_geometric', 'matplotlib', 'rdkit'}\n"
    )
    code += "assert not late & set(sys.modules), late & set(sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
