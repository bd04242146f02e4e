"""The Triton kernels through Triton's compiler, for a GPU that need not be here."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import lookhops

TESTS = Path(__file__).parents[1]


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
    sources = [path.read_text("utf-8") for path in package.rglob("*.py") if "kernels" in str(path)]
    launched = {name for text in sources for name in re.findall(r"(\w+_kernel)\[", text)}
    assert launched == set(compiled)
    assert all(int(size) > 1000 for size in compiled.values())
