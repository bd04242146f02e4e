"""How a command gets ready to compute: PyTorch, which takes long to load, memory, and a GPU."""

from __future__ import annotations

import atexit
import ctypes
import gc
import os
import sys
from contextlib import suppress
from importlib import import_module
from threading import Thread

from lookhops.core.machine import keep_memory

#: The devices that stand for the first GPU, where there is one.
FIRST_GPU = ("auto", "cuda", "cuda:0")


def load(device: str, *modules: str) -> None:
    """Import modules that take PyTorch, while a GPU gets ready where it is the device.

    What is imported stays: looking through it for garbage again and again takes a fifth of the
    time, so that is not done meanwhile, nor ever again of what is there in the end.
    """
    if "torch" in sys.modules:
        return
    keep_memory()
    if device in FIRST_GPU and "LOCAL_RANK" not in os.environ:  # else each worker has its own
        Thread(target=_make_ready).start()
    gc.disable()
    try:
        for name in modules:
            import_module(name)
    finally:
        gc.freeze()
        atexit.register(gc.unfreeze)  # on the way out some libraries look whether all is gone
        gc.enable()


def _make_ready() -> None:
    """Do for the first GPU what takes long and does not wait for PyTorch.

    That is its context, which PyTorch then takes, and a hash over Triton's library of half a
    gigabyte, which the names of compiled kernels begin with. Without a GPU nothing is done; what
    fails here fails again, and is said, where it is needed.
    """
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return
    device, context = ctypes.c_int(), ctypes.c_void_p()
    if driver.cuInit(0) or driver.cuDeviceGet(ctypes.byref(device), 0):
        return
    Thread(target=_hash_triton).start()
    driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), device)


def _hash_triton() -> None:
    with suppress(ImportError, OSError):  # Triton has moved it, or is not here
        from triton.runtime.cache import triton_key

        triton_key()
