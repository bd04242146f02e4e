"""PyTorch is loaded beside a GPU that gets ready: what runs there, and nothing is left over."""

import ctypes
import gc
import subprocess
import sys

import pytest

from lookhops.cli.shared import reading


class Driver:
    """Stands for NVIDIA's driver: notes what it is asked for, and fails at one of it."""

    def __init__(self, fails=""):
        self.fails, self.asked = fails, []

    def __getattr__(self, name):
        def answer(*given):
            self.asked.append(name)
            return int(name == self.fails)

        return answer


@pytest.fixture
def hashed(monkeypatch):
    """Notes that Triton was hashed."""
    found = []
    monkeypatch.setattr(reading, "_hash_triton", lambda: found.append("hashed"))
    return found


@pytest.mark.parametrize(
    ("fails", "asked"),
    [
        ("", ["cuInit", "cuDeviceGet", "cuDevicePrimaryCtxRetain"]),
        ("cuInit", ["cuInit"]),
        ("cuDeviceGet", ["cuInit", "cuDeviceGet"]),
    ],
)
def test_a_gpu_gets_its_context_where_there_is_one(monkeypatch, hashed, fails, asked):
    driver = Driver(fails)
    monkeypatch.setattr(ctypes, "CDLL", lambda name: driver)
    reading._make_ready()
    assert driver.asked == asked
    assert len(hashed) == (not fails)


def test_without_a_driver_nothing_happens(monkeypatch, hashed):
    def none(name):
        raise OSError(name)

    monkeypatch.setattr(ctypes, "CDLL", none)
    reading._make_ready()
    assert not hashed


def test_what_was_loaded_before_is_still_collected():
    frozen = gc.get_freeze_count()
    reading.load("auto", "lookhops.models")  # PyTorch is here
    assert gc.isenabled()
    assert gc.get_freeze_count() == frozen


@pytest.mark.parametrize("device", ["auto", "cpu", "cuda:0"])
@pytest.mark.parametrize("module", ["lookhops.graphs", "no_such_module"])
def test_the_collector_goes_on(device, module):
    code = "import gc, sys\nfrom lookhops.cli.shared.reading import load\n"
    code += f"try: load({device!r}, {module!r})\nexcept ImportError: print('none')\n"
    code += "assert gc.isenabled() and gc.get_freeze_count()\n"
    code += "print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == ("True\n" if module == "lookhops.graphs" else "none\nFalse\n")
