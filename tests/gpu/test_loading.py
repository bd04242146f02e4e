"""The context that is made while PyTorch loads is the one that PyTorch computes in."""

import subprocess
import sys

CODE = """
import ctypes, sys
from threading import enumerate as threads, main_thread
from lookhops.cli.shared.reading import load

load(sys.argv[1], "torch")
for thread in threads():
    if thread is not main_thread():
        thread.join()
driver, active, flags = ctypes.CDLL("libcuda.so.1"), ctypes.c_int(), ctypes.c_uint()
assert driver.cuInit(0) == 0
assert driver.cuDevicePrimaryCtxGetState(0, ctypes.byref(flags), ctypes.byref(active)) == 0
print(active.value, "triton.runtime.cache" in sys.modules)
import torch
print(torch.arange(5, device="cuda").sum().item())
"""


def printed(*words):
    """What a process of its own prints."""
    done = subprocess.run([sys.executable, "-c", CODE, *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_a_context_is_there_before_pytorch_asks_for_it():
    assert printed("auto") == ["1", "True", "10"]


def test_on_the_cpu_none_is_made():
    assert printed("cpu") == ["0", "False", "10"]
