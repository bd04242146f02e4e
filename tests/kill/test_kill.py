"""Commands killed before each rename, unlink and fsync: nothing finished is ever lost."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
#: In two processes, for two cores.
SCENARIOS = (
    ("train", "train --resume", "report"),
    ("train --overwrite", "compare", "data convert", "tune"),
)


@pytest.fixture(scope="session")
def faults(tmp_path_factory):
    """The library that kills, for LD_PRELOAD."""
    if sys.platform != "linux" or not shutil.which("cc"):
        pytest.skip("needs Linux and a C compiler")
    target = tmp_path_factory.mktemp("faults") / "faults.so"
    command = ["cc", "-shared", "-fPIC", "-o", target, HERE / "faults.c", "-ldl"]
    subprocess.run(command, check=True)
    return target


@pytest.mark.parametrize("scenarios", SCENARIOS, ids="; ".join)
def test_killed_before_every_step(tmp_path, faults, scenarios):
    environment = {**os.environ, "LD_PRELOAD": str(faults), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, HERE / "killing.py", tmp_path, *scenarios]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    assert min(map(int, done.stdout.split()[-len(scenarios) :])) >= 3
