"""The Triton kernels under Triton's interpreter, and through its compiler for a GPU."""

import ctypes
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import lookhops
from kernel_cases import SMALL, interpret
from lookhops.ops import gpu

TESTS = Path(__file__).parents[1]
KERNEL = re.compile(r"@triton\.jit.*\n +def (\w+_kernel)\(")


@pytest.mark.parametrize("group", SMALL)
def test_kernels_are_their_plain_lines(group):
    interpret(group)


def test_every_kernel_compiles_for_a_gpu(tmp_path):
    pytest.importorskip("triton", reason="needs triton, which has no build for this machine")
    environment = {**os.environ, "TRITON_CACHE_DIR": str(tmp_path), "OMP_NUM_THREADS": "1"}
    environment.pop("TRITON_INTERPRET", None)
    done = subprocess.run(
        [sys.executable, TESTS / "kernels_for_gpu.py"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=1800,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    compiled = dict(line.split() for line in done.stdout.splitlines())
    package = Path(lookhops.__file__).parent
    sources = [path.read_text("utf-8") for path in (package / "ops").rglob("*.py")]
    defined = {name for text in sources for name in KERNEL.findall(text)}
    assert defined == set(compiled)
    assert all(int(size) > 1000 for size in compiled.values())


@pytest.mark.parametrize("driver", [True, False])
def test_triton_is_loaded_where_a_driver_is(monkeypatch, driver):
    def load(name):
        if not driver:
            raise OSError(name)

    monkeypatch.setattr(ctypes, "CDLL", load)
    monkeypatch.setattr(torch.version, "hip", None)
    monkeypatch.delitem(sys.modules, "triton", raising=False)
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    assert gpu._wanted() is driver
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    assert gpu._wanted()
